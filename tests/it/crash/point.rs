//! Where a command is interrupted, and how.

use crate::wired::{COMMANDS, COMPONENTS, LEASE, LEASES, RECEIPTS, REPORT, STATE, STATES};
use navin_test_support::{Call, Fate, Gate, Reply, Server, Wire};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What is commanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// An apply of a name that does not exist.
    Create,
    /// An apply over a component of an earlier apply.
    Replace,
    /// A delete of such a component.
    Delete,
    /// `inventory.report`.
    Inventory,
}

/// What happens at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The leader is killed, and the call never reaches the server.
    KilledBefore,
    /// The leader is killed after the call took effect, before its answer.
    KilledAfter,
    /// As before, but the killed one starts again at once, and takes over from itself.
    RestartedAfter,
    /// The call took effect, its answer is lost.
    AnswerLost,
    /// The leader is stopped and its call held until another has done the work; then both go on.
    Paused,
}

/// The n-th call of its kind that belongs to the command, from 1. (Kinds are counted apart: the order of
/// calls of different threads may differ between two runs.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) kind: String,
    pub(super) nth: usize,
}

/// One experiment.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) operation: Operation,
    pub(super) step: Step,
    pub(super) fault: Fault,
    /// How often it was tried in vain, because the leadership changed before the call came.
    pub(super) missed: u32,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}", self.kind, self.nth)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, fault) = (format!("{:?}", self.operation), format!("{:?}", self.fault));
        write!(f, "{operation:<10} {:<28} {fault:<15}", self.step.to_string())
    }
}

impl Step {
    /// Whether the call changes something at a server.
    pub(super) fn writes(&self) -> bool {
        !self.kind.starts_with("GET ")
    }

    /// Whether, without it, the command is only known to the manager, which delivers it again after 15 s.
    pub(super) fn comes_before_acceptance(&self) -> bool {
        self.kind == "GET commands" || (self.kind == "PUT state" && self.nth == 1)
    }
}

/// What kind of call it is, if it belongs to a command: renewals of the Lease do not, nor does what the
/// reporter reads and sends unless the command is for it.
pub(super) fn kind(operation: Operation, component: &str, call: &Call) -> Option<String> {
    let resource = call.resource();
    let name = if resource.ends_with(COMMANDS) {
        "commands"
    } else if resource.ends_with(RECEIPTS) {
        "receipt"
    } else if resource.ends_with(STATE) || resource.ends_with(STATES) {
        "state"
    } else if resource.ends_with(LEASE) || resource.ends_with(LEASES) {
        if call.method != "GET" {
            return None;
        }
        "lease"
    } else if call.method == "POST" && resource.ends_with(COMPONENTS)
        || resource.ends_with(&format!("{COMPONENTS}/{component}"))
    {
        "component"
    } else if call.path.contains("watch=") || is_one_component(resource) || resource.contains("/events") {
        // What was approved before is looked after, and people are told.
        return None;
    } else if operation != Operation::Inventory {
        return None;
    } else if resource.ends_with(REPORT) {
        "report"
    } else {
        resource.rsplit('/').next().unwrap_or_default()
    };
    Some(format!("{} {name}", call.method))
}

fn is_one_component(resource: &str) -> bool {
    resource.rsplit_once('/').is_some_and(|(collection, _)| collection.ends_with(COMPONENTS))
}

/// Whether a call of this kind belongs to the command; of the polls only the one that delivers it does.
pub(super) fn belongs(kind: &str, command_id: &str, reply: Option<&Reply>) -> bool {
    let delivers = || {
        let text = reply.map(|reply| String::from_utf8_lossy(&reply.body).into_owned());
        text.is_some_and(|text| text.contains(command_id))
    };
    kind != "GET commands" || delivers()
}

/// Watches for the point's call of `victim`, and applies its fault there. Calls of others pass.
pub(super) struct Trap {
    pub(super) gate: Gate,
    sprung: Arc<Mutex<Option<usize>>>,
}

impl Trap {
    /// Sets it. The command is queued afterwards; the polls that deliver something deliver it.
    pub(super) fn set(wire: &Wire, point: &Point, component: &str, victim: &str) -> Self {
        let (gate, sprung) = (Gate::new(), Arc::new(Mutex::new(None)));
        let trap = Self { gate: gate.clone(), sprung: Arc::clone(&sprung) };
        let (point, component, victim) = (point.clone(), component.to_owned(), victim.to_owned());
        let mut seen = 0;
        wire.rule(move |call, reply| {
            let mut sprung = sprung.lock().unwrap_or_else(PoisonError::into_inner);
            let kind = kind(point.operation, &component, call);
            if call.agent != victim || kind.as_ref() != Some(&point.step.kind) {
                return Fate::Pass;
            }
            let poll = call.server == Server::Gateway && call.method == "GET";
            match reply {
                None if poll => return Fate::Pass,
                Some(reply) if poll && reply.json()["commands"].as_array().is_none_or(Vec::is_empty) => {
                    return Fate::Pass;
                }
                None => seen += 1,
                Some(_) if poll => seen += 1,
                Some(_) => {}
            }
            let before = matches!(point.fault, Fault::KilledBefore | Fault::Paused);
            // A poll is caught with its answer: before, there is no command yet.
            let here = before == reply.is_none() || poll;
            let first = sprung.is_none_or(|number| number == call.number);
            if seen != point.step.nth || !here || !first {
                return Fate::Pass;
            }
            *sprung = Some(call.number);
            if point.fault == Fault::AnswerLost { Fate::Cut } else { Fate::Hold(gate.clone()) }
        });
        trap
    }

    /// The number of the call that was caught, if one was.
    pub(super) fn sprung(&self) -> Option<usize> {
        *self.sprung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
