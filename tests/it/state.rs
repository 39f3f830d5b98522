//! The agent's state after each phase, as CONTRACT section 6 has it.

use crate::gateway::Scripted;
use crate::lab::{
    BOUND, POD, add_finalizer, applied, let_go, live, record, state, until_accepted, until_done,
};
use crate::wired::{STATE, Wired};
use jiff::{SignedDuration, Timestamp};
use navin_test_support::{Fate, until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn time(value: &Value) -> Timestamp {
    value.as_str().expect("a time").parse().expect("an RFC 3339 time")
}

#[test]
fn a_first_start_makes_an_empty_state_of_the_first_term() {
    let scripted = Scripted::start("first", &json!({}));
    let agent = scripted.agent();
    assert_eq!(
        state(&scripted.world),
        json!({
            "version": 1,
            "term": 1,
            "holder": agent.holder(),
            "unfinished": false,
            "floor": null,
            "lost_at": null,
            "highest_sequence": 0,
            "commands": {},
            "components": {},
        })
    );
}

#[test]
fn an_apply_leaves_its_record_and_the_desired_state() {
    let scripted = Scripted::start("state-apply", &json!({}));
    let _agent = scripted.agent();
    let payload = scripted.signer.apply("ingress", 7, &json!({ "replicas": 2 }));
    let envelope = scripted.signer.sign(&payload);
    let receipt = scripted.answer_to(&envelope);

    let state = until("the acknowledgement in the state", BOUND, || {
        let state = state(&scripted.world);
        let (_, record) = record(&state, payload["command_id"].as_str()?)?;
        (record["phase"]["done"]["acknowledged"] == true).then_some(state)
    });
    assert_eq!(
        state["commands"],
        json!({ payload["nonce"].as_str().expect("a nonce"): {
            "command_id": payload["command_id"],
            "sequence": 7,
            "not_after": payload["not_after"],
            "source": "gateway",
            "phase": { "done": { "receipt": receipt, "acknowledged": true } },
        } })
    );
    let object = live(&scripted.world, "ingress");
    assert_eq!(
        state["components"],
        json!({ "ingress": {
            "succeeded": 7,
            "desired": {
                "envelope": envelope,
                "sequence": 7,
                "uid": object["metadata"]["uid"],
                "generation": 1,
            },
        } })
    );
    assert_eq!(state["highest_sequence"], 7);
    assert_eq!(state["lost_at"], Value::Null);
}

#[test]
fn a_delete_is_accepted_with_its_envelope_while_it_waits_and_leaves_a_tombstone() {
    let scripted = Scripted::start("state-delete", &json!({}));
    let _agent = scripted.agent();
    assert_eq!(scripted.answer(&scripted.signer.apply("held", 1, &json!({})))["status"], "succeeded");
    add_finalizer(&scripted.world, "held");

    let payload = scripted.signer.delete("held", 2);
    let command_id = payload["command_id"].as_str().expect("a command_id");
    let envelope = scripted.signer.sign(&payload);
    scripted.gateway.deliver(&[&envelope]);
    let accepted = until_accepted(&scripted.world, command_id);
    assert_eq!(
        accepted,
        json!({
            "command_id": command_id,
            "sequence": 2,
            "not_after": payload["not_after"],
            "source": "gateway",
            "phase": { "accepted": { "envelope": envelope } },
        })
    );
    let meanwhile = state(&scripted.world);
    assert_eq!(meanwhile["components"]["held"]["succeeded"], 1, "the delete has not succeeded yet");
    assert_eq!(meanwhile["components"]["held"]["desired"]["sequence"], 1);
    assert_eq!(meanwhile["highest_sequence"], 2);

    let_go(&scripted.world, "held");
    let done = until_done(&scripted.world, command_id);
    assert_eq!(done["phase"]["done"]["receipt"]["result"]["finalizing"], false);
    let component = state(&scripted.world)["components"]["held"].clone();
    assert_eq!(component["succeeded"], 2);
    assert_eq!(component.get("desired"), None);
    assert_eq!(component["mark"]["sequence"], 2);
    let longest = SignedDuration::from_secs(604_800);
    assert_eq!(time(&component["mark"]["forget_after"]), time(&payload["not_before"]) + longest);
}

#[test]
fn a_record_goes_when_its_window_is_past_and_its_receipt_acknowledged() {
    let scripted = Scripted::start("pruned", &json!({}));
    let _agent = scripted.agent();
    let mut short = scripted.signer.apply("ingress", 1, &json!({ "replicas": 1 }));
    let end = Timestamp::from_second(Timestamp::now().as_second() + 3).expect("a time near now");
    short["not_after"] = json!(end.to_string());
    let nonce = short["nonce"].as_str().expect("a nonce");
    assert_eq!(scripted.answer(&short)["status"], "succeeded");
    until("the acknowledgement in the state", BOUND, || {
        let done = state(&scripted.world)["commands"][nonce]["phase"]["done"].clone();
        (done["acknowledged"] == true).then_some(())
    });
    until("the window to be past", BOUND, || (Timestamp::now() > end).then_some(()));

    // Whatever makes it look at its records.
    assert_eq!(scripted.answer(&scripted.signer.apply("other", 2, &json!({})))["status"], "succeeded");
    let state = state(&scripted.world);
    assert_eq!(state["commands"].get(nonce), None);
    assert_eq!(time(&state["floor"]), end);
    assert_eq!(state["components"]["ingress"]["succeeded"], 1, "what is desired stays");
    let again = scripted.answer(&short);
    assert_eq!(again["reason"], "expired", "{again}");
    assert_eq!(again["recorded"], false);
}

#[test]
fn a_state_that_is_deleted_under_the_leader_is_written_again_from_memory() {
    let scripted = Scripted::start("deleted", &json!({}));
    let _agent = scripted.agent();
    let first = scripted.signer.apply("ingress", 1, &json!({ "replicas": 1 }));
    assert_eq!(scripted.answer(&first)["status"], "succeeded");
    let command_id = first["command_id"].as_str().expect("a command_id");
    until("the acknowledgement in the state", BOUND, || {
        let record = until_done(&scripted.world, command_id);
        (record["phase"]["done"]["acknowledged"] == true).then_some(())
    });
    let (status, answer) = scripted.world.cluster.admin().delete(&scripted.world.namespace.state_path());
    assert_eq!(status, 200, "{answer}");

    assert_eq!(scripted.answer(&scripted.signer.apply("other", 2, &json!({})))["status"], "succeeded");
    let state = state(&scripted.world);
    assert_eq!(state["lost_at"], Value::Null, "nothing was lost");
    assert!(record(&state, command_id).is_some());
    assert_eq!(state["components"]["ingress"]["succeeded"], 1);
    assert_eq!(scripted.answer(&first)["reason"], "nonce_replayed");
}

/// A webhook for ConfigMaps whose server is down answers so for hours.
#[test]
fn a_state_that_can_for_a_while_not_be_read_or_written_is_said_once_and_all_goes_on() {
    const TIMES: usize = 3;
    let wired = Wired::start("state-500", &json!({}));
    let fail = |method: &'static str| {
        let failed = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&failed);
        wired.wire.rule(move |call, reply| {
            let hit = reply.is_none() && call.is(method, STATE);
            if hit && counted.fetch_add(1, Ordering::Relaxed) < TIMES {
                return Fate::answer(500, "InternalError");
            }
            Fate::Pass
        });
        failed
    };
    let replica = wired.replica(POD);
    applied(&wired.world, "first", &json!({}));
    let unread = fail("GET");
    replica.agent.process().start_again();
    applied(&wired.world, "second", &json!({}));
    assert!(unread.load(Ordering::Relaxed) > TIMES);
    assert_eq!(replica.agent.count_log("the API server does not do it now"), 1);
    let unwritten = fail("PUT");
    applied(&wired.world, "third", &json!({}));
    assert!(unwritten.load(Ordering::Relaxed) > TIMES);
    assert_eq!(replica.agent.count_log("state write repeated"), 1);
    assert_eq!(state(&wired.world)["term"], 2, "it went on leading");
}
