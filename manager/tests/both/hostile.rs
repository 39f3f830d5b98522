//! An agent that sends anything: seeded mutations of receipts, reports and polls, of which none may cost more than
//! its own answer.

use crate::support::{receipt, served};
use navin_fuzz_checks::mutate::Mutator;
use serde_json::{Value, json};
use std::thread;

/// How many mutations of each are sent.
const ROUNDS: usize = 300;
/// Longest body, in bytes.
const LONGEST: usize = 4096;

/// Says which text was sent when the test failed.
struct About<'a>(&'a [u8]);

impl Drop for About<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("sent b\"{}\"", self.0.escape_ascii());
        }
    }
}

fn texts(documents: &[&Value]) -> Vec<Vec<u8>> {
    documents.iter().map(|document| document.to_string().into_bytes()).collect()
}

#[test]
fn whatever_an_agent_sends_is_taken_or_refused_and_what_is_taken_can_be_shown() {
    let (_folder, token, manager) = served("hostile");
    let agent = manager.cluster(&token, "prod");
    let (queued, honest) = (manager.queue(&token, "prod"), manager.queue(&token, "prod"));
    let (early, mut replayed) = (receipt(&queued, "refused", false), receipt(&queued, "refused", false));
    replayed["reason"] = json!("nonce_replayed");
    replayed["original"] = receipt(&queued, "succeeded", true);
    let mut failed = receipt(&queued, "failed", true);
    failed["message"] = json!("no");
    failed["result"] = json!({ "name": "web", "generation": 3 });
    let report = json!({
        "type": "navin.report/v1", "tenant_id": "acme", "cluster_id": "prod", "replica": "pod-1",
        "agent_version": "0.1.0", "cluster_uid": "uid-1", "inventory_revision": "r1",
        "observed_at": "2026-11-30T12:00:00Z", "link": "online", "clock_offset_ms": -3,
        "certificate_not_after": "2027-11-30T12:00:00Z", "leader_since": "2026-11-30T11:00:00Z",
        "state": { "bytes": 1, "records": 2, "receipts_waiting": 0, "full": false, "lost_at": null },
        "counters": { "executed": 1, "refused": { "expired": 2 }, "drift_repaired": 0 },
        "components": [{ "name": "web", "sequence": 1, "in_sync": true, "generation": 1, "status": {} }],
        "inventory": { "version": {}, "nodes": { "state": "ok", "items": [{ "name": "n" }] } },
    });
    let mut receipts = Mutator::new(1, texts(&[&early, &replayed, &failed]), LONGEST);
    let mut documents = Mutator::new(2, texts(&[&report]), LONGEST);
    let mut kept = [0, 0];
    for round in 0..ROUNDS {
        for (kind, (path, mutator)) in
            [("receipts", &mut receipts), ("report", &mut documents)].into_iter().enumerate()
        {
            let body = mutator.text();
            let _about = About(&body);
            let answer = agent.send("POST", path, body.clone());
            assert!([200, 400, 403, 404].contains(&answer.status), "{answer:?}");
            assert!(answer.status == 200 || answer.body["error"].is_string(), "{answer:?}");
            kept[kind] += usize::from(answer.status == 200);
        }
        if round % 10 == 0 {
            for path in ["", "/prod", "/prod/kubernetes/inventory", "/prod/kubernetes/commands"] {
                let shown = manager.get(&token, &format!("/api/v1/clusters{path}"));
                assert!([200, 404].contains(&shown.status), "{path}: {shown:?}");
            }
            manager.command(&token, "prod", &queued);
            manager.get(&token, "/metrics").expect(200);
        }
    }
    assert!(kept.iter().all(|kept| *kept > 0), "{kept:?}: nothing was near enough to the form");

    assert_eq!(agent.receipt(&receipt(&honest, "succeeded", true)).expect(200), json!({ "recorded": true }));
    assert_eq!(manager.command(&token, "prod", &honest)["status"], "succeeded");
    agent.report(&report).expect(200);
    assert_eq!(manager.get(&token, "/api/v1/clusters/prod").expect(200)["components"], report["components"]);
}

#[test]
fn a_poll_that_asks_for_anything_else_than_a_wait_is_refused() {
    let (_folder, token, manager) = served("hostile-poll");
    let agent = manager.cluster(&token, "prod");
    let pool = ["wait_s=31", "wait_s=-1", "wait_s=1e1", "wait_s=0&wait_s=0", "wait_s=99999999999999999999"];
    let mut queries = Mutator::new(3, pool.map(|query| query.as_bytes().to_vec()).into(), 64);
    for _ in 0..ROUNDS {
        let query = queries.text();
        let _about = About(&query);
        // One that is well-formed by now is answered when its time is over.
        let number = |pair: &[u8]| -> Option<u8> {
            let digits = pair.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| char::from(*byte));
            digits.collect::<String>().parse().ok()
        };
        if query
            .split(|byte| *byte == b'&')
            .any(|pair| number(pair).is_some_and(|wait| (1..=30).contains(&wait)))
        {
            continue;
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"=&_-".contains(&byte);
        let encoded = query.iter().fold(String::new(), |text, byte| {
            if plain(*byte) { format!("{text}{}", char::from(*byte)) } else { format!("{text}%{byte:02X}") }
        });
        let answer = agent.send("GET", &format!("commands?{encoded}"), Vec::new());
        assert!([200, 400].contains(&answer.status), "{answer:?}");
        assert!(answer.status == 200 || answer.body["error"] == "malformed", "{answer:?}");
    }
}
