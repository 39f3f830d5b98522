//! Whatever goes wrong, and however loud the two programs are: no token, no key, no signature and nothing of a
//! spec is in what they write for people (linkerd/linkerd2#2383, kubernetes/kubernetes#81114: tokens in logs). The
//! text of a panic is looked at where the panics are made, in `agent::tests`.

use crate::doctor_lab::Doctor;
use crate::inbox_lab::{self, put, receipt};
use crate::lab::{BOUND, POD, applied, patch};
use crate::signer::Signer;
use crate::wired::{COMMANDS, RECEIPTS, REPORT, Replica, Wired};
use navin_test_support::{Agent, AgentOptions, Call, Exchange, Fate, Server, World, cargo_binary, until};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// In every spec, as a value and as a name; no 16 characters of it occur elsewhere.
const CANARY: &str = "CaNaRy7xQw9eRt5yUi3oPa1sDf8gHj2k";
/// How much of a secret in one piece is too much, in bytes.
const PIECE: usize = 16;
/// As much as a user can ask for.
const LOUD: &str = "trace,ureq=trace,ureq_proto=trace,rustls=trace,navin_cluster_agent=trace";

/// What must not be found.
struct Secrets(Vec<(String, String)>);

impl Secrets {
    /// Each piece of `text` from now on, under a name for whoever reads that it was found.
    fn add(&mut self, name: &str, text: &str) {
        self.0.push((name.to_owned(), text.to_owned()));
    }

    fn add_pem(&mut self, path: &Path) {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for line in text.lines().filter(|line| !line.starts_with('-')) {
            self.add(&path.display().to_string(), line);
        }
    }

    /// Every token of an account has the same head and much of the same body.
    fn add_token(&mut self, name: &str, token: &str) {
        token.split('.').skip(1).for_each(|part| self.add(name, part));
    }

    /// That no piece of any of them is in `text`.
    #[track_caller]
    fn assert_not_in(&self, place: &str, text: &str) {
        let pieces: HashSet<&[u8]> =
            self.0.iter().flat_map(|(_, text)| text.as_bytes().windows(PIECE)).collect();
        let Some(at) = text.as_bytes().windows(PIECE).position(|piece| pieces.contains(piece)) else {
            return;
        };
        let piece = &text.as_bytes()[at..at + PIECE];
        let owns = |text: &str| text.as_bytes().windows(PIECE).any(|own| own == piece);
        let owner = self.0.iter().find(|(_, text)| owns(text)).map(|(name, _)| name);
        let around: String =
            String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(200)..]).chars().take(300).collect();
        panic!("{place} shows 16 characters of {owner:?}: …{around}…");
    }
}

/// What is wrong with a command, each in its own way; the canary is in all of them.
fn bad(signer: &Signer, world: &World) -> Vec<String> {
    let spec = json!({ "password": CANARY, CANARY: { "nested": [CANARY] } });
    let good = signer.sign(&signer.apply("c", 900, &spec));
    let mut tampered = good.clone();
    tampered["payload"]["arguments"]["spec"]["password"] = json!(format!("{CANARY}!"));
    let mut extra = good.clone();
    extra["payload"]["more"] = json!(CANARY);
    let mut mistyped = signer.apply("c", 901, &spec);
    mistyped["arguments"]["spec"] = json!(CANARY);
    let mut unknown = signer.apply("c", 902, &spec);
    unknown["operation"] = json!("pod.exec");
    let mut more = signer.apply("c", 903, &spec);
    more["arguments"]["more"] = json!(CANARY);
    let mut past = signer.apply("c", 904, &spec);
    past["not_before"] = json!("2020-01-01T00:00:00Z");
    past["not_after"] = json!("2020-01-01T00:15:00Z");
    let text = good.to_string();
    let twice = text.replacen(&format!("\"password\":\"{CANARY}\""), &format!("\"{CANARY}\":1"), 1);
    assert_ne!(text, twice);
    vec![
        tampered.to_string(),
        extra.to_string(),
        signer.sign(&mistyped).to_string(),
        signer.sign(&unknown).to_string(),
        signer.sign(&more).to_string(),
        signer.sign(&past).to_string(),
        Signer::of_nobody(world).sign(&signer.apply("c", 905, &spec)).to_string(),
        twice,
        text.replace(&format!("\"{CANARY}\":{{"), &format!("\"{CANARY}\":9007199254740993,\"b\":{{")),
        text[..text.len() - 20].to_owned(),
        format!("{CANARY} {text}"),
        format!("\u{feff}{text}"),
    ]
}

