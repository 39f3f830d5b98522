//! One namespace with two replicas, in which experiments follow one another.

use super::check;
use super::point::{self, Fault, Operation, Point, Step, Trap};
use crate::lab::queue;
use crate::wired::{LEASE, LEASE_S, REPORT, Replica, Wired, holder_in, state_in, writes_lease, writes_state};
use navin_test_support::Exchange;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest wait for anything: the lease, a second delivery (15 s), and a loaded machine.
const BOUND: Duration = Duration::from_mins(1);

/// How an experiment went.
pub(super) struct Outcome {
    /// From the fault to the write of the state that says that the manager has the receipt.
    pub(super) recovery: Duration,
    /// Which replica wrote that.
    pub(super) by: String,
}

/// The namespace, its two replicas, and what must be in it.
pub(super) struct Lane {
    replicas: [Replica; 2],
    wired: Wired,
    components: u32,
    /// Every component that must exist, with the `command_id` of its last apply.
    pub(super) expected: BTreeMap<String, String>,
}

impl Lane {
    pub(super) fn start() -> Self {
        // Reports come with a new leader and for `inventory.report`, not now and then.
        let wired =
            Wired::start("crash", &json!({ "lease_duration_s": LEASE_S, "report_interval_s": 86_400 }));
        let first = wired.replica("agent-a");
        wired
            .wire
            .wait("the first leader", 0, BOUND, |exchange| writes_lease(exchange) && exchange.took_effect());
        let second = wired.replica("agent-b");
        let lane = Self { replicas: [first, second], wired, components: 0, expected: BTreeMap::new() };
        lane.follows(0, "agent-b");
        lane.settle();
        lane
    }

    fn replica(&self, pod: &str) -> &Replica {
        self.replicas.iter().find(|replica| replica.agent.pod() == pod).expect("one of two replicas")
    }

    /// Who took the Lease last.
    fn leader(&self) -> String {
        let writes = self.wired.wire.since(0);
        let last = writes.iter().rev().find(|exchange| writes_lease(exchange) && exchange.took_effect());
        last.expect("a leader").call.agent.clone()
    }

    /// Waits until `follower` has looked at the Lease, from call `from` on.
    fn follows(&self, from: usize, follower: &str) {
        self.wired.wait_effect(from, BOUND, follower, "GET", LEASE);
    }

    /// Waits until the leader has sent the report with which a leadership begins: it does not get in the
    /// way of what follows.
    fn settle(&self) {
        let leader = self.leader();
        let writes = self.wired.wire.since(0);
        let taken = |exchange: &Exchange| writes_lease(exchange) && exchange.took_effect();
        let before = writes.iter().rposition(|exchange| taken(exchange) && exchange.call.agent != leader);
        self.wired.wait_effect(before.unwrap_or(0), BOUND, &leader, "POST", REPORT);
    }

    /// The calls of a command that nothing interrupts.
    pub(super) fn record(&mut self, operation: Operation) -> Vec<Step> {
        let name = self.prepare(operation);
        let leader = self.leader();
        let from = self.wired.wire.len();
        let command_id = self.command(operation, &name);
        self.acknowledged(from, &command_id);
        self.check(operation, &name, &command_id, None);
        let mut counts = BTreeMap::<String, usize>::new();
        let calls = self.wired.wire.since(0).into_iter().filter(|exchange| exchange.call.agent == leader);
        let mut steps = Vec::new();
        for exchange in calls {
            let Some(kind) = point::kind(operation, &name, &exchange.call) else { continue };
            // The poll that delivers was waiting before the command was queued.
            let late = exchange.call.number >= from || kind == "GET commands";
            if late && point::belongs(&kind, &command_id, exchange.reply.as_ref()) {
                let nth = counts.entry(kind.clone()).or_default();
                *nth += 1;
                steps.push(Step { kind, nth: *nth });
            }
        }
        steps
    }

