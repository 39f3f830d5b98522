//! The binary as a process: `run` against an API server that is not there, and the other subcommands.

use crate::identity::{NAMESPACE, authority};
use navin_test_support::{Launch, Process, RunFolder};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Longer than any start or end takes on a machine that is busy with other tests.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// A port that nobody listens on.
pub(crate) const CLOSED: &str = "https://127.0.0.1:1";

/// The binary.
pub(crate) fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_navin-cluster-agent"))
}

/// How `run` is started; every test changes what it is about.
pub(crate) struct Run {
    /// Names the log files.
    pub(crate) name: String,
    /// For the log files, the token and the API server's CA.
    pub(crate) folder: PathBuf,
    /// The arguments after `run`.
    pub(crate) args: Vec<OsString>,
    /// The environment; an empty value is an absent one.
    pub(crate) envs: Vec<(String, String)>,
}

/// A folder with what [`Run::new`] names in it: a token, and a CA of an API server that is not there.
pub(crate) fn folder(name: &str) -> RunFolder {
    let folder = RunFolder::new(name);
    write_access(folder.path(), authority().1);
    folder
}

/// The same into a folder, with another CA.
pub(crate) fn write_access(folder: &Path, ca: impl AsRef<[u8]>) {
    fs::write(folder.join("token"), "token").unwrap();
    fs::write(folder.join("kube-ca.crt"), ca).unwrap();
}

impl Run {
    /// With the identity in `identity`, and an API server that is not there.
    pub(crate) fn new(name: &str, folder: &Path, identity: &Path) -> Self {
        let mut run = Self::in_cluster(name, folder, identity);
        run.args.extend(["--kube-api".into(), CLOSED.into()]);
        run.args.extend(["--kube-token-file".into(), folder.join("token").into()]);
        run.args.extend(["--kube-ca-file".into(), folder.join("kube-ca.crt").into()]);
        run
    }

    /// Without any `--kube-` flag: the way to the API server is that of a pod.
    pub(crate) fn in_cluster(name: &str, folder: &Path, identity: &Path) -> Self {
        let mut run = Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            args: vec!["--identity-dir".into(), identity.into()],
            envs: Vec::new(),
        };
        for (name, value) in [
            ("POD_NAME", "agent-0"),
            ("POD_UID", "2c9a1b6e-0000-4000-8000-000000000000"),
            ("POD_NAMESPACE", NAMESPACE),
            ("KUBERNETES_SERVICE_HOST", ""),
            ("KUBERNETES_SERVICE_PORT", ""),
            ("RUST_LOG", "info"),
        ] {
            run.env(name, value);
        }
        run
    }

    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.envs.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn start(self) -> Process {
        let mut args: Vec<OsString> = vec!["run".into()];
        args.extend(self.args);
        Process::start(Launch {
            name: self.name,
            program: program(),
            args,
            envs: self.envs,
            folder: self.folder,
        })
    }

    /// Waits for its end: the exit code and the one line on standard error.
    #[track_caller]
    pub(crate) fn refused(self) -> (Option<i32>, String) {
        let process = self.start();
        let code = process.wait_exit(SOON);
        (code, only_line(&process.stderr_text()))
    }
}

/// Runs it to its end, without any input.
pub(crate) fn output(args: &[&str]) -> Output {
    Command::new(program()).args(args).stdin(Stdio::null()).output().expect("the binary")
}

/// Exit code, standard output, and standard error.
pub(crate) fn parts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// That a text is one whole line, and the line.
#[track_caller]
pub(crate) fn only_line(text: &str) -> String {
    let line = text.strip_suffix('\n').unwrap_or_else(|| panic!("not a whole line: {text:?}"));
    assert!(!line.is_empty() && !line.contains(['\n', '\r']), "not one line: {text:?}");
    line.to_owned()
}
