//! The operator's commands, as a shell runs them.

use crate::support::{Agent, Folder, Manager, id, receipt, served, until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// A shell with a token.
struct Shell<'s> {
    folder: &'s Folder,
    server: String,
}

impl Shell<'_> {
    fn start<'s>(folder: &'s Folder, manager: &Manager, token: &str) -> Shell<'s> {
        fs::write(folder.join("token"), format!("{token}\n")).unwrap();
        Shell { folder, server: manager.url() }
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let file = self.folder.join("input");
        fs::write(&file, input).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$@\" <\"$0\""])
            .args([&file, Path::new(env!("CARGO_BIN_EXE_navin-manager"))])
            .args(arguments)
            .arg("--token-file")
            .arg(self.folder.join("token"))
            .env("NAVIN_SERVER", &self.server)
            .env("NAVIN_CA", self.folder.join("data/tls/ca.crt"))
            .env("NAVIN_CLUSTER", "prod");
        self.folder.output(&command)
    }

    #[track_caller]
    fn prints(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments, "size: 0o144\nenabled: yes\n");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Answers the next command, as an agent would.
fn answer_one(agent: Agent, status: &'static str) -> thread::JoinHandle<Value> {
    thread::spawn(move || {
        let envelope = agent.poll(30).expect(200)["commands"][0].clone();
        agent.receipt(&receipt(&json!({ "envelope": envelope }), status, true)).expect(200);
        envelope
    })
}

#[test]
fn a_cluster_is_brought_in_and_worked_with_from_a_shell() {
    let (folder, token, manager) = served("shell");
    let shell = Shell::start(&folder, &manager, &token);
    let registered = shell.prints(&["clusters", "prod", "--register", "navin"], 0);
    assert!(registered.starts_with("NAME  NAMESPACE  ONLINE"), "{registered}");
    assert!(shell.prints(&["import-rbac"], 0).contains("navin-import"));
    let image = format!("agent@sha256:{}", "0".repeat(64));
    assert!(shell.prints(&["manifests", "--image", &image], 0).contains("kind: Deployment"));
    let secret = shell.prints(&["identity", "--gateway-url", &manager.gateway], 0);
    assert!(secret.contains("kind: Secret"));
    let set = ["identity", "--gateway-url", &manager.gateway, "-o", "json", "--set", "poll_wait_s=7"];
    let issued: Value = serde_json::from_str(&shell.prints(&set, 0)).unwrap();
    assert_eq!(issued["config"]["payload"]["poll_wait_s"], 7);
    shell.prints(&["identity", "--gateway-url", &manager.gateway, "--set", "poll_wait_s=31"], 1);
    shell.prints(&["identity", "--gateway-url", &manager.gateway, "--set", "poll_wait_s"], 2);
    let misspelt = shell.run(&["identity", "--gateway-url", &manager.gateway, "--set", "poll_wait=7"], "");
    assert!(
        String::from_utf8_lossy(&misspelt.stderr).contains("poll_wait_s, report_interval_s"),
        "{misspelt:?}"
    );
    let agent = Agent::new(&issued, &manager.gateway);

    let answered = answer_one(agent.clone(), "succeeded");
    let table = shell.prints(&["apply", "web", "-f", "-", "--wait", "--timeout", "40"], 0);
    assert!(table.contains("succeeded"), "{table}");
    let arguments = &answered.join().unwrap()["payload"]["arguments"];
    assert_eq!(*arguments, json!({ "name": "web", "spec": { "size": 100, "enabled": true } }));
    let answered = answer_one(agent.clone(), "failed");
    assert!(shell.prints(&["delete", "web", "--wait"], 1).contains("failed"));
    let command = answered.join().unwrap()["payload"]["command_id"].as_str().unwrap().to_owned();
    assert!(shell.prints(&["wait", &command], 1).contains("failed"));
    let told = String::from_utf8(shell.run(&["wait", &command], "").stderr).unwrap();
    assert!(told.contains(&format!("command {command}: failed")), "{told}");
    let commands = shell.prints(&["commands"], 0);
    assert!(commands.contains("managedcomponent.delete") && commands.contains("  web  "), "{commands}");
    let audited = shell.prints(&["audit"], 0);
    assert!(audited.contains("managedcomponent.delete web"), "what became of web: {audited}");
    let one: Value = serde_json::from_str(&shell.prints(&["commands", &command, "-o", "json"], 0)).unwrap();
    assert_eq!(one["receipts"][0]["receipt"]["status"], "failed");
    assert_eq!(shell.prints(&["commands", "--limit", "1"], 0).lines().count(), 2);

    shell.prints(&["inventory"], 4);
    let report = json!({ "type": "navin.report/v1", "tenant_id": "acme", "cluster_id": "prod", "replica": "pod-1",
        "inventory_revision": "r", "inventory": { "nodes": { "state": "ok", "items": [] } },
        "components": [{ "name": "web", "sequence": 2, "in_sync": true, "generation": 4 }] });
    agent.report(&report).expect(200);
    assert!(shell.prints(&["inventory"], 0).contains("state: ok"));
    assert!(shell.prints(&["inventory", "-o", "yaml"], 0).contains("revision: r\n"));
    let cluster = shell.prints(&["clusters", "prod"], 0);
    assert!(cluster.contains("COMPONENT  SEQUENCE  IN SYNC") && cluster.contains("pod-1"), "{cluster}");
    assert!(shell.prints(&["audit"], 0).contains("identity.issue"));
    assert!(!shell.prints(&["audit", "-o", "json"], 0).contains(&token));
}

