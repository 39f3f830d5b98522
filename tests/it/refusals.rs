//! Every refusal of CONTRACT section 2, in its order, as the gateway's agent sees it.

use crate::gateway::Scripted;
use crate::lab::{BOUND, state, until_event};
use crate::signer::{Signer, seconds_from_now};
use jiff::Timestamp;
use navin_test_support::until;
use serde_json::{Value, json};

/// A refusal that left no trace.
#[track_caller]
fn assert_untraced(receipt: &Value, reason: &str) {
    assert_eq!(receipt["type"], "navin.receipt/v1");
    assert_eq!(receipt["status"], "refused", "{receipt}");
    assert_eq!(receipt["reason"], reason, "{receipt}");
    assert_eq!(receipt["recorded"], false, "{receipt}");
    assert!(receipt["message"].is_string(), "{receipt}");
    assert_eq!(receipt.get("result"), None, "{receipt}");
}

/// A refusal that is its nonce's outcome.
#[track_caller]
fn assert_recorded(scripted: &Scripted, receipt: &Value, reason: &str) {
    assert_eq!(receipt["status"], "refused", "{receipt}");
    assert_eq!(receipt["reason"], reason, "{receipt}");
    assert_eq!(receipt["recorded"], true, "{receipt}");
    let nonce = receipt["nonce"].as_str().expect("a nonce");
    let record = &state(&scripted.world)["commands"][nonce];
    assert_eq!(record["phase"]["done"]["receipt"], *receipt, "the recorded outcome");
}

#[test]
fn what_is_not_authentic_or_not_in_its_window_is_refused_and_leaves_no_trace() {
    let scripted = Scripted::start("untraced", &json!({ "max_validity_s": 86_400 }));
    let _agent = scripted.agent();
    let signer = &scripted.signer;
    let before = scripted.world.cluster.admin().get(&scripted.world.namespace.state_path());
    let good = || signer.apply("ingress", 1, &json!({ "replicas": 2 }));
    let with = |member: &str, value: Value| {
        let mut payload = good();
        payload[member] = value;
        payload
    };

    // The ids are readable, the rest is not of the form.
    for wrong in [
        with("unknown", json!(1)),
        with("sequence", json!(0)),
        with("not_after", json!(seconds_from_now(-61))),
        with("not_after", json!(seconds_from_now(86_400))),
        with("target", json!({ "kind": "tenant", "id": scripted.world.cluster_id() })),
        with("type", json!("navin.agent-config/v1")),
    ] {
        let receipt = scripted.answer(&wrong);
        assert_untraced(&receipt, "invalid_envelope");
        assert_eq!(receipt["nonce"], wrong["nonce"]);
    }
    let mut envelope = signer.sign(&good());
    envelope["extra"] = json!(true);
    assert_untraced(&scripted.answer_to(&envelope), "invalid_envelope");

    let stranger = Signer::of_nobody(&scripted.world);
    assert_untraced(&scripted.answer_to(&stranger.sign(&good())), "unknown_key");

    let mut envelope = signer.sign(&good());
    envelope["payload"]["arguments"]["spec"]["replicas"] = json!(3);
    assert_untraced(&scripted.answer_to(&envelope), "invalid_signature");
    let mut envelope = stranger.sign(&good());
    envelope["key_id"] = signer.sign(&good())["key_id"].clone();
    assert_untraced(&scripted.answer_to(&envelope), "invalid_signature");

    assert_untraced(&scripted.answer(&with("tenant_id", json!("other"))), "wrong_tenant");
    let elsewhere = json!({ "kind": "cluster", "id": "other-cluster" });
    assert_untraced(&scripted.answer(&with("target", elsewhere)), "wrong_target");

    let mut late = good();
    late["not_before"] = json!(seconds_from_now(-120));
    late["not_after"] = json!(seconds_from_now(-5));
    assert_untraced(&scripted.answer(&late), "expired");
    let mut early = good();
    early["not_before"] = json!(seconds_from_now(120));
    assert_untraced(&scripted.answer(&early), "not_yet_valid");

    let after = scripted.world.cluster.admin().get(&scripted.world.namespace.state_path());
    assert_eq!(after, before, "the state was not even written");
    assert_eq!(scripted.world.namespace.component("ingress"), None);
}

#[test]
fn what_has_no_readable_ids_gets_no_receipt_and_is_counted() {
    let scripted = Scripted::start("unreadable", &json!({}));
    let _agent = scripted.agent();
    let mut nameless = scripted.signer.apply("ingress", 1, &json!({}));
    nameless["nonce"] = json!("short");
    let twice = scripted.signer.sign(&scripted.signer.apply("ingress", 2, &json!({}))).to_string();
    let twice = twice.replacen("\"nonce\":", "\"nonce\":\"aaaaaaaaaaaaaaaaaaaaaaaa\",\"nonce\":", 1);
    scripted.gateway.deliver_texts(vec![scripted.signer.sign(&nameless).to_string(), twice, "[]".into()]);
    // What was delivered before is judged before.
    let report = scripted.signer.inventory(3);
    let receipt = scripted.answer(&report);
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
    assert_eq!(scripted.gateway.receipts().len(), 1);
    until("a report that counts them", BOUND, || {
        let reports = scripted.gateway.reports();
        let refused = &reports.last()?["counters"]["refused"];
        (*refused == json!({ "invalid_envelope": 3 })).then_some(())
    });
    until_event(&scripted.world, "CommandRefused", 3);
}

