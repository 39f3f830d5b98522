//! What is remembered of calls, commands and processes, to judge what they do later.

use crate::invariants::link::Periods;
use crate::stored::Stored;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// An invariant that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: &'static str,
    /// How.
    pub what: String,
}

/// Why a component is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Act {
    /// For an accepted command.
    #[default]
    Command,
    /// To restore what is desired.
    Repair,
    /// To remove a create that landed late.
    Sweep,
}

/// Who sent a call, and what was known when it left.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    /// The number of its process.
    pub process: u64,
    /// Which of its threads.
    pub thread: usize,
    /// Under which tenure, by its place in history; 0 for none.
    pub tenure: usize,
    /// When it was sent, on the process's monotonic clock.
    pub sent: Duration,
    /// The command that a write to a component belongs to.
    pub under: Option<String>,
    /// Why it is sent.
    pub act: Act,
    /// The sequence of the name's mark in the state as its sender knew it.
    pub mark: u64,
    /// The state that it writes.
    pub writes: Option<Arc<Stored>>,
    /// The state that its answer shows.
    pub view: Option<Option<Arc<Stored>>>,
    /// Its answer, if it succeeds, is the end of a command.
    pub ends: bool,
    /// The component that it repaired.
    pub repaired: Option<String>,
}

/// All that is known of one command.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) name: Option<String>,
    pub(crate) operation: String,
    pub(crate) sequence: u64,
    /// Its acceptance is in the store.
    pub(crate) accepted: bool,
    /// The receipt that was recorded first.
    pub(crate) outcome: Option<Value>,
    /// When that was, in true time.
    pub(crate) ended_at: Option<Timestamp>,
    /// Creates of it. One may land between the reading that its failure rests on and the record: a late create.
    pub(crate) creates: u32,
    /// Replacements of its spec that changed something.
    pub(crate) replaces: u32,
    /// Deletes of it that changed something.
    pub(crate) deletes: u32,
    /// Since it was accepted, the component was absent or being deleted at some time.
    pub(crate) gone: bool,
    /// Since it was accepted, somebody else made, changed or deleted the component.
    pub(crate) by_hand: bool,
    /// The manager has its recorded receipt, or has said that it will never take it.
    pub(crate) acknowledged: bool,
}

impl Story {
    /// Whether it is recorded as a success.
    pub(crate) fn succeeded(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome["status"] == "succeeded")
    }
}

/// What one process knows, as far as its calls tell.
#[derive(Default)]
pub(crate) struct Known {
    /// The state as its leader thread last read or wrote it.
    pub(crate) view: Option<Arc<Stored>>,
    /// When the last request that the gateway answered 2xx was sent.
    pub(crate) answered: Option<Duration>,
    /// Nonces whose acceptance or refusal it has sent.
    pub(crate) accepting: BTreeSet<String>,
    /// When the last reading of the Lease that was answered was sent.
    pub(crate) lease_read: Option<Duration>,
    /// When the last reading of each component was answered.
    pub(crate) component_read: BTreeMap<String, Duration>,
    /// Since when an outcome waits to be recorded.
    pub(crate) ended: Option<Duration>,
    /// Something was in the way of its calls to the API server.
    pub(crate) disturbed: bool,
    /// How often its leader thread has read the state.
    pub(crate) reign: u64,
    /// When it was offline.
    pub(crate) periods: Periods,
}
