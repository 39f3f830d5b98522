//! The program as a process: its end, its files, its exit codes.

use crate::support::{AGENT_GATEWAY, Agent, COMMANDS, Folder, LIMIT, SERVE, id, receipt, served};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn what_was_answered_201_survives_kill_9() {
    let folder = Folder::new("kill-9");
    let token = folder.token("acme");
    let mut manager = folder.serve();
    manager.cluster(&token, "prod");
    let mut answered = Vec::new();
    for _ in 0..3 {
        answered.extend((0..5).map(|_| manager.queue(&token, "prod")));
        manager.kill();
        manager = folder.serve();
    }
    for (command, sequence) in answered.iter().zip(1..) {
        let shown = manager.command(&token, "prod", command);
        assert_eq!((&shown["envelope"], &shown["sequence"]), (&command["envelope"], &json!(sequence)));
    }
}

#[test]
fn what_was_answered_201_amid_many_survives_kill_9() {
    let (folder, token, manager) = served("kill-9-amid");
    manager.cluster(&token, "prod");
    let (sender, answered) = mpsc::channel();
    let operators = [(); 4].map(|()| {
        let (rest, token, sender) = (manager.rest.clone(), token.clone(), sender.clone());
        thread::spawn(move || {
            while let Ok(answer) = rest.queue(&token, "prod") {
                sender.send(answer.expect(201)).unwrap();
            }
        })
    });
    drop(sender);
    let mut kept: Vec<Value> = (0..40).map(|_| answered.recv_timeout(LIMIT).unwrap()).collect();
    manager.kill();
    kept.extend(answered);
    for operator in operators {
        operator.join().unwrap();
    }
    let manager = folder.serve();
    for command in &kept {
        assert_eq!(manager.command(&token, "prod", command)["envelope"], command["envelope"]);
    }
    let sequences: BTreeSet<u64> = kept.iter().map(|command| command["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences.len(), kept.len(), "a sequence was given twice");
    let next = manager.queue(&token, "prod")["sequence"].as_u64().unwrap();
    assert!(sequences.iter().all(|sequence| *sequence < next));
}

#[test]
fn sigterm_answers_open_polls_and_ends_with_0() {
    let (_folder, token, manager) = served("sigterm");
    let agent = manager.cluster(&token, "prod");
    let waiting = agent.clone();
    let poll = thread::spawn(move || waiting.poll(30));
    manager.until_online(&token, "prod");
    let started = Instant::now();
    manager.process.terminate();
    assert_eq!(poll.join().unwrap().expect(200), json!({ "commands": [] }));
    assert_eq!(manager.wait(), 0);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn keys_are_readable_by_their_owner_alone_and_used_again() {
    let folder = Folder::new("keys");
    let read = |name: &str| fs::read(folder.join("data/tls").join(name)).unwrap();
    let names = ["ca.crt", "ca.key", "server.crt", "server.key", "signing.key", "manager.pem"];
    folder.serve().kill();
    let before = names.map(read);
    folder.serve().kill();
    assert!(before == names.map(read), "keys were made anew");
    for name in ["tls/ca.key", "tls/server.key", "tls/signing.key"] {
        let mode = fs::metadata(folder.join("data").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn no_secret_and_no_spec_is_logged_whatever_the_level() {
    let folder = Folder::new("log");
    let token = folder.token("acme");
    let manager = folder.launch(folder.serving().env("NAVIN_LOG", "trace"));
    manager.cluster(&token, "prod");
    let issued = manager.issue(&token, "prod");
    let agent = Agent::new(&issued, &manager.gateway);
    let arguments = json!({ "name": "web", "spec": { "mark": "canary-spec" } });
    for (operation, status) in [("managedcomponent.apply", 201), ("pod.exec", 400)] {
        manager
            .post(&token, COMMANDS, &json!({ "operation": operation, "arguments": arguments }))
            .expect(status);
    }
    agent.poll(0).expect(200);
    manager.get("navin_canary-token", "/api/v1/clusters").expect(401);
    let config = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "clusters": [{ "name": "c", "cluster": { "server": manager.url(),
            "certificate-authority-data": base64(&fs::read(folder.join("data/tls/ca.crt")).unwrap()) } }],
        "users": [{ "name": "u", "user": { "token": "canary-kubeconfig" } }] });
    let body = json!({ "cluster_id": "new", "namespace": "navin", "kubeconfig": config.to_string() });
    manager.post(&token, "/api/v1/clusters", &body).expect(422);
    manager.process.terminate();
    manager.wait();
    let log = manager.process.stderr_text();
    assert!(log.contains("TRACE") && log.contains("stopping"), "{log}");
    let key = issued["tls_key"].as_str().unwrap().lines().nth(1).unwrap().to_owned();
    let password =
        folder.database.as_deref().unwrap_or("canary").split('@').next().unwrap().rsplit(':').next().unwrap();
    let signing = fs::read_to_string(folder.join("data/tls/signing.key")).unwrap();
    let signing = signing.lines().nth(1).unwrap();
    for secret in
        [&token, "canary-spec", "canary-token", "canary-kubeconfig", &key, signing, &format!(":{password}@")]
    {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret}: {line:?}");
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn a_damaged_file_is_named_with_exit_code_78() {
    let folder = Folder::new("damaged");
    folder.serve().kill();
    for name in ["ca.crt", "ca.key", "server.crt", "server.key", "signing.key", "manager.pem"] {
        let path = folder.join("data/tls").join(name);
        let good = fs::read(&path).unwrap();
        fs::write(&path, &good[..good.len() / 2]).unwrap();
        let output = folder.run(&SERVE);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(78), "{name}: {told}");
        assert!(told.contains(&format!("tls/{name}: ")), "{name}: {told}");
        fs::write(&path, &good).unwrap();
    }
    // What agents trust is never replaced because its key is lost.
    for (lost, beside) in [("ca.key", "ca.crt"), ("server.key", "server.crt"), ("signing.key", "manager.pem")]
    {
        let path = folder.join("data/tls").join(lost);
        let good = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let output = folder.run(&SERVE);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(78), "{lost}: {told}");
        for named in [&format!("tls/{lost}: missing, while "), beside, "When a key is lost"] {
            assert!(told.contains(named), "{lost}: {told}");
        }
        fs::write(&path, &good).unwrap();
    }
}

#[test]
fn what_only_uses_a_database_makes_none_and_says_who_does() {
    let folder = Folder::new("no-database");
    let token = ["token", "--tenant", "acme"];
    for task in [&token[..], &["token", "list"], &["token", "revoke", "id"]] {
        let output = folder.run(task);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(78), "{task:?}: {told}");
        assert!(told.contains("missing; `serve` makes it") && output.stdout.is_empty(), "{told}");
        assert!(!folder.join("data").exists(), "{task:?} made it");
    }
    // With the keys of another, and its own database mistyped.
    let other = Folder::new("no-database-keys");
    other.serve().kill();
    let tls = other.join("data/tls").display().to_string();
    let report = ["--operation", "inventory.report", "--arguments", "{}"];
    let sign = [&["sign", "--tls-dir", &tls, "--tenant", "acme", "--cluster", "prod"][..], &report].concat();
    for task in [[&AGENT_GATEWAY[..], &["--tls-dir", &tls]].concat(), sign] {
        let output = folder.run(&task);
        assert_eq!(output.status.code(), Some(78), "{output:?}");
        assert!(!folder.join("data").exists(), "{task:?} made it");
    }
    assert!(folder.run(&[&token[..], &["--create"]].concat()).status.success());
    assert!(folder.run(&token).status.success());
}

#[test]
fn keys_are_made_where_the_command_line_is_whole_and_it_is_said() {
    let folder = Folder::new("keys-made");
    let tls = folder.join("tls");
    let output = Command::new(env!("CARGO_BIN_EXE_navin-manager"))
        .args([&SERVE[..], &["--tls-dir", tls.to_str().unwrap()]].concat())
        .env_remove("NAVIN_DATABASE")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!tls.exists(), "keys were made for no manager");
    let manager = folder.serve();
    for made in ["made a new authority", "made a new signing key"] {
        assert!(manager.log().contains(made), "{made}: {}", manager.log());
    }
    drop(manager);
    assert!(!folder.serve().log().contains("made a new"), "at each start");
}

#[test]
fn agents_are_as_many_as_can_be_and_no_number_is_taken_that_cannot() {
    let folder = Folder::new("max-agents");
    for number in ["0", "1000001", "18446744073709551615", "many"] {
        let output = folder.run(&[&SERVE[..], &["--max-agents", number]].concat());
        assert_eq!(output.status.code(), Some(2), "{number}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--max-agents"), "{output:?}");
    }
    let output = folder.run_with_open_files(1000, &[&SERVE[..], &["--max-agents", "100"]].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("1000 files may be open (ulimit -n): expected 1189"), "{told}");
    // Lowered: a warning to who asked for more, and a note to who asked for nothing. The port is no one's to listen on.
    let unheard = ["serve", "--listen", "192.0.2.1:1"];
    for (asked, level) in [(&["--max-agents", "10000"][..], "WARN"), (&[], "INFO")] {
        let output = folder.run_with_open_files(2000, &[&unheard[..], asked].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        let line = told.lines().find(|line| line.contains("fewer agents are let in than")).expect(&told);
        assert!(line.contains(level) && line.contains("--max-agents") != asked.is_empty(), "{line}");
    }
}

#[test]
fn a_gateway_alone_delivers_without_the_keys_that_sign() {
    let (folder, token, manager) = served("gateway-keys");
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let tls = folder.join("gateway-tls");
    fs::create_dir(&tls).unwrap();
    for name in ["ca.crt", "server.crt", "server.key"] {
        fs::copy(folder.join("data/tls").join(name), tls.join(name)).unwrap();
    }
    let alone = [&AGENT_GATEWAY[..], &["--tls-dir", tls.to_str().unwrap()]].concat();
    let gateway = folder.launch(&folder.command(&alone));
    assert_eq!(agent.at(&gateway).polled(0), [id(&queued)]);
    agent.at(&gateway).receipt(&receipt(&queued, "succeeded", true)).expect(200);
    drop(gateway);
    assert_eq!(fs::read_dir(&tls).unwrap().count(), 3, "it made something");
    fs::remove_file(tls.join("server.key")).unwrap();
    let output = folder.run(&alone);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(78), "{told}");
    assert!(told.contains("server.key: missing"), "{told}");
}

