//! From a signal to the leader until the other replica has acted: has written an object that is not its Lease.

use crate::Plan;
use crate::audit::Call;
use crate::lab::{BOUND, Lab, who};
use crate::table::{Goal, Row, Sample};
use jiff::Timestamp;
use navin_test_support::{Agent, Process, until};
use serde_json::json;
use std::thread::{self, sleep};
use std::time::Duration;

/// Seconds of [SIGKILL, SIGTERM] of one pair.
type Times = [f64; 2];

/// Leases of 15 s, all pairs side by side, each with its signals at a moment of its own between two renewals.
pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let lanes = plan.times(8);
    let measured: [Vec<Times>; 3] = thread::scope(|scope| {
        let start = |lane: fn(&Lab, u32, f64) -> Times| {
            let lane = move |number| {
                let part = f64::from(number) / f64::from(lanes);
                scope.spawn(move || lane(lab, number, part))
            };
            (0..lanes).map(lane).collect::<Vec<_>>()
        };
        [
            start(ours),
            start(|lab, number, part| theirs(lab, 0, number, part)),
            start(|lab, number, part| theirs(lab, 1, number, part)),
        ]
        .map(|threads| threads.into_iter().map(|thread| thread.join().expect("a pair")).collect())
    });
    let row = |what: &str, signal: usize, goals: [f64; 2], published| {
        let sample = |contender: usize| Sample::of(measured[contender].iter().map(|times| times[signal]));
        Row {
            what: format!("{what} to the next leader's first act: s"),
            ours: sample(0),
            peers: vec![(lab.peers[0].name, sample(1)), (lab.peers[1].name, sample(2))],
            goals: vec![Goal::AtMost(goals[0]), Goal::WorstAtMost(goals[1])],
            published,
            ..Row::default()
        }
    };
    vec![
        row("kill -9 (Lease of 15 s)", 0, [16.0, 17.0], "OCM work 148 and 173 (Lease of 137 s)"),
        row("SIGTERM", 1, [1.2, 2.2], "OCM work 31 and 34; Karmada and Fleet do not release"),
    ]
}

/// A component is commanded when the leader is gone: the first act is its creation.
fn ours(lab: &Lab, number: u32, part: f64) -> Times {
    let world = lab.world(&format!("failover-{number}"), &json!({}));
    let agents = ["agent-0", "agent-1"].map(|pod| lab.ours(&world, pod));
    let begun = Timestamp::now();
    let leader = until("a leader", BOUND, || agents.iter().position(|agent| agent.leads(&world.namespace)));
    [(leader, true), (1 - leader, false)].map(|(leading, kill)| {
        let (old, next) = (&agents[leading], &agents[1 - leading]);
        follows(lab, next, begun);
        sleep(Duration::from_secs_f64(1.0 + 5.0 * part));
        let sent = end(old.process(), kill);
        // Else it might still be the old one that is given the command.
        assert!(old.process().wait_exit(BOUND).is_some(), "a replica that ends");
        let arguments = json!({ "name": format!("c-{kill}"), "spec": crate::lab::spec(number) });
        world.manager.command(world.cluster_id(), "managedcomponent.apply", &arguments);
        let time = first_act(lab, &who(next), "managedcomponents", sent);
        restart(old, lab);
        time
    })
}

/// Starts a replica again, and waits until it follows.
fn restart(agent: &Agent, lab: &Lab) {
    let again = Timestamp::now();
    agent.process().start_again();
    follows(lab, agent, again);
}

fn follows(lab: &Lab, agent: &Agent, since: Timestamp) {
    let who = who(agent);
    until("a replica to look at the Lease", BOUND, || {
        lab.audit
            .of(&who, since)
            .iter()
            .any(|call| call.resource == "leases" && call.succeeded())
            .then_some(())
    });
}

/// Each applies one thing as soon as it leads.
fn theirs(lab: &Lab, peer: usize, number: u32, part: f64) -> Times {
    let peer = &lab.peers[peer];
    let lease = format!("bench-failover-{}-{number}", peer.name);
    let start = |id: &str| lab.theirs(peer, &format!("{number}-{id}"), &lease, 1);
    let first = start("first");
    first.wait("first-act", BOUND);
    let second = start("second");
    second.wait("start", BOUND);
    sleep(Duration::from_secs_f64(6.0 + 5.0 * part));
    let sent = end(&first.process, true);
    let killed = first_act(lab, &second.who, "things", sent);
    let third = start("third");
    third.wait("start", BOUND);
    sleep(Duration::from_secs_f64(6.0 + 5.0 * part));
    let sent = end(&second.process, false);
    [killed, first_act(lab, &third.who, "things", sent)]
}

fn end(process: &Process, kill: bool) -> Timestamp {
    let sent = Timestamp::now();
    if kill {
        process.kill9();
    } else {
        process.terminate();
    }
    sent
}

/// Seconds until a write of the resource was answered.
fn first_act(lab: &Lab, who: &str, resource: &str, sent: Timestamp) -> f64 {
    let act = |call: &Call| call.resource == resource && call.writes() && call.succeeded();
    until("the next leader to act", BOUND, || {
        let call = lab.audit.of(who, sent).into_iter().find(act)?;
        Some(call.answered.duration_since(sent).as_secs_f64())
    })
}