fn loud(mut options: AgentOptions) -> AgentOptions {
    options.inbox = Some(options.folder.join(format!("{}.inbox", options.pod)));
    options.envs.push(("RUST_LOG".to_owned(), LOUD.to_owned()));
    options
}

/// What `verify` says of a command, on both outputs.
fn verdict(world: &World, text: &str) -> String {
    let file = world.folder().join("command.json");
    fs::write(&file, text).expect("a file");
    let mut command = Command::new(cargo_binary("navin-cluster-agent"));
    command.arg("verify").arg(&file).arg("--identity-dir").arg(&world.identity_dir).env("RUST_LOG", LOUD);
    let output = command.output().expect("verify runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Where the harness keeps what the manager printed when it made them.
fn operators_tokens(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the scenario's folder");
    let found = entries.map(|entry| entry.expect("an entry").path());
    let printed = |path: &PathBuf| {
        path.to_string_lossy().contains("manager-token-") && path.extension() == Some("stdout".as_ref())
    };
    let found: Vec<PathBuf> = found.filter(printed).collect();
    assert!(!found.is_empty(), "an operator's token was made");
    found
}

/// Both sides of the wire break in every way, one after the other.
fn troubles(wired: &Wired, replica: &Replica) {
    for fate in [
        Fate::answer(401, "Unauthorized"),
        Fate::Cut,
        Fate::Page { status: 502, kind: "text/html", retry_after: None, body: "<html>".to_owned() },
    ] {
        let (from, met) = (wired.wire.len(), Arc::new(AtomicUsize::new(0)));
        let meeting = Arc::clone(&met);
        wired.wire.rule(move |_: &Call, reply| {
            if reply.is_some() || meeting.fetch_add(1, Ordering::Relaxed) > 20 {
                return Fate::Pass;
            }
            fate.clone()
        });
        replica.reset_api();
        wired.wire.wait("a call of each side", from, BOUND, |exchange| exchange.call.server == Server::Api);
        until("some to fail", BOUND, || (met.load(Ordering::Relaxed) >= 3).then_some(()));
        wired.wire.pass_all();
    }
}

/// Has commands refused, over the gateway and from the inbox; the answers in the inbox.
fn refusals(wired: &Wired, agent: &Agent, bad: &[String]) -> Vec<Value> {
    let left = Arc::new(Mutex::new(bad.to_vec()));
    let delivered = Arc::clone(&left);
    wired.wire.rule(move |call: &Call, reply| {
        let next =
            (reply.is_none() && call.is("GET", COMMANDS)).then(|| delivered.lock().expect("a lock").pop());
        let whole = |text: &String| serde_json::from_str::<Value>(text).is_ok();
        match next.flatten().filter(whole) {
            Some(envelope) => {
                let body = format!("{{\"commands\":[{envelope}]}}");
                Fate::Answer { status: 200, body, retry_after_s: None }
            }
            None => Fate::Pass,
        }
    });
    for (number, text) in bad.iter().enumerate() {
        put(agent, &format!("bad-{number}"), text);
    }
    let receipts: Vec<Value> =
        (0..bad.len()).map(|number| receipt(agent, &format!("bad-{number}"))).collect();
    until("the gateway's to be delivered", BOUND, || left.lock().expect("a lock").is_empty().then_some(()));
    assert!(receipts.iter().all(|receipt| receipt["status"] == "refused"), "{receipts:?}");
    receipts
}

/// All that must not be found, after a run.
fn secrets(world: &World, bad: &[String]) -> Secrets {
    let mut secrets = Secrets(vec![]);
    secrets.add("the spec", CANARY);
    for name in ["agent-a.token", "agent-b.token", "doctor.token"] {
        let token = fs::read_to_string(world.folder().join(name)).expect(name);
        secrets.add_token(name, &token);
    }
    for name in operators_tokens(world.folder()) {
        secrets.add("an operator's token", fs::read_to_string(name).expect("a token").trim());
    }
    secrets.add_pem(&world.identity_dir.join("tls.key"));
    for name in ["ca.key", "server.key", "signing.key"] {
        secrets.add_pem(&world.manager.data().join("tls").join(name));
    }
    let state = world.namespace.state().expect("a state");
    assert!(state.to_string().contains(CANARY), "there was something to hide");
    let kept = ["kept", "filed", "late"].map(|name| state["components"][name]["desired"]["envelope"].clone());
    for envelope in bad.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok()).chain(kept) {
        secrets.add("a signature", envelope["signature"].as_str().expect("a signature"));
    }
    secrets
}

#[test]
fn no_secret_and_nothing_of_a_spec_is_in_anything_that_is_written_for_people() {
    let spec = json!({ "password": CANARY, CANARY: { "nested": [CANARY] } });
    let wired = Wired::over(World::start_loud("canary", &json!({ "poll_wait_s": 1, "lease_duration_s": 3 })));
    let world = &wired.world;
    let replica = wired.replica_as(POD, loud);
    let agent = &replica.agent;
    agent.wait_leads(&world.namespace, BOUND);
    applied(world, "kept", &spec);

    let bad = bad(&wired.signer, world);
    let mut receipts = refusals(&wired, agent, &bad);
    let file = wired.signer.sign(&wired.signer.apply("filed", 910, &spec));
    receipts.push(inbox_lab::answer(agent, "good", &file));
    assert_eq!(receipts.last().map(|receipt| &receipt["status"]), Some(&json!("succeeded")));

    // An identity that is damaged, and calls that fail on both sides; a repair; a start from what is in the state.
    let identity = world.folder().join(format!("identity-{POD}"));
    let key = fs::read_to_string(identity.join("tls.key")).expect("the key");
    fs::write(identity.join("tls.key"), key.replace('M', "!")).expect("a damaged key");
    troubles(&wired, &replica);
    patch(world, "kept", &json!({ "spec": { "password": "another" } }));
    until("the repair", BOUND, || (world.namespace.component("kept")?["spec"] == spec).then_some(()));
    agent.wait_log("identity rejected", BOUND);
    fs::write(identity.join("tls.key"), &key).expect("the key");
    agent.process().start_again();
    applied(world, "late", &spec);

    // A replica that does not trust its API server.
    let stranger = loud(AgentOptions {
        kube_api: Some(world.manager.gateway_url().to_owned()),
        ..world.agent_options("agent-b")
    });
    let stranger = world.agent_with(stranger);
    stranger.wait_log("UnknownIssuer", BOUND);
    let doctor = Doctor::of(world, agent.inbox());
    let bundle = doctor.run(&["--bundle"]);
    assert!(!bundle.stdout.is_empty());
    stranger.process().terminate();
    agent.process().terminate();
    for process in [stranger.process(), agent.process()] {
        assert_eq!(process.wait_exit(Duration::from_secs(10)), Some(0));
    }

    let verdicts: String = bad.iter().chain([&file.to_string()]).map(|text| verdict(world, text)).collect();

    let secrets = secrets(world, &bad);
    let wire = wired.wire.since(0);
    let sent = |end: &str| -> String {
        let of = |exchange: &&Exchange| exchange.call.is("POST", end);
        wire.iter().filter(of).map(|e| String::from_utf8_lossy(&e.call.body).into_owned()).collect()
    };
    let (out, err) = (agent.process().stdout_text(), agent.process().stderr_text());
    assert!(err.contains(" DEBUG ") && err.lines().count() > 100, "it was loud");
    let manager = world.manager.process().stderr_text();
    assert!(manager.contains(" DEBUG "), "it was loud");
    for (place, text) in [
        ("the agent's log", err),
        ("the agent's output", out),
        ("the stranger's log", stranger.process().stderr_text()),
        ("the manager's log", manager),
        ("the manager's output", world.manager.process().stdout_text()),
        ("the Events", json!(world.namespace.events()).to_string()),
        ("the Lease", json!(world.namespace.lease()).to_string()),
        ("the audit", json!(world.manager.audit()).to_string()),
        ("the receipts", sent(RECEIPTS)),
        ("the answers in the inbox", json!(receipts).to_string()),
        ("the reports", sent(REPORT)),
        ("what verify says", verdicts),
        ("the bundle", String::from_utf8_lossy(&bundle.stdout).into_owned()),
    ] {
        assert!(!text.is_empty() || place.ends_with("output"), "{place} is empty");
        secrets.assert_not_in(place, &text);
    }
}