    /// Runs an experiment; none where the leadership changed before the call came.
    pub(super) fn run(&mut self, point: &Point) -> Option<Outcome> {
        let name = self.prepare(point.operation);
        let (wire, victim) = (self.wired.wire.clone(), self.leader());
        let from = wire.len();
        let trap = Trap::set(&wire, point, &name, &victim);
        let command_id = self.command(point.operation, &name);
        // A call that is held or cut tells the wire nothing new, so the trap is looked at as well.
        let caught = navin_test_support::until("the call, or the end without it", BOUND, || {
            let over = || wire.since(from).iter().any(|exchange| acknowledges(exchange, &command_id));
            if let Some(number) = trap.sprung() { Some(Some(number)) } else { over().then_some(None) }
        });
        let Some(caught) = caught else {
            wire.pass_all();
            self.acknowledged(from, &command_id);
            self.check(point.operation, &name, &command_id, None);
            return None;
        };
        let fault = Instant::now();
        match point.fault {
            Fault::AnswerLost => {}
            Fault::KilledBefore | Fault::KilledAfter | Fault::RestartedAfter => {
                trap.gate.wait_reached(BOUND);
                self.replica(&victim).agent.process().kill9();
                trap.gate.cut();
                wire.pass_all();
                if point.fault == Fault::RestartedAfter {
                    self.replica(&victim).agent.process().start_again();
                }
            }
            Fault::Paused => {
                trap.gate.wait_reached(BOUND);
                self.replica(&victim).agent.process().pause();
                wire.pass_all();
            }
        }
        let end = self.acknowledged(from, &command_id);
        let recovery = end.reply.as_ref().map_or(fault, |reply| reply.at).saturating_duration_since(fault);
        self.check(point.operation, &name, &command_id, Some(point));
        match point.fault {
            Fault::AnswerLost | Fault::RestartedAfter => {}
            Fault::KilledBefore | Fault::KilledAfter => {
                let from = wire.len();
                self.replica(&victim).agent.process().start_again();
                self.follows(from, &victim);
            }
            Fault::Paused => {
                self.let_go(&trap, caught, &victim);
                self.check(point.operation, &name, &command_id, Some(point));
            }
        }
        self.settle();
        Some(Outcome { recovery, by: end.call.agent })
    }

    /// The late call of the paused leader lands, or tries to; then the leader goes on.
    fn let_go(&self, trap: &Trap, caught: usize, victim: &str) {
        let wire = &self.wired.wire;
        let from = wire.len();
        trap.gate.pass();
        let late = wire.wait("the late call's answer", caught, BOUND, |exchange| {
            exchange.call.number == caught && exchange.reply.is_some()
        });
        let to_cluster = late.call.mutates();
        assert!(!(to_cluster && late.took_effect()), "an older write landed: {:?}", late.call.path);
        self.replica(victim).agent.process().resume();
        self.follows(from, victim);
        let written = |exchange: &Exchange| exchange.call.agent == victim && exchange.call.mutates();
        for exchange in wire.since(from).iter().filter(|exchange| written(exchange)) {
            assert!(!exchange.took_effect(), "the former leader wrote {}", exchange.call.path);
        }
    }

    /// What the operation needs; the name that it is for.
    fn prepare(&mut self, operation: Operation) -> String {
        self.components += 1;
        let name = format!("c{}", self.components);
        if matches!(operation, Operation::Replace | Operation::Delete) {
            let from = self.wired.wire.len();
            let command_id = self.command(Operation::Create, &name);
            self.acknowledged(from, &command_id);
        }
        name
    }

    fn command(&mut self, operation: Operation, name: &str) -> String {
        let spec = check::spec(operation);
        let (verb, arguments) = match operation {
            Operation::Create | Operation::Replace => {
                ("managedcomponent.apply", json!({ "name": name, "spec": spec }))
            }
            Operation::Delete => ("managedcomponent.delete", json!({ "name": name })),
            Operation::Inventory => ("inventory.report", json!({})),
        };
        let command_id = queue(&self.wired.world, verb, &arguments);
        match operation {
            Operation::Create | Operation::Replace => {
                self.expected.insert(name.to_owned(), command_id.clone());
            }
            Operation::Delete => {
                self.expected.remove(name);
            }
            Operation::Inventory => {}
        }
        command_id
    }

    /// Waits until the state says that the manager has the receipt.
    fn acknowledged(&self, from: usize, command_id: &str) -> Exchange {
        let wanted = |exchange: &Exchange| acknowledges(exchange, command_id);
        self.wired.wire.wait("the acknowledgement in the state", from, BOUND, wanted)
    }

    fn check(&self, operation: Operation, name: &str, command_id: &str, point: Option<&Point>) {
        check::outcome(&self.wired.world, operation, name, command_id, point.map(|point| point.fault));
        check::nothing_left(&self.wired.world, &self.expected);
    }

    /// What holds over all that happened in this lane.
    pub(super) fn check_history(&self) {
        check::history(&self.wired.wire.since(0));
        for exchange in self.wired.wire.since(0).iter().filter(|exchange| writes_lease(exchange)) {
            assert!(!holder_in(exchange).is_empty(), "nobody was told to end");
        }
    }
}

/// Whether it makes the state say that the manager has the receipt of this command.
fn acknowledges(exchange: &Exchange, command_id: &str) -> bool {
    if !writes_state(exchange) || !exchange.took_effect() {
        return false;
    }
    let state = state_in(exchange).unwrap_or_default();
    let mut records = state["commands"].as_object().into_iter().flat_map(|records| records.values());
    records
        .any(|record| record["command_id"] == command_id && record["phase"]["done"]["acknowledged"] == true)
}
