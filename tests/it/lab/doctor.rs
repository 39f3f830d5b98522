//! What the scenarios of `health` and `doctor` share: both, as `kubectl exec` would run them in a replica's
//! container.

use navin_test_support::{World, cargo_binary};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Exit code, standard output, standard error.
pub(crate) type Said = (Option<i32>, String, String);

pub(crate) fn said(output: Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// `health` for a replica with this run folder.
pub(crate) fn health(run_dir: &Path) -> Said {
    let mut command = Command::new(cargo_binary("navin-cluster-agent"));
    said(command.args(["health", "--run-dir"]).arg(run_dir).output().expect("health runs"))
}

/// How `doctor` is started; every scenario changes what it is about.
pub(crate) struct Doctor {
    pub(crate) identity_dir: PathBuf,
    pub(crate) kube_api: String,
    pub(crate) token: PathBuf,
    ca: PathBuf,
    run_dir: PathBuf,
    namespace: String,
}

impl Doctor {
    /// As in a container of this world, whose replica has this run folder.
    pub(crate) fn of(world: &World, run_dir: &Path) -> Self {
        let (token, ca) = (world.folder().join("doctor.token"), world.folder().join("doctor.ca.crt"));
        let account = world.cluster.service_account_token(&world.namespace.name, "navin-cluster-agent");
        fs::write(&token, account).expect("a token");
        fs::write(&ca, world.cluster.ca_pem()).expect("the API server's CA");
        Self {
            identity_dir: world.identity_dir.clone(),
            kube_api: world.cluster.url().to_owned(),
            token,
            ca,
            run_dir: run_dir.to_owned(),
            namespace: world.namespace.name.clone(),
        }
    }

    /// Runs it with more arguments.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let options: [(&str, &OsStr); 5] = [
            ("--identity-dir", self.identity_dir.as_ref()),
            ("--kube-api", self.kube_api.as_ref()),
            ("--kube-token-file", self.token.as_ref()),
            ("--kube-ca-file", self.ca.as_ref()),
            ("--run-dir", self.run_dir.as_ref()),
        ];
        let mut command = Command::new(cargo_binary("navin-cluster-agent"));
        command.arg("doctor").args(options.iter().flat_map(|(name, value)| [name.as_ref(), *value]));
        // As loud as it gets: nothing but its findings is said.
        command.args(args).env("POD_NAMESPACE", &self.namespace).env("RUST_LOG", "trace");
        command.output().expect("doctor runs")
    }

    /// Exit code and findings; nothing is said on standard error.
    #[track_caller]
    pub(crate) fn findings(&self) -> (Option<i32>, Vec<Value>) {
        let (code, stdout, stderr) = said(self.run(&["-o", "json"]));
        assert_eq!(stderr, "");
        let mut document: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(document["well"], (code == Some(0)), "{document}");
        match document["findings"].take() {
            Value::Array(findings) => (code, findings),
            other => panic!("findings is {other}"),
        }
    }

    /// That exactly this is wrong, with exit code 1: its message and advice.
    #[track_caller]
    pub(crate) fn only_wrong(&self, name: &str) -> (String, String) {
        let (code, findings) = self.findings();
        let wrong: Vec<&Value> = findings.iter().filter(|finding| finding["status"] == "wrong").collect();
        assert!(wrong.len() == 1 && wrong[0]["name"] == name, "{findings:#?}");
        assert_eq!(code, Some(1));
        let text = |member: &str| wrong[0][member].as_str().expect("a text").to_owned();
        (text("message"), text("advice"))
    }
}
