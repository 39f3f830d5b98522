//! Another identity is taken while the leader leads.

use super::*;
use crate::kube::watch::Sighting;
use crate::rules::envelope::KeyRing;
use crate::rules::names::ComponentName;
use crate::rules::vectors::load;

#[test]
fn what_a_withdrawn_key_has_signed_and_is_not_done_is_ended_and_with_the_same_keys_goes_on() {
    let other = KeyRing::from_pem(load("envelopes.json")["manager_pem"].as_str().unwrap()).unwrap();
    assert_ne!(other, trust().ring);
    for (ring, accepted) in [(trust().ring, 1), (other, 0)] {
        let mut bench = Bench::new();
        bench.leader.world.contact.note_answered(bench.clock.monotonic());
        *bench.api.broken.lock().unwrap() = Some("/a");
        bench.deliver(&sign(&apply("a", 1, &json!({}))));
        bench.leader.work();
        bench.leader.handle(Event::Trust(Box::new(Trust { ring, ..trust() })));
        bench.leader.work();
        let state = bench.leader.reign.as_ref().expect("it leads on").store.shared();
        assert_eq!(state.counts().accepted, accepted);
        let outcome = state.waiting_receipts().next().and_then(|(_, receipt)| receipt.reason);
        assert_eq!(outcome, (accepted == 0).then_some(Reason::UnknownKey));
        let name = ComponentName::parse("a").unwrap();
        assert_eq!(state.is_late_create(&name, 1), accepted == 0, "its create may land, or has landed");
    }
}

#[test]
fn a_create_of_a_withdrawn_keys_command_that_lands_is_removed() {
    let mut bench = Bench::new();
    bench.leader.world.contact.note_answered(bench.clock.monotonic());
    *bench.api.broken.lock().unwrap() = Some("/managedcomponents");
    bench.deliver(&sign(&apply("a", 1, &json!({}))));
    bench.leader.work();
    let sent = |call: &(Method, String)| *call == (Method::Post, COMPONENTS.to_owned());
    assert!(
        bench.api.calls.lock().unwrap().iter().any(sent),
        "its create has no answer that says what became of it"
    );
    let ring = KeyRing::from_pem(load("envelopes.json")["manager_pem"].as_str().unwrap()).unwrap();
    bench.leader.handle(Event::Trust(Box::new(Trust { ring, ..trust() })));
    bench.leader.work();

    *bench.api.broken.lock().unwrap() = None;
    let lands = |name: &str, annotations: Value| {
        let metadata = json!({ "name": name, "annotations": annotations });
        let object = json!({ "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
            "metadata": metadata, "spec": {} });
        FakeApi::put(&mut bench.api.objects.lock().unwrap(), format!("{COMPONENTS}/{name}"), object);
        Sighting {
            name: name.to_owned(),
            uid: "u".into(),
            generation: 1,
            created: annotations["platform.navin.ai/created"].as_str().map(|_| 1),
            terminating: false,
        }
    };
    let late = lands("a", json!({ "platform.navin.ai/created": "1" }));
    let foreign = lands("b", json!({}));
    for seen in [late, foreign] {
        bench.leader.handle(Event::Seen(seen));
    }
    bench.advance(Duration::from_secs(1));
    let objects = bench.api.objects.lock().unwrap();
    let there = |name: &str| objects.0.contains_key(&format!("{COMPONENTS}/{name}"));
    assert_eq!((there("a"), there("b")), (false, true));
}
