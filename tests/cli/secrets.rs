//! No level of the log shows a token or a key, neither the agent's own lines nor its libraries'.

use crate::agent::{Run, SOON};
use crate::identity::Identity;
use crate::server::Server;
use navin_test_support::{Process, RunFolder, until};
use serde_json::json;
use std::fs;

/// Any 16 bytes of the token hold this whole: a library may show it cut into rows.
const CANARY: &str = "CaNaRy7x";
/// As much as a user can ask for, of every crate by name too: what is asked by name is more specific.
const LOUDEST: &str = "trace,ureq=trace,ureq_proto=trace,ureq_proto::util=trace,rustls=trace,\
                       navin_cluster_agent=trace";

struct Bench {
    folder: RunFolder,
    secrets: Vec<String>,
}

impl Bench {
    fn new(name: &str, identity: &Identity) -> Self {
        let folder = RunFolder::new(name);
        identity.write(&folder.path().join("identity"));
        fs::write(folder.path().join("token"), CANARY.repeat(8)).unwrap();
        fs::write(folder.path().join("kube-ca.crt"), identity.bytes("ca.crt")).unwrap();
        let key = identity.text("tls.key");
        let lines = key.lines().filter(|line| !line.starts_with("-----"));
        let mut secrets: Vec<String> = lines.map(|line| line[..16].to_owned()).collect();
        assert!(secrets.len() >= 3, "the key has lines");
        secrets.push(CANARY.to_owned());
        Self { folder, secrets }
    }

    fn start(&self, log: &str, kube_api: Option<&str>) -> Process {
        let mut run = Run::new("agent", self.folder.path(), &self.folder.path().join("identity"));
        if let Some(url) = kube_api {
            let index = run.args.iter().position(|argument| argument == "--kube-api").unwrap();
            run.args[index + 1] = url.into();
        }
        run.env("RUST_LOG", log);
        run.start()
    }

    /// That nothing secret has been said up to the end.
    fn assert_silent(&self, process: &Process) {
        process.terminate();
        assert_eq!(process.wait_exit(SOON), Some(0), "{}", process.stderr_tail());
        let text = process.stderr_text() + &process.stdout_text();
        for secret in &self.secrets {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} is in the log");
        }
    }
}

#[test]
fn no_log_shows_a_secret_while_nobody_answers() {
    let runs = [("secrets-closed", "trace"), ("secrets-closed-loudest", LOUDEST)].map(|(name, log)| {
        let bench = Bench::new(name, &Identity::issue());
        let process = bench.start(log, None);
        (bench, process)
    });
    for (bench, process) in &runs {
        until("a failed attempt, and another", SOON, || {
            let text = process.stderr_text();
            let failed = text.lines().filter(|line| line.contains("no connection")).count();
            (failed >= 2).then_some(())
        });
        bench.assert_silent(process);
    }
}

#[test]
fn no_log_shows_a_secret_while_requests_are_answered() {
    for (name, log) in [("secrets-open", "trace"), ("secrets-open-loudest", LOUDEST)] {
        let mut identity = Identity::issue();
        let server = Server::start(&identity);
        identity.configure(|payload| drop(payload.insert("gateway_url".into(), json!(server.url))));
        let bench = Bench::new(name, &identity);
        let process = bench.start(log, Some(&server.url));
        // The token has really been sent, and the client's certificate shown: there was something to hide.
        let (mut token, mut certificate) = (false, false);
        until("a request with the token, and one with the certificate", SOON, || {
            for seen in server.seen.try_iter() {
                token |= seen.bearer.is_some_and(|bearer| bearer.contains(CANARY));
                certificate |= seen.certified;
            }
            (token && certificate).then_some(())
        });
        bench.assert_silent(&process);
    }
}
