//! From `exec` to the Lease held, where nobody held it before.

use crate::Plan;
use crate::audit::Call;
use crate::lab::{BOUND, Lab, who};
use crate::table::{Goal, Row, Sample};
use crate::units::milliseconds;
use jiff::Timestamp;
use navin_test_support::{Agent, World, until};
use serde_json::json;

const LEASE: &str = "bench-start";

pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let world = lab.world("start", &json!({}));
    let agent = lab.ours(&world, "start");
    let [mut ours, mut go, mut kube_rs] = [const { Vec::new() }; 3];
    // The first of each warms the caches of the machine.
    for turn in 0..=plan.times(20) {
        let times = [of_ours(lab, &world, &agent), of_peer(lab, 0, turn), of_peer(lab, 1, turn)];
        if turn > 0 {
            for (all, time) in [&mut ours, &mut go, &mut kube_rs].into_iter().zip(times) {
                all.push(time);
            }
        }
    }
    vec![Row {
        what: "exec to Lease held: ms".into(),
        ours: Sample::of(ours),
        peers: vec![(lab.peers[0].name, Sample::of(go)), (lab.peers[1].name, Sample::of(kube_rs))],
        goals: vec![Goal::AtMost(8.0)],
        published: "Fleet 75, OCM work 309, Karmada 430, OCM registration 517",
        ..Row::default()
    }]
}

fn of_ours(lab: &Lab, world: &World, agent: &Agent) -> f64 {
    agent.process().kill9();
    for path in [world.namespace.lease_path(), world.namespace.state_path()] {
        lab.admin().delete(&path);
    }
    let started = Timestamp::now();
    agent.process().start_again();
    held(lab, &who(agent), started)
}

fn of_peer(lab: &Lab, peer: usize, turn: u32) -> f64 {
    lab.forget_lease(LEASE);
    let started = Timestamp::now();
    let replica = lab.theirs(&lab.peers[peer], &format!("start-{turn}"), LEASE, 1);
    held(lab, &replica.who, started)
}

/// Milliseconds until the answer to the first write of a Lease.
fn held(lab: &Lab, who: &str, started: Timestamp) -> f64 {
    let took = |call: &Call| call.resource == "leases" && call.writes() && call.succeeded();
    until("the Lease to be held", BOUND, || {
        let call = lab.audit.of(who, started).into_iter().find(took)?;
        Some(milliseconds(call.answered.duration_since(started).unsigned_abs()))
    })
}
