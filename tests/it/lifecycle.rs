//! How a replica starts, dies, ends and is followed by another.

use crate::gateway::Scripted;
use crate::lab::{BOUND, POD, applied, held_apply, let_go, live, outcome, record, state, succeeded};
use navin_test_support::{World, until};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn an_agent_that_is_killed_mid_work_completes_it_once_after_its_restart() {
    let world = World::start("killed", &json!({}));
    let agent = world.agent(POD);
    let command = held_apply(&world, &agent);
    agent.process().kill9();
    let transitions =
        |world: &World| world.namespace.lease().expect("a Lease")["spec"]["leaseTransitions"].as_u64();
    let (before, term) = (transitions(&world), state(&world)["term"].as_u64());

    agent.process().start_again();
    until("the takeover from itself", BOUND, || (state(&world)["term"].as_u64() > term).then_some(()));
    assert!(transitions(&world) > before, "to start again is a takeover");
    assert!(agent.leads(&world.namespace));
    let (nonce, _) = record(&state(&world), &command).expect("it is still recorded");
    let_go(&world, "ingress");
    let shown = outcome(&world, &command);
    let receipt = succeeded(&shown);
    assert_eq!(receipt["nonce"], nonce);
    let object = live(&world, "ingress");
    assert_eq!(object["metadata"]["generation"], 1, "written once");
    assert_eq!(object["spec"], json!({ "replicas": 2 }));
}

#[test]
fn an_agent_that_is_killed_after_its_write_knows_the_outcome_after_its_restart() {
    let scripted = Scripted::start("killed-done", &json!({}));
    let agent = scripted.agent();
    scripted.gateway.lose_answers(1);
    let payload = scripted.signer.apply("ingress", 1, &json!({ "replicas": 2 }));
    let first = scripted.answer(&payload);
    agent.process().kill9();
    let written = live(&scripted.world, "ingress");
    agent.process().start_again();
    let command_id = payload["command_id"].as_str().expect("a command_id");
    let receipts = until("the receipt from the state", BOUND, || {
        let receipts = scripted.gateway.receipts_of(command_id);
        (receipts.len() == 2).then_some(receipts)
    });
    assert_eq!(receipts, vec![first; 2]);
    assert_eq!(live(&scripted.world, "ingress")["metadata"]["generation"], written["metadata"]["generation"]);
}

#[test]
fn sigterm_in_a_long_poll_ends_the_agent_in_order_and_releases_the_lease() {
    let scripted = Scripted::start("sigterm", &json!({}));
    let agent = scripted.agent();
    scripted.gateway.wait_poll(0);
    let before = scripted.world.namespace.lease().expect("a Lease");
    agent.process().terminate();
    assert_eq!(
        agent.process().wait_exit(Duration::from_secs(5)),
        Some(0),
        "{}",
        agent.process().stderr_tail()
    );
    assert_eq!(scripted.world.namespace.leader(), None);
    let after = scripted.world.namespace.lease().expect("the Lease stays");
    assert_eq!(after["spec"]["leaseTransitions"], before["spec"]["leaseTransitions"]);
}

#[test]
fn a_follower_takes_over_within_three_seconds_of_an_orderly_end() {
    let world = World::start("follower", &json!({}));
    let first = world.agent(POD);
    first.wait_leads(&world.namespace, BOUND);
    let second = world.agent("agent-b");
    applied(&world, "ingress", &json!({ "replicas": 1 }));
    assert!(first.leads(&world.namespace), "a second replica follows");

    first.process().terminate();
    assert_eq!(first.process().wait_exit(Duration::from_secs(5)), Some(0));
    let released = Instant::now();
    second.wait_leads(&world.namespace, Duration::from_secs(3));
    assert!(released.elapsed() < Duration::from_secs(3));
    let receipt = applied(&world, "ingress", &json!({ "replicas": 2 }));
    assert_eq!(receipt["replica"], "agent-b");
    let state = state(&world);
    assert_eq!(state["holder"], second.holder());
    assert_eq!(state["term"], 2);
}

#[test]
fn a_follower_takes_over_from_a_leader_that_is_dead() {
    let world = World::start("dead", &json!({ "lease_duration_s": 3 }));
    let first = world.agent(POD);
    first.wait_leads(&world.namespace, BOUND);
    let second = world.agent("agent-b");
    second.wait_log("starting", BOUND);
    let command = held_apply(&world, &first);
    first.process().kill9();
    second.wait_leads(&world.namespace, Duration::from_secs(10));
    let_go(&world, "ingress");
    let receipt = succeeded(&outcome(&world, &command));
    assert_eq!(receipt["replica"], "agent-b");
    assert_eq!(live(&world, "ingress")["metadata"]["generation"], 1, "written once");
}

#[test]
fn a_leader_that_was_paused_past_its_lease_does_nothing_more_of_its_own() {
    let world = World::start("paused", &json!({ "lease_duration_s": 3 }));
    let first = world.agent(POD);
    first.wait_leads(&world.namespace, BOUND);
    applied(&world, "ingress", &json!({ "replicas": 1 }));
    let second = world.agent("agent-b");
    first.process().pause();
    second.wait_leads(&world.namespace, Duration::from_secs(15));
    until("its takeover", BOUND, || (state(&world)["holder"] == second.holder()).then_some(()));
    first.process().resume();
    let receipt = applied(&world, "ingress", &json!({ "replicas": 2 }));
    assert_eq!(receipt["replica"], "agent-b");
    first.wait_log("leader=false", BOUND);
    assert!(second.leads(&world.namespace));
    assert_eq!(state(&world)["holder"], second.holder());
    assert_eq!(live(&world, "ingress")["spec"], json!({ "replicas": 2 }));
}
