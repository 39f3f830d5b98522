//! One row at one peer: the fault, what went on in it, and what is right or wrong afterwards.

use crate::inject::Running;
use crate::lane::{BOUND, FIRST, Lane, SECOND};
use crate::rows::{Asked, Fault, Row};
use navin_test_support::{Door, Gate, Reading, Server, until};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// Most calls of both replicas in a minute that the API server is asked for. At rest there are about 190 with
/// this Lease of 3 s. A leader that cannot renew tries again every fifteenth of it, until it has lost the Lease.
const API_CALLS: u64 = 600;
/// What the repairs come to while the leader alone is hit: 86 a minute, and at most seven calls each.
const REPAIR_CALLS: u64 = 600;
/// Most calls of the gateway: three threads of one leader, each with pauses of at least a second, and what follows an
/// answer with commands at once.
const GATEWAY_CALLS: u64 = 4 * 60;
/// What the log says of a call that was surely not made.
const NO_CONNECTION: &str = "no connection: ";
/// Between two changes by hand while the leader alone is hit.
const HANDS: Duration = Duration::from_millis(700);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// What one cell of the table says.
#[derive(Default)]
pub(crate) struct Cell {
    /// From the fault's end until all was done; none where it was done before, or never.
    pub(crate) recovered: Option<Duration>,
    pub(crate) during: bool,
    pub(crate) calls_per_minute: u64,
    pub(crate) lost: u32,
    pub(crate) doubled: u32,
    pub(crate) takes: usize,
    pub(crate) worst: Reading,
    /// What is wrong.
    pub(crate) wrong: Vec<String>,
}

impl Cell {
    /// That of a row that could not be tried to its end.
    pub(crate) fn failed(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Self { wrong: vec![text.unwrap_or_else(|| "it broke off".to_owned())], ..Self::default() }
    }
}

/// The work that is under way in a row.
pub(crate) struct Work {
    pub(crate) first: String,
    pub(crate) second: Option<String>,
    drifted: bool,
    pub(crate) spec: Value,
    pub(crate) generations: [i64; 2],
}

impl Lane {
    /// Tries a row.
    pub(crate) fn run(&mut self, row: &Row, hold: Duration) -> Cell {
        self.number += 1;
        let leader = self.rest();
        let lane = &*self;
        // The watch pauses for up to 30 s after a fault of the row before: it is to see again.
        lane.drift();
        until("the watch to see again", 2 * BOUND, || lane.drift_is_gone().then_some(()));
        let (before, pids) = (lane.readings(), lane.pids());
        pids.into_iter().for_each(Reading::reset_peak);
        let lease = lane.world.namespace.lease().unwrap_or_default();
        let mark = lane.wire.len();
        let (mut work, gate) = lane.begin_work(row);

        let from = (lane.wire.len(), lane.accepted(row.peer), lane.failures());
        let unsent = lane.count_log(NO_CONNECTION);
        let mut fault = Running::begin(lane, &row.fault, row.peer, row.alone.then_some(leader));
        let began = Instant::now();
        gate.cut();
        lane.go_on_with(&mut work, |peer| row.reaches(peer));
        let mut hands = Instant::now();
        while began.elapsed() < hold.max(row.least_hold()) {
            fault.go_on();
            // So that there is something to do for one that should not lead any more.
            if row.alone && hands.elapsed() >= HANDS {
                hands = Instant::now();
                lane.drift();
            }
            thread::sleep(LOOK);
        }
        let lasted = began.elapsed();
        let calls = lane.calls(row, from);
        let calls_per_minute = calls * 60_000 / u64::try_from(lasted.as_millis()).unwrap_or(1).max(1);
        let mut cell = Cell { calls_per_minute, ..Cell::default() };
        if row.says_no_connection() && lane.count_log(NO_CONNECTION) == unsent {
            cell.wrong.push("no log line says that there was no connection".to_owned());
        }
        lane.check_in_it(row, &work, leader, &mut cell);
        fault.end();

        lane.go_on_with(&mut work, |_| true);
        lane.check_recovery(row, &work, &mut cell);
        lane.check_outcomes(&work, &mut cell);
        lane.check_leadership(row, mark, &lease, &mut cell);
        // A watch that fell silent is given up after 300 s (docs/ARCHITECTURE.md): no row begins with one.
        lane.proxies(row.peer, None).iter().for_each(|proxy| proxy.reset());
        lane.check_readings(&before, pids, &mut cell);
        cell
    }

