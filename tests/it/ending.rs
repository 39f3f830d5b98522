//! The end of a leader in order, with something in its way (openshift/machine-config-operator#3185: minutes
//! without a leader at each update).

use crate::lab::{BOUND, queue};
use crate::wired::{LEASE, Replica, STATE, Wired, holder_in, writes_lease};
use navin_test_support::{Call, Exchange, Fate, Gate, Reply};
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

/// Longest that an ending may take, whatever is in its way.
const END: Duration = Duration::from_secs(5);

/// A leader that waits in a long poll, and a follower.
struct Pair {
    leader: Replica,
    follower: Replica,
    wired: Wired,
}

fn pair(name: &str, lease_s: u64) -> Pair {
    let wired = Wired::start(name, &json!({ "lease_duration_s": lease_s }));
    let leader = wired.replica("agent-a");
    wired.wait_effect(0, BOUND, "agent-a", "PUT", STATE);
    wired.wire.wait("a long poll", 0, BOUND, |e| e.call.path.contains("wait_s=") && e.forwarded.is_some());
    let follower = wired.replica("agent-b");
    wired.wait_effect(0, BOUND, "agent-b", "GET", LEASE);
    Pair { leader, follower, wired }
}

impl Pair {
    /// SIGTERM to the leader; how long it took to end, which must be in time and in order.
    fn end(&self) -> Duration {
        let started = Instant::now();
        let process = self.leader.agent.process();
        process.terminate();
        assert_eq!(process.wait_exit(END), Some(0), "{}", process.stderr_tail());
        started.elapsed()
    }

    /// All that the leader wrote of the Lease.
    fn writes(&self) -> Vec<Exchange> {
        let record = self.wired.wire.since(0).into_iter();
        record.filter(|exchange| exchange.call.agent == "agent-a" && writes_lease(exchange)).collect()
    }
}

fn releases(call: &Call) -> bool {
    call.agent == "agent-a" && call.is("PUT", LEASE) && call.json()["spec"]["holderIdentity"] == ""
}

/// Does this at the leader's release, before it is passed on.
fn at_release(fate: Fate) -> impl FnMut(&Call, Option<&Reply>) -> Fate + Send + 'static {
    move |call, reply| if reply.is_none() && releases(call) { fate.clone() } else { Fate::Pass }
}

#[test]
fn the_lease_is_released_before_the_end_and_the_standby_leads_within_three_seconds() {
    let pair = pair("handover", 15);
    pair.end();
    let ended = Instant::now();
    let release = pair.writes().pop().expect("a release");
    assert!(release.took_effect() && holder_in(&release).is_empty());
    assert!(release.call.json()["metadata"]["resourceVersion"].is_string(), "guarded");
    let taken = pair.wired.wait_effect(release.call.number, BOUND, "agent-b", "PUT", LEASE);
    let acted = pair.wired.wait_effect(taken.call.number, BOUND, "agent-b", "PUT", STATE);
    assert!(taken.reply.expect("an answer").at.saturating_duration_since(ended) < Duration::from_secs(3));
    assert!(acted.call.at.saturating_duration_since(ended) < Duration::from_secs(3));
}

/// ray-project/ray#63773: a renewal in flight took the Lease back after the release.
#[test]
fn a_release_comes_after_a_renewal_that_is_under_way_and_nothing_after_the_release() {
    let pair = pair("late-renewal", 3);
    let (gate, from) = (Gate::new(), pair.wired.wire.len());
    let held = gate.clone();
    pair.wired.wire.rule(move |call, reply| match reply {
        None if call.agent == "agent-a" && call.is("PUT", LEASE) && !releases(call) => {
            Fate::Hold(held.clone())
        }
        _ => Fate::Pass,
    });
    gate.wait_reached(BOUND);
    thread::scope(|scope| {
        let ending = scope.spawn(|| pair.end());
        // Long enough for a hasty release to come first, shorter than the renewal's limit.
        thread::sleep(Duration::from_secs(1));
        gate.pass();
        ending.join().expect("the ending");
    });
    let writes = pair.writes();
    let after: Vec<String> = writes.iter().filter(|write| write.call.number >= from).map(holder_in).collect();
    assert_eq!(after, [pair.leader.agent.holder(), String::new()], "the renewal, then the release");
    assert!(writes.iter().all(Exchange::took_effect));
    let end = writes.last().expect("a release").call.number;
    let late = pair.wired.wire.since(end + 1);
    assert!(late.iter().all(|exchange| exchange.call.agent != "agent-a" || !exchange.call.mutates()));
}

#[test]
fn a_release_that_is_refused_or_unanswered_holds_up_no_ending() {
    let cases = [
        ("conflict", Fate::answer(409, "Conflict")),
        ("broken", Fate::answer(500, "InternalError")),
        ("hanging", Fate::Hold(Gate::new())),
        ("cut", Fate::Cut),
    ];
    thread::scope(|scope| {
        for (what, fate) in cases {
            scope.spawn(move || {
                let pair = pair(what, 3);
                pair.wired.wire.rule(at_release(fate));
                pair.end();
                let writes = pair.writes();
                assert_eq!(writes.iter().filter(|write| releases(&write.call)).count(), 1, "{what}");
                assert!(releases(&writes.last().expect("a write").call), "{what}: the last");
                // The other replica waits as for a leader that died.
                pair.follower.agent.wait_leads(&pair.wired.world.namespace, BOUND);
            });
        }
    });
}

#[test]
fn a_lease_that_is_deleted_at_that_moment_is_not_made_again_by_the_one_who_leaves() {
    let pair = pair("deleted-lease", 3);
    let gate = Gate::new();
    pair.wired.wire.rule(at_release(Fate::Hold(gate.clone())));
    thread::scope(|scope| {
        let ending = scope.spawn(|| pair.end());
        gate.wait_reached(BOUND);
        let world = &pair.wired.world;
        let (status, answer) = world.cluster.admin().delete(&world.namespace.lease_path());
        assert_eq!(status, 200, "{answer}");
        gate.pass();
        ending.join().expect("the ending");
    });
    let last = pair.writes().pop().expect("a release");
    assert!(releases(&last.call));
    let status = last.reply.expect("an answer").status;
    assert!(status == 404 || status == 409, "it was not made anew: {status}");
    let made = pair.wired.wire.wait("the other's Lease", last.call.number, BOUND, |exchange| {
        writes_lease(exchange) && exchange.took_effect()
    });
    assert_eq!(made.call.agent, "agent-b");
}

#[test]
fn a_write_of_the_state_that_hangs_holds_up_no_ending_and_the_lease_is_not_released_over_it() {
    // A write may take longer than the ending: a third of this, and a second.
    let pair = pair("hanging-write", 15);
    let gate = Gate::new();
    let held = gate.clone();
    pair.wired.wire.rule(move |call, reply| match reply {
        None if call.agent == "agent-a" && call.is("PUT", STATE) => Fate::Hold(held.clone()),
        _ => Fate::Pass,
    });
    queue(&pair.wired.world, "managedcomponent.apply", &json!({ "name": "c", "spec": {} }));
    gate.wait_reached(BOUND);
    pair.end();
    assert!(!pair.writes().iter().any(|write| releases(&write.call)), "it may still land");
    let log = pair.leader.agent.process().stderr_text();
    assert!(log.contains("lease not released"), "{log}");
    assert_eq!(pair.wired.world.namespace.leader(), Some(pair.leader.agent.holder()));
    gate.cut();
}
