//! The agents that one would write instead: with client-go, and with kube-rs.
//!
//! Each elects a leader by a Lease, applies a number of `things.perf.example.com` server-side, watches them
//! and restores what is changed by hand; neither has a gateway, signatures or durable state.

use navin_test_support::{Launch, Process, RunFolder, say, target_dir, until, without_cargo, workspace_dir};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What they are built from, as their own files say.
pub(crate) fn versions() -> String {
    let read = |file: &str| fs::read_to_string(workspace_dir().join("benches/peers").join(file)).expect(file);
    let after = |text: &str, what: &str| {
        let (_, rest) =
            text.split_once(what).unwrap_or_else(|| panic!("no {what:?} among the peers' versions"));
        rest.split(['"', '\n']).next().unwrap_or_default().to_owned()
    };
    let (go, lock) = (read("client-go/go.mod"), read("kube-rs/Cargo.lock"));
    let locked = |name: &str| after(&lock, &format!("\nname = \"{name}\"\nversion = \""));
    format!(
        "client-go {} (Go), kube {} with kube-lease-manager {} (musl, opt-level {})",
        after(&go, "\tk8s.io/client-go v"),
        locked("kube"),
        locked("kube-lease-manager"),
        after(&read("kube-rs/Cargo.toml"), "\nopt-level = \"")
    )
}

/// A peer, built.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) binary: PathBuf,
    /// Before the id in its user agent.
    agent: &'static str,
}

/// Builds both; seconds where nothing has changed.
pub(crate) fn build() -> [Peer; 2] {
    let sources = workspace_dir().join("benches/peers");
    let target = target_dir().join("bench-peers");
    say("building the peers (once: two to four minutes)");
    let go = target.join("client-go");
    let mut command = Command::new("go");
    command.current_dir(sources.join("client-go")).env("CGO_ENABLED", "0");
    command
        .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"])
        .arg(&go)
        .arg(".");
    built(command, "client-go");
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let mut command = Command::new("cargo");
    without_cargo(&mut command).env("CC_x86_64_unknown_linux_musl", "musl-gcc");
    command.args(["build", "--quiet", "--locked", "--release", "--target", &triple, "--manifest-path"]);
    command.arg(sources.join("kube-rs/Cargo.toml")).arg("--target-dir").arg(target.join("kube-rs"));
    built(command, "kube-rs");
    all()
}

/// Where they are once they are built.
pub(crate) fn all() -> [Peer; 2] {
    let target = target_dir().join("bench-peers");
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let kube_rs = target.join("kube-rs").join(triple).join("release/baseline-kube-rs");
    [
        Peer { name: "client-go", binary: target.join("client-go"), agent: "baseline-go" },
        Peer { name: "kube-rs", binary: kube_rs, agent: "baseline-kube-rs" },
    ]
}

fn built(mut command: Command, name: &str) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "building the peer {name} failed: {command:?}");
}

impl Peer {
    /// Starts a replica with these options.
    pub(crate) fn start(
        &self,
        kubeconfig: &Path,
        folder: &RunFolder,
        id: &str,
        options: [(&str, &str); 4],
    ) -> Replica {
        let process = Process::start(Launch {
            name: format!("{}-{id}", self.name),
            program: self.binary.clone(),
            args: ["agent".into(), format!("--kubeconfig={}", kubeconfig.display()).into()]
                .into_iter()
                .chain(options.map(|(name, value)| format!("--{name}={value}").into()))
                .collect(),
            envs: vec![],
            folder: folder.path().to_owned(),
        });
        Replica { process, who: self.who(id) }
    }

    /// How the audit log names the one with this id.
    pub(crate) fn who(&self, id: &str) -> String {
        format!("{}/{id}", self.agent)
    }
}

/// A running peer.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) process: Process,
    /// Its name in the audit log.
    pub(crate) who: String,
}

impl Replica {
    /// Waits for a word of its own: `start`, `leading`, `first-act`, `applied`, `synced`.
    pub(crate) fn wait(&self, word: &str, bound: Duration) {
        until(&format!("{}: {word}", self.who), bound, || {
            let text = self.process.stdout_text();
            text.lines().any(|line| line.split(' ').nth(1) == Some(word)).then_some(())
        });
    }
}