    /// Queues the first command, and holds it where its answer is about to come.
    fn begin_work(&self, row: &Row) -> (Work, Gate) {
        let spec = json!({ "row": self.number, "list": [1, { "text": "ü" }] });
        let generations = [FIRST, SECOND].map(|name| self.generation(name));
        let (first, gate) = self.hold_first(row.peer, &spec);
        (Work { first, second: None, drifted: false, spec, generations }, gate)
    }

    /// Queues the second, and changes a component by hand, where that is reached and was not done.
    fn go_on_with(&self, work: &mut Work, reaches: impl Fn(Server) -> bool) {
        if work.second.is_none() && reaches(Server::Gateway) {
            work.second = Some(self.queue(SECOND, &work.spec));
        }
        if !work.drifted && reaches(Server::Api) {
            work.drifted = true;
            self.drift();
        }
    }

    /// What must be so before the fault is over.
    fn check_in_it(&self, row: &Row, work: &Work, leader: usize, cell: &mut Cell) {
        cell.during = row.reaches(Server::Gateway) && row.reaches(Server::Api) && self.is_done(work);
        if row.asked == Asked::Undisturbed && !cell.during {
            cell.wrong.push(format!("not done while it lasted: {}", self.what_is_left(work)));
        }
        if row.peer == Server::Gateway && !self.drift_is_gone() {
            cell.wrong.push("the drift was not repaired without the manager".to_owned());
        }
        if row.alone && self.leader() != Some(1 - leader) {
            cell.wrong.push("the other replica does not lead".to_owned());
        }
        let most = match row.peer {
            Server::Api if row.alone => API_CALLS + REPAIR_CALLS,
            Server::Api => API_CALLS,
            Server::Gateway => GATEWAY_CALLS,
        };
        if cell.calls_per_minute > most {
            cell.wrong
                .push(format!("{} calls a minute, and at most {most} are right", cell.calls_per_minute));
        }
    }

    /// Waits until all is done, or was to be.
    fn check_recovery(&self, row: &Row, work: &Work, cell: &mut Cell) {
        let ended = Instant::now();
        let bound = match row.asked {
            Asked::Within(bound) => bound,
            Asked::Undisturbed => return,
        };
        while !self.is_done(work) {
            if ended.elapsed() > bound {
                let left = self.what_is_left(work);
                cell.wrong.push(format!("not done within {} s: {left}", bound.as_secs()));
                return;
            }
            thread::sleep(LOOK);
        }
        cell.recovered = (!cell.during).then(|| ended.elapsed());
    }

    pub(crate) fn pids(&self) -> [u32; 2] {
        [0, 1].map(|number| self.replicas[number].agent.process().pid())
    }

    fn accepted(&self, peer: Server) -> u64 {
        self.proxies(peer, None).iter().map(|proxy| proxy.accepted()).sum()
    }

    /// How many calls failed without one that a proxy could see, by the replicas' logs.
    fn failures(&self) -> usize {
        self.count_log(NO_CONNECTION) + self.count_log("no answer: ")
    }

    /// Calls, or else what came before one: connections, or look-ups of names.
    fn calls(&self, row: &Row, (mark, accepted, failures): (usize, u64, usize)) -> u64 {
        let seen = self.wire.since(mark);
        let calls = seen.iter().filter(|exchange| exchange.call.server == row.peer).count() as u64;
        match row.fault {
            Fault::Door(Door::Closed) | Fault::Name(_) => (self.failures() - failures) as u64,
            Fault::Door(_) | Fault::Certificate(_) => self.accepted(row.peer) - accepted,
            _ => calls,
        }
    }

    pub(crate) fn generation(&self, name: &str) -> i64 {
        let live = self.world.namespace.component(name).unwrap_or_default();
        live["metadata"]["generation"].as_i64().unwrap_or(0)
    }

    pub(crate) fn shown(&self, command: &str) -> Value {
        self.world.manager.command_status(self.world.cluster_id(), command)
    }

    fn is_done(&self, work: &Work) -> bool {
        let ended = |command: &String| {
            let shown = self.shown(command);
            shown["status"] != "queued" && shown["status"] != "delivered"
        };
        self.drift_is_gone()
            && self.leader().is_some()
            && ended(&work.first)
            && work.second.as_ref().is_some_and(ended)
    }

    fn what_is_left(&self, work: &Work) -> String {
        let status = |command: &String| self.shown(command)["status"].to_string();
        format!(
            "first {}, second {}, drift {}, leader {:?}",
            status(&work.first),
            work.second.as_ref().map(status).unwrap_or_default(),
            if self.drift_is_gone() { "repaired" } else { "not repaired" },
            self.leader()
        )
    }
}
