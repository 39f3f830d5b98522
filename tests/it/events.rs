//! What people see with `kubectl get events`.

use crate::lab::{BOUND, POD, applied, patch, until_event};
use crate::wired::Wired;
use navin_cluster_agent::clock::{Clock as _, SystemClock};
use navin_cluster_agent::http::{HttpsClient, TlsFiles};
use navin_cluster_agent::kube::Kube;
use navin_cluster_agent::notices::{About, Crier, Notices};
use navin_test_support::{Call, Exchange, Fate, World, until};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn a_component_that_is_restored_again_and_again_is_told_in_one_event_that_counts() {
    let world = World::start("events", &json!({}));
    let _agent = world.agent(POD);
    applied(&world, "ingress", &json!({ "replicas": 2 }));
    let elected = until_event(&world, "LeaderElected", 1);
    assert_eq!(elected["involvedObject"]["kind"], "Pod");
    assert_eq!(elected["involvedObject"]["name"], POD);
    assert_eq!(elected["type"], "Normal");

    for round in 0..3 {
        patch(&world, "ingress", &json!({ "spec": { "replicas": 10 + round } }));
        until("the component to be restored", BOUND, || {
            let object = world.namespace.component("ingress")?;
            (object["spec"]["replicas"] == 2).then_some(())
        });
    }
    let restored = until_event(&world, "ComponentRestored", 3);
    assert_eq!(restored["involvedObject"]["kind"], "ManagedComponent");
    assert_eq!(restored["involvedObject"]["name"], "ingress");
    let alike = world.namespace.events().iter().filter(|e| e["reason"] == "ComponentRestored").count();
    assert_eq!(alike, 1, "counted, not repeated");
}

/// kyverno/kyverno#17580, kubernetes/kubernetes#98175, deckhouse/deckhouse#1480: cut within a character, cut to
/// the wrong length, not cut where it was short.
#[test]
fn a_note_of_any_length_and_in_any_characters_is_one_that_the_api_server_takes() {
    let world = World::start("notes", &json!({}));
    let token = world.folder().join("token");
    let account = world.cluster.service_account_token(&world.namespace.name, "navin-cluster-agent");
    fs::write(&token, account).expect("a token");
    let tls = TlsFiles { ca: world.cluster.ca_pem().as_bytes(), client: None };
    let client = HttpsClient::new(world.cluster.url(), &tls, Some(token)).expect("a client");
    let kube = Kube::new(Arc::new(client), &world.namespace.name, Duration::from_secs(5));
    let (notices, clock) = (Arc::new(Notices::default()), Arc::new(SystemClock::default()));
    let mut crier = Crier::new(kube, clock.clone(), Arc::clone(&notices), POD.to_owned(), None);
    let texts = [
        "é".repeat(600),
        "😀".repeat(400),
        format!("a{}", "😀".repeat(400)),
        "a".repeat(1_024),
        "a".repeat(1_025),
        "\u{0}\u{1b}[31m\n\t\u{202e}".to_owned(),
        String::new(),
    ];
    for (number, text) in texts.iter().enumerate() {
        notices.warning("Contested", About::Component(format!("c{number}")), text);
    }
    let began = clock.monotonic();
    while crier.step().is_zero() {
        assert!(clock.monotonic().saturating_sub(began) < BOUND, "it comes to rest");
    }
    let events = world.namespace.events();
    for (number, text) in texts.iter().enumerate() {
        let name = format!("c{number}");
        let event = events.iter().find(|event| event["involvedObject"]["name"] == *name).expect(&name);
        // An empty one is left out by the server.
        let note = event["message"].as_str().unwrap_or_default();
        assert!(note.len() <= 1_024 && note.len() + 4 > text.len().min(1_024), "{name}: {}", note.len());
        assert!(text.starts_with(note), "{name}: {note}");
        assert!(event["reason"].as_str().is_some_and(|reason| reason.len() <= 128), "{name}");
    }
}

/// Whether it writes an Event.
fn writes_event(call: &Call) -> bool {
    call.mutates() && call.resource().contains("/events")
}

/// The same, where Events may not be written, are not taken, or have no place.
#[test]
fn events_that_the_api_server_refuses_are_dropped_and_hold_up_nothing() {
    let wired = Wired::start("refused-events", &json!({}));
    let statuses = [(403, "Forbidden"), (422, "Invalid"), (429, "TooManyRequests"), (404, "NotFound")];
    let mut asked = 0;
    wired.wire.rule(move |call, reply| {
        if reply.is_some() || !writes_event(call) {
            return Fate::Pass;
        }
        asked += 1;
        let (status, reason) = statuses[asked % statuses.len()];
        Fate::answer(status, reason)
    });
    let (replica, began) = (wired.replica(POD), Instant::now());
    let spec = json!({ "replicas": 2 });
    for number in 0..5 {
        let name = format!("c{number}");
        applied(&wired.world, &name, &spec);
        patch(&wired.world, &name, &json!({ "spec": { "replicas": 9 } }));
        until("the repair", BOUND, || {
            (wired.world.namespace.component(&name)?["spec"] == spec).then_some(())
        });
    }
    replica.agent.wait_log("event dropped reason=", BOUND);
    let tries =
        wired.wire.since(0).iter().filter(|exchange: &&Exchange| writes_event(&exchange.call)).count();
    // A second passes after each that is refused, at least.
    let most = usize::try_from(began.elapsed().as_secs()).expect("seconds") + 2;
    assert!((1..=most).contains(&tries), "{tries} tries");
    let taken = wired.world.namespace.events().len();
    assert_eq!(taken, 0, "none was taken");
}