#[test]
fn a_signed_command_is_written_for_the_inbox_and_queued_for_the_gateway() {
    let (folder, token, manager) = served("sign");
    let agent = manager.cluster(&token, "prod");
    let (arguments, out) = (folder.join("arguments.json"), folder.join("command.json"));
    fs::write(&arguments, r#"{"name":"web","spec":{"size":1.0E+2}}"#).unwrap();
    let arguments = format!("@{}", arguments.display());
    let sign = |cluster: &str, operation: &str, arguments: &str| {
        let out = out.display().to_string();
        folder.run(&[
            "sign",
            "--tenant",
            "acme",
            "--cluster",
            cluster,
            "--operation",
            operation,
            "--arguments",
            arguments,
            "--out",
            &out,
        ])
    };
    let poll = thread::spawn(move || agent.poll(30));
    let signed = sign("prod", "managedcomponent.apply", &arguments);
    assert!(signed.status.success(), "{signed:?}");
    let envelope: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(envelope["payload"]["arguments"]["spec"], json!({ "size": 100 }));
    assert_eq!(poll.join().unwrap().expect(200)["commands"], json!([envelope]));
    assert!(manager.audit(&token).iter().any(|entry| entry.starts_with("command.queue done")));
    for (cluster, operation, arguments, code) in [
        ("nowhere", "inventory.report", "{}", 1),
        ("prod", "pod.exec", "{}", 1),
        ("prod", "inventory.report", "{", 2),
        ("prod", "inventory.report", r#"{"a":1,"a":1}"#, 2),
    ] {
        assert_eq!(sign(cluster, operation, arguments).status.code(), Some(code), "{cluster} {operation}");
    }
}