#[test]
fn an_unknown_operation_and_wrong_arguments_are_refused_as_the_outcome_of_their_nonce() {
    let scripted = Scripted::start("unknown", &json!({}));
    let _agent = scripted.agent();
    let signer = &scripted.signer;
    let spec = json!({});
    for (sequence, operation, arguments, reason) in [
        (1, "managedcomponent.explode", json!({}), "unknown_operation"),
        (2, "managedcomponent.apply", json!({ "name": "a" }), "invalid_arguments"),
        (3, "managedcomponent.apply", json!({ "name": "A/b", "spec": spec }), "invalid_arguments"),
        (4, "managedcomponent.apply", json!({ "name": "a", "spec": [] }), "invalid_arguments"),
        (5, "managedcomponent.delete", json!({ "name": "a", "spec": spec }), "invalid_arguments"),
        (6, "inventory.report", json!({ "name": "a" }), "invalid_arguments"),
    ] {
        let payload = signer.payload(operation, sequence, &arguments);
        let receipt = scripted.answer(&payload);
        assert_recorded(&scripted, &receipt, reason);
        let again = scripted.answer(&payload);
        assert_untraced(&again, "nonce_replayed");
        assert_eq!(again["original"], receipt, "one nonce, one outcome");
    }
    assert_eq!(state(&scripted.world)["highest_sequence"], 6);
}

#[test]
fn a_command_that_a_newer_one_overtook_is_refused_as_superseded() {
    let scripted = Scripted::start("superseded", &json!({}));
    let _agent = scripted.agent();
    let signer = &scripted.signer;
    let newer = scripted.answer(&signer.apply("ingress", 10, &json!({ "replicas": 10 })));
    assert_eq!(newer["status"], "succeeded", "{newer}");
    for sequence in [9, 10] {
        let older = scripted.answer(&signer.apply("ingress", sequence, &json!({ "replicas": 9 })));
        assert_recorded(&scripted, &older, "superseded");
    }
    assert_recorded(&scripted, &scripted.answer(&signer.delete("ingress", 8)), "superseded");
    let other = scripted.answer(&signer.apply("other", 7, &json!({})));
    assert_eq!(other["status"], "succeeded", "the order is kept by name: {other}");
    let component = scripted.world.namespace.component("ingress").expect("it was not undone");
    assert_eq!(component["spec"], json!({ "replicas": 10 }));

    // The tombstone keeps the order as well.
    assert_eq!(scripted.answer(&signer.delete("ingress", 11))["status"], "succeeded");
    let older = scripted.answer(&signer.apply("ingress", 6, &json!({ "replicas": 6 })));
    assert_recorded(&scripted, &older, "superseded");
    assert_eq!(scripted.world.namespace.component("ingress"), None);
}

#[test]
fn after_the_state_was_lost_sensitive_commands_from_before_are_refused() {
    let scripted = Scripted::start("state-lost", &json!({}));
    let agent = scripted.agent();
    let (world, signer) = (&scripted.world, &scripted.signer);
    let ran = signer.apply("ingress", 1, &json!({ "replicas": 1 }));
    assert_eq!(scripted.answer(&ran)["status"], "succeeded");
    agent.process().kill9();
    let (status, answer) = world.cluster.admin().delete(&world.namespace.state_path());
    assert_eq!(status, 200, "{answer}");
    let polls = scripted.gateway.polls();
    agent.process().start_again();
    let lost_at = until("a new state that says what was lost", BOUND, || {
        let state = world.namespace.state()?;
        let lost_at: Timestamp = state["lost_at"].as_str()?.parse().expect("a time");
        (state["unfinished"] == false && state["term"] == 1).then_some(lost_at)
    });
    scripted.gateway.wait_poll(polls);
    until_event(world, "StateLost", 1);

    // It ran, which nobody can know any more: it does not run again.
    let again = scripted.answer(&ran);
    assert_recorded(&scripted, &again, "state_lost");
    assert_recorded(&scripted, &scripted.answer(&signer.delete("ingress", 2)), "state_lost");
    assert_eq!(world.namespace.component("ingress").expect("it stays")["metadata"]["generation"], 1);
    let read_only = scripted.answer(&signer.inventory(3));
    assert_eq!(read_only["status"], "succeeded", "{read_only}");

    // Issued anew, after the loss.
    let mut anew = signer.apply("ingress", 4, &json!({ "replicas": 2 }));
    anew["not_before"] = until("a second that begins after the loss", BOUND, || {
        let second = Timestamp::from_second(Timestamp::now().as_second()).expect("now");
        (second > lost_at).then(|| json!(second.to_string()))
    });
    let receipt = scripted.answer(&anew);
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
}

#[test]
fn an_apply_that_would_exceed_the_desired_state_is_too_large() {
    let scripted = Scripted::start("too-large", &json!({}));
    let _agent = scripted.agent();
    let signer = &scripted.signer;
    let spec = |kib: usize| json!({ "text": "x".repeat(kib * 1024) });
    for sequence in 1..=3 {
        let receipt = scripted.answer(&signer.apply(&format!("big-{sequence}"), sequence, &spec(190)));
        assert_eq!(receipt["status"], "succeeded", "{receipt}");
    }
    let receipt = scripted.answer(&signer.apply("big-4", 4, &spec(50)));
    assert_recorded(&scripted, &receipt, "too_large");
    assert_eq!(scripted.world.namespace.component("big-4"), None);
    // What replaces, and what makes room, is not held up.
    let receipt = scripted.answer(&signer.apply("big-3", 5, &spec(180)));
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
    assert_eq!(scripted.answer(&signer.delete("big-1", 6))["status"], "succeeded");
    let receipt = scripted.answer(&signer.apply("big-4", 7, &spec(50)));
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
}
