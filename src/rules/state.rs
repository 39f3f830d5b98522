//! What must outlive the leader: the recorded commands and the desired state. CONTRACT section 6.
//!
//! Invariants: a nonce has at most one record, and its first receipt never changes; a record is
//! dropped only when its window is past and its receipt is acknowledged, and `floor` remembers that;
//! nothing else is dropped, and what would not fit is not accepted.

use super::json::derived::{self, Raw};
use super::messages::{Receipt, Source};
use super::names::{CommandId, ComponentName, Nonce, Sequence, time};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

mod outcome;
mod read;
mod size;
#[cfg(test)]
mod tests;

pub use outcome::{Effect, RecordError};
pub use read::StateError;
pub use size::{APPLY_LIMIT, DESIRED_LIMIT, OTHER_LIMIT, STATE_LIMIT};

/// The version of the state that this agent reads and writes.
pub const STATE_VERSION: u64 = 1;

/// The state, as `state.json` of the `ConfigMap` holds it. CONTRACT section 6.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    version: u64,
    /// Rises with each takeover.
    pub term: u64,
    /// Who wrote it last.
    pub holder: String,
    /// Made by the first of the two steps; nothing is accepted before the second.
    pub unfinished: bool,
    /// The latest `not_after` of any record that was dropped.
    #[serde(with = "time::optional")]
    pub floor: Option<Timestamp>,
    /// When a state before this one was found lost.
    #[serde(with = "time::optional")]
    pub lost_at: Option<Timestamp>,
    /// The highest sequence that was ever recorded; 0 before the first.
    pub highest_sequence: u64,
    #[serde(deserialize_with = "derived::map")]
    commands: BTreeMap<Nonce, Record>,
    #[serde(deserialize_with = "derived::map")]
    components: BTreeMap<ComponentName, Component>,
}

/// One recorded command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The manager's identifier.
    pub command_id: CommandId,
    /// Its place in the order of approval.
    pub sequence: Sequence,
    /// The end of its window.
    #[serde(with = "time")]
    pub not_after: Timestamp,
    /// Where it came from first.
    pub source: Source,
    /// How far it is.
    pub phase: Phase,
    /// Its length as JSON.
    #[serde(skip)]
    bytes: usize,
    /// Of its command, while it is accepted.
    #[serde(skip)]
    asks: Asks,
}

/// What an accepted command asks for, as far as it matters to others.
#[derive(Debug, Clone, Default, PartialEq)]
struct Asks {
    /// The component that it writes.
    name: Option<ComponentName>,
    brings_spec: bool,
    may_create: bool,
    /// What its arguments take of memory, in units of 32 bytes.
    weight: usize,
}

/// How far a recorded command is.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// To be executed, or begun.
    Accepted {
        /// To be verified again before it is used.
        envelope: Raw,
    },
    /// Ended.
    Done {
        /// The one outcome.
        receipt: Box<Receipt>,
        /// Whether the manager has it, or never will take it.
        acknowledged: bool,
    },
}

/// Without envelope and receipt.
impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { .. } => f.write_str("Accepted"),
            Self::Done { receipt, acknowledged } => write!(f, "Done({:?}, {acknowledged})", receipt.status),
        }
    }
}

/// What is known of one component name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// The sequence of the last command for this name that succeeded; 0 where none did.
    pub succeeded: u64,
    /// What the component is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Desired>,
    /// A tombstone (nothing is desired), or the mark of a command that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// Its length as JSON.
    #[serde(skip)]
    bytes: usize,
}

/// What a component is to be, and our last write of it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Desired {
    /// The signed envelope, to be verified again before it is used.
    pub envelope: Raw,
    /// The sequence of its command.
    pub sequence: u64,
    /// The uid of the object that we wrote last.
    pub uid: String,
    /// Its generation after that write.
    pub generation: i64,
}

