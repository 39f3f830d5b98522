//! No two replicas act at once. Each scenario is a public report about another program, named with it.

use crate::lab::{BOUND, outcome, queue, succeeded, until_event};
use crate::wired::{COMPONENTS, LEASE, Replica, SLACK, TERM, Wired, holder_in, writes_lease};
use navin_test_support::{Exchange, Fate, Gate, until};
use serde_json::json;
use std::time::Duration;

/// Two replicas, of which the first leads and the second has seen it.
fn pair(wired: &Wired) -> [Replica; 2] {
    let first = wired.replica("agent-a");
    wired.wire.wait("the first leader", 0, BOUND, |e| writes_lease(e) && e.took_effect());
    let second = wired.replica("agent-b");
    wired.wait_effect(0, BOUND, "agent-b", "GET", LEASE);
    [first, second]
}

/// cilium/cilium#42920, kubernetes/kubernetes#23731: after the deadline the rest of the leader went on acting.
#[test]
fn a_leader_that_cannot_reach_its_lease_has_stopped_before_another_begins() {
    let wired = Wired::short_lease("hanging-lease");
    let _replicas = pair(&wired);
    // Work all the time, so that whoever may act does.
    let mut number = 0;
    let mut work = || {
        number += 1;
        let arguments = json!({ "name": format!("c{}", number % 8), "spec": { "number": number } });
        queue(&wired.world, "managedcomponent.apply", &arguments);
    };
    let acts = |exchange: &Exchange, pod: &str| {
        let writes = exchange.call.mutates() && !writes_lease(exchange);
        writes && exchange.call.agent == pod && !exchange.call.resource().contains("/events")
    };
    until("the leader's work", BOUND, || {
        work();
        wired
            .wire
            .since(0)
            .iter()
            .any(|e| acts(e, "agent-a") && e.call.resource().contains("/c1"))
            .then_some(())
    });
    let (hanging, from) = (Gate::new(), wired.wire.len());
    let held = hanging.clone();
    wired.wire.rule(move |call, reply| match reply {
        None if call.agent == "agent-a" && call.resource().ends_with(LEASE) => Fate::Hold(held.clone()),
        _ => Fate::Pass,
    });
    until("the other's work", BOUND, || {
        work();
        let record = wired.wire.since(from);
        (record.iter().filter(|e| acts(e, "agent-b") && e.took_effect()).count() > 10).then_some(())
    });
    wired.wire.pass_all();
    hanging.cut();

    let record = wired.wire.since(0);
    let renewals = record.iter().filter(|e| e.call.agent == "agent-a" && writes_lease(e) && e.took_effect());
    let renewed = renewals.map(|e| e.call.at).max().expect("a renewal");
    let last = record.iter().filter(|e| acts(e, "agent-a")).map(|e| e.call.at).max().expect("work");
    let first = record.iter().filter(|e| acts(e, "agent-b")).map(|e| e.call.at).min().expect("work");
    let taken = record.iter().find(|e| e.call.agent == "agent-b" && writes_lease(e) && e.took_effect());
    let taken = taken.expect("the other took the Lease").call.at;
    // The permission counts from before the renewal was sent; the rest is how long a request takes to
    // reach the proxy.
    let acted = last.saturating_duration_since(renewed);
    assert!(acted < TERM * 2 / 3 + Duration::from_millis(750), "it acted {acted:?} after its last renewal");
    assert!(last < taken && taken < first, "never both");
    let waited = taken.duration_since(renewed);
    assert!((TERM..TERM + SLACK).contains(&waited), "{waited:?}");
}

/// The one write that can carry no precondition: it lands when its sender is long dead.
#[test]
fn a_create_of_a_dead_leader_that_lands_after_a_newer_delete_is_removed() {
    let wired = Wired::short_lease("late-create");
    let replicas = pair(&wired);
    let gate = Gate::new();
    let held = gate.clone();
    wired.wire.rule(move |call, reply| match reply {
        None if call.agent == "agent-a" && call.is("POST", COMPONENTS) => Fate::Hold(held.clone()),
        _ => Fate::Pass,
    });
    let apply = queue(&wired.world, "managedcomponent.apply", &json!({ "name": "late", "spec": { "n": 1 } }));
    gate.wait_reached(BOUND);
    replicas[0].agent.process().kill9();
    succeeded(&outcome(&wired.world, &apply));
    let deleted = succeeded(&wired.world.delete("late", BOUND));
    assert_eq!(deleted["replica"], "agent-b");
    assert_eq!(wired.world.namespace.component("late"), None);

    let from = wired.wire.len();
    gate.pass();
    let landed = wired.wait_effect(0, BOUND, "agent-a", "POST", COMPONENTS);
    let removed = wired.wait_effect(from, BOUND, "agent-b", "DELETE", "/late");
    let created = landed.reply.expect("an answer").json();
    let preconditions = removed.call.json()["preconditions"].clone();
    assert_eq!(preconditions["uid"], created["metadata"]["uid"]);
    until("the late component to be gone", BOUND, || {
        wired.world.namespace.component("late").is_none().then_some(())
    });
    let told = until_event(&wired.world, "LateCreateRemoved", 1);
    assert_eq!(told["involvedObject"]["name"], "late");
}

/// kubernetes/kubernetes#61151: two replicas of one name each saw their own Lease.
#[test]
fn replicas_of_one_name_are_told_apart_also_over_a_restart() {
    let wired = Wired::short_lease("same-name");
    let same = [("POD_NAME", "same"), ("POD_UID", "")];
    let first = wired.replica_with("agent-a", &same);
    until("the first leader", BOUND, || wired.world.namespace.leader());
    let second = wired.replica_with("agent-b", &same);
    wired.wait_effect(0, BOUND, "agent-b", "GET", LEASE);
    let holder = |replica: &Replica| {
        let log = replica.agent.process().stderr_text();
        let last = log.lines().rfind(|line| line.contains("starting")).expect("a start").to_owned();
        last.split("holder=").nth(1).expect("a holder").to_owned()
    };
    let (a, b) = (holder(&first), holder(&second));
    assert!(a.starts_with("same_") && b.starts_with("same_") && a != b, "{a} and {b}");
    assert_eq!(wired.world.namespace.leader().as_deref(), Some(a.as_str()));
    drop(second);

    // A new process in a pod of that name is not the old one: it waits as anybody does.
    let from = wired.wire.len();
    first.agent.process().start_again();
    let seen = wired.wait_effect(from, BOUND, "agent-a", "GET", LEASE).reply.expect("an answer").at;
    let take = wired.wait_effect(from, BOUND, "agent-a", "PUT", LEASE);
    assert!(take.call.at.duration_since(seen) >= TERM, "not at once");
    assert_eq!(holder_in(&take), holder(&first));
    assert_ne!(holder(&first), a);
}