#[test]
fn each_way_to_end_badly_has_its_exit_code() {
    let (folder, token, manager) = served("shell-codes");
    let shell = Shell::start(&folder, &manager, &token);
    manager.cluster(&token, "prod");
    let unknown = "00000000-0000-4000-8000-000000000000";
    for (arguments, code) in [
        (&["clusters", "nowhere"][..], 4),
        (&["delete", "web", "--cluster", "nowhere"], 4),
        (&["wait", unknown], 4),
        (&["delete", "Web"], 1),
        (&["clusters", "prod", "--register", "navin"], 1),
        (&["manifests", "--image", "agent:latest"], 1),
        (&["delete"], 2),
        (&["apply", "web", "-f", "/nowhere.yaml"], 2),
        (&["clusters", "--server", "http://127.0.0.1:1"], 2),
        (&["clusters", "--ca", "/nowhere.crt"], 2),
        (&["clusters", "--server", "https://127.0.0.1:1"], 5),
        (&["delete", "web", "--wait", "--timeout", "0"], 6),
        (&["delete", "web", "--wait", "--valid-for-s", "1"], 1),
    ] {
        shell.prints(arguments, code);
    }
    let nowhere = shell.run(&["delete", "web", "--cluster", "nowhere"], "");
    let told = String::from_utf8(nowhere.stderr).unwrap();
    assert!(told.contains("cluster \"nowhere\": ") && told.contains("--register NAMESPACE"), "{told}");
    assert_eq!(shell.run(&["apply", "web", "-f", "-"], "a: 1\na: 2\n").status.code(), Some(2));
    let list = folder.join("list.yaml").display().to_string();
    fs::write(&list, "[]").unwrap();
    for arguments in [&["apply", "web", "-f", &list][..], &["clusters", "--ca", &list]] {
        let output = shell.run(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(&format!("{list}: expected a ")), "the file is named: {told}");
    }
    // Another object is no spec: it would be signed with its apiVersion and all.
    let other = shell.run(&["apply", "web", "-f", "-"], "apiVersion: apps/v1\nkind: Deployment\nspec: {}\n");
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    fs::write(folder.join("token"), "navin_wrong").unwrap();
    shell.prints(&["clusters"], 3);
    fs::write(folder.join("token"), "two words").unwrap();
    let told = String::from_utf8(shell.run(&["clusters"], "").stderr).unwrap();
    assert!(told.contains("--token-file") && !told.contains("two words"), "{told}");
}

#[test]
fn what_is_not_given_is_named_with_its_option_and_its_variable() {
    let folder = Folder::new("shell-not-given");
    folder.serve().kill();
    let ca = folder.join("data/tls/ca.crt");
    for (arguments, given, named) in [
        (&["clusters"][..], &[][..], "--ca or NAVIN_CA"),
        (&["clusters"], &["NAVIN_CA"], "--token-file or NAVIN_TOKEN"),
        (&["inventory"], &["NAVIN_CA", "NAVIN_TOKEN"], "--cluster or NAVIN_CLUSTER"),
        (&["token", "list"], &[], "--data, --database or NAVIN_DATABASE"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_navin-manager"));
        for name in ["NAVIN_CA", "NAVIN_TOKEN", "NAVIN_CLUSTER", "NAVIN_DATABASE"] {
            command.env_remove(name);
        }
        command.args(arguments).envs(given.iter().map(|name| (name, &ca)));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{output:?}");
    }
}

#[test]
fn every_help_tells_the_exit_codes() {
    for task in [
        "",
        "serve",
        "agent-gateway",
        "token",
        "token list",
        "token revoke",
        "sign",
        "clusters",
        "import-rbac",
        "identity",
        "manifests",
        "apply",
        "delete",
        "inventory",
        "commands",
        "wait",
        "audit",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_navin-manager"));
        let output = command.args(task.split_whitespace()).arg("--help").output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("\nExit codes:\n"), "{task}");
    }
}

#[test]
fn who_waits_asks_again_when_the_server_says_so_and_not_before() {
    let folder = Folder::new("shell-retry");
    let (token, busy) = (folder.token("acme"), folder.token("acme"));
    // A call every 3 s, after the first ten.
    let manager = folder.serve_with(&["--token-rate", "20"]);
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
    let shell = Shell::start(&folder, &manager, &busy);
    let command = id(&queued);
    // A shell that starts slowly may find its next call allowed: then it is not put off, and is run again.
    let put_off = |options: &[&str], code: i32| {
        until("it is put off", || {
            let started = Instant::now();
            let refused = manager.get(&busy, "/api/v1/clusters").status == 429;
            let output = shell.run(&[&["wait", command.as_str()], options].concat(), "");
            let told = String::from_utf8(output.stderr).unwrap();
            let asked = told.matches("asked again in").count();
            let answered = output.status.code() == Some(0) && asked == 0;
            (refused && !answered).then(|| {
                assert_eq!(output.status.code(), Some(code), "{told}");
                (asked, started.elapsed())
            })
        })
    };
    // Nothing is known of the command yet, nor how long it is worth waiting for.
    put_off(&[], 1);
    let (_, took) = put_off(&["--timeout", "1"], 6);
    assert!(took < Duration::from_millis(2500), "{took:?}");
    assert_eq!(put_off(&["--timeout", "40"], 0).0, 1);
    // What is queued with the one call that there is can be waited for until it expires.
    let answered = answer_one(agent, "succeeded");
    let told = until("it is queued", || {
        let output = shell.run(&["delete", "web", "--wait"], "");
        output.status.success().then(|| String::from_utf8(output.stderr).unwrap())
    });
    assert!(told.contains("asked again in"), "{told}");
    answered.join().unwrap();
}
