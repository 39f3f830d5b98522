//! A command runs once, and its receipt arrives, whatever is lost on the way.

use crate::gateway::Scripted;
use crate::lab::{
    BOUND, POD, held_apply, hold_in_deletion, let_go, live, outcome, state, succeeded, until_accepted,
    until_done,
};
use navin_test_support::{World, until};
use serde_json::json;

#[test]
fn a_receipt_that_the_manager_could_not_take_arrives_when_the_manager_is_back() {
    let world = World::start("manager-gone", &json!({}));
    let agent = world.agent(POD);
    let command = held_apply(&world, &agent);
    world.manager.process().kill9();
    let_go(&world, "ingress");
    let done = until_done(&world, &command);
    assert_eq!(done["phase"]["done"]["acknowledged"], false);
    assert_eq!(done["phase"]["done"]["receipt"]["status"], "succeeded");

    world.manager.restart();
    let shown = outcome(&world, &command);
    let outcome = succeeded(&shown);
    assert_eq!(outcome, done["phase"]["done"]["receipt"]);
    // The manager, which had no receipt, may have delivered it again before the receipt came.
    for kept in shown["receipts"].as_array().expect("receipts") {
        let receipt = &kept["receipt"];
        let replayed = receipt["reason"] == "nonce_replayed" && receipt["original"] == outcome;
        assert!(*receipt == outcome || replayed, "one outcome: {receipt}");
    }
    assert_eq!(live(&world, "ingress")["metadata"]["generation"], 1, "written once");
}

#[test]
fn a_receipt_without_an_answer_is_sent_again_until_it_is_answered() {
    let scripted = Scripted::start("unanswered", &json!({}));
    let _agent = scripted.agent();
    scripted.gateway.lose_answers(2);
    let payload = scripted.signer.apply("ingress", 1, &json!({ "replicas": 2 }));
    let first = scripted.answer(&payload);
    let command_id = payload["command_id"].as_str().expect("a command_id");
    let record = until("the acknowledgement in the state", BOUND, || {
        let record = until_done(&scripted.world, command_id);
        (record["phase"]["done"]["acknowledged"] == true).then_some(record)
    });
    let sent = scripted.gateway.receipts_of(command_id);
    assert_eq!(sent, vec![first; 3], "two answers were lost, the third came");
    assert_eq!(record["phase"]["done"]["receipt"], sent[0]);
}

#[test]
fn a_command_that_is_delivered_twice_runs_once() {
    let scripted = Scripted::start("twice", &json!({}));
    let _agent = scripted.agent();
    let payload = scripted.signer.apply("ingress", 1, &json!({ "replicas": 2 }));
    let envelope = scripted.signer.sign(&payload);
    let command_id = payload["command_id"].as_str().expect("a command_id");

    // In one answer: the second copy comes while the first is being executed, and is dropped.
    scripted.gateway.deliver(&[&envelope, &envelope]);
    let first = until("the receipt", BOUND, || scripted.gateway.receipts_of(command_id).pop());
    assert_eq!(first["status"], "succeeded", "{first}");
    let written = live(&scripted.world, "ingress");

    // Later: it is answered with what was recorded.
    let again = scripted.answer_to(&envelope);
    assert_eq!(again["status"], "refused");
    assert_eq!(again["reason"], "nonce_replayed");
    assert_eq!(again["recorded"], false);
    assert_eq!(again["original"], first);
    assert_eq!(scripted.gateway.receipts_of(command_id).len(), 2);
    assert_eq!(live(&scripted.world, "ingress"), written, "the component was written once");
}

#[test]
fn a_nonce_that_was_used_is_refused_under_any_other_command() {
    let scripted = Scripted::start("nonce", &json!({}));
    let _agent = scripted.agent();
    let used = scripted.signer.apply("ingress", 1, &json!({ "replicas": 1 }));
    let first = scripted.answer(&used);
    let mut other = scripted.signer.apply("ingress", 2, &json!({ "replicas": 2 }));
    other["nonce"] = used["nonce"].clone();
    let receipt = scripted.answer(&other);
    assert_eq!(receipt["reason"], "nonce_replayed", "{receipt}");
    assert_eq!(receipt["command_id"], other["command_id"]);
    assert_eq!(receipt["original"], first);
    assert_eq!(live(&scripted.world, "ingress")["spec"], json!({ "replicas": 1 }));
}

#[test]
fn a_delivery_of_a_command_that_is_being_executed_is_dropped() {
    let scripted = Scripted::start("under-way", &json!({}));
    let _agent = scripted.agent();
    hold_in_deletion(&scripted.world, "held");
    let payload = scripted.signer.apply("held", 1, &json!({ "replicas": 2 }));
    let envelope = scripted.signer.sign(&payload);
    let command_id = payload["command_id"].as_str().expect("a command_id");
    scripted.gateway.deliver(&[&envelope]);
    until_accepted(&scripted.world, command_id);
    scripted.gateway.deliver(&[&envelope]);
    // What was delivered before is judged before.
    let other = scripted.answer(&scripted.signer.apply("other", 2, &json!({})));
    assert_eq!(other["status"], "succeeded", "{other}");
    assert!(scripted.gateway.receipts_of(command_id).is_empty());

    let_go(&scripted.world, "held");
    until("the one receipt", BOUND, || scripted.gateway.receipts_of(command_id).pop());
    let other = scripted.answer(&scripted.signer.apply("other", 3, &json!({})));
    assert_eq!(other["status"], "succeeded", "{other}");
    assert_eq!(scripted.gateway.receipts_of(command_id).len(), 1);
    assert_eq!(live(&scripted.world, "held")["metadata"]["generation"], 1);
}

#[test]
fn commands_of_one_name_that_arrive_together_run_in_order() {
    let scripted = Scripted::start("together", &json!({}));
    let _agent = scripted.agent();
    let payloads: Vec<_> =
        (1..=5).map(|n| scripted.signer.apply("ingress", n, &json!({ "replicas": n }))).collect();
    let envelopes: Vec<_> = payloads.iter().map(|payload| scripted.signer.sign(payload)).collect();
    scripted.gateway.deliver(&envelopes.iter().collect::<Vec<_>>());
    until("five receipts", BOUND, || (scripted.gateway.receipts().len() == 5).then_some(()));
    for receipt in scripted.gateway.receipts() {
        assert_eq!(receipt["status"], "succeeded", "{receipt}");
    }
    assert_eq!(live(&scripted.world, "ingress")["spec"], json!({ "replicas": 5 }));
    assert_eq!(state(&scripted.world)["components"]["ingress"]["succeeded"], 5);
}