/// Without the envelope.
impl fmt::Debug for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Desired({}, {:?}, {})", self.sequence, self.uid, self.generation)
    }
}

/// A create at or below this sequence is late: it was lost, and landed after it was given up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// The sequence of the delete, or of the apply that failed.
    pub sequence: u64,
    /// When no such create can come any more.
    #[serde(with = "time")]
    pub forget_after: Timestamp,
}

/// How much there is of what, for the report. CONTRACT section 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Recorded commands.
    pub records: usize,
    /// Those that are being executed.
    pub accepted: usize,
    /// Those whose receipt the manager has not acknowledged.
    pub receipts_waiting: usize,
    /// Components that are desired.
    pub desired: usize,
}

impl State {
    /// A state with nothing in it, as the first of the two steps of its creation writes it.
    #[must_use]
    pub fn new(term: u64, holder: &str) -> Self {
        Self {
            version: STATE_VERSION,
            term,
            holder: holder.to_owned(),
            unfinished: true,
            floor: None,
            lost_at: None,
            highest_sequence: 0,
            commands: BTreeMap::new(),
            components: BTreeMap::new(),
        }
    }

    /// The text of `state.json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Nothing in it can fail to be written: no map has other keys than texts.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The record of a nonce.
    #[must_use]
    pub fn record(&self, nonce: &Nonce) -> Option<&Record> {
        self.commands.get(nonce)
    }

    /// The commands to be executed or begun, with their envelopes.
    pub fn accepted(&self) -> impl Iterator<Item = (&Nonce, &Record, &Raw)> {
        self.commands.iter().filter_map(|(nonce, record)| match &record.phase {
            Phase::Accepted { envelope } => Some((nonce, record, envelope)),
            Phase::Done { .. } => None,
        })
    }

    /// The receipts that the manager has not acknowledged, in the order in which they were given; of one
    /// second, in the order of approval.
    pub fn waiting_receipts(&self) -> impl Iterator<Item = (&Nonce, &Receipt)> {
        let mut waiting: Vec<_> = self
            .commands
            .iter()
            .filter_map(|(nonce, record)| match &record.phase {
                Phase::Done { receipt, acknowledged: false } => Some((record.sequence, nonce, &**receipt)),
                Phase::Done { acknowledged: true, .. } | Phase::Accepted { .. } => None,
            })
            .collect();
        waiting.sort_by_key(|(sequence, _, receipt)| (receipt.executed_at, *sequence));
        waiting.into_iter().map(|(_, nonce, receipt)| (nonce, receipt))
    }

    /// The accepted command of a component name: of one name there is at most one.
    #[must_use]
    pub fn busy(&self, name: &ComponentName) -> Option<&Nonce> {
        self.commands
            .iter()
            .find(|(_, record)| record.asks.name.as_ref() == Some(name))
            .map(|(nonce, _)| nonce)
    }

    /// What is known of a component name.
    #[must_use]
    pub fn component(&self, name: &ComponentName) -> Option<&Component> {
        self.components.get(name)
    }

    /// All component names that are known, in order.
    pub fn components(&self) -> impl Iterator<Item = (&ComponentName, &Component)> {
        self.components.iter()
    }

    /// Whether an object that says it was created by `created` is a create of ours that landed late:
    /// at or below its name's mark, and not what is desired now or was before. CONTRACT section 6.
    #[must_use]
    pub fn is_late_create(&self, name: &ComponentName, created: u64) -> bool {
        let Some(component) = self.components.get(name) else { return false };
        let marked = component.mark.is_some_and(|mark| created <= mark.sequence);
        marked && component.desired.as_ref().is_none_or(|desired| created > desired.sequence)
    }

    /// How much there is of what.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            records: self.commands.len(),
            accepted: self.accepted().count(),
            receipts_waiting: self.waiting_receipts().count(),
            desired: self.components.values().filter(|component| component.desired.is_some()).count(),
        }
    }
}
