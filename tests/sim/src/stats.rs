//! What is counted.

use crate::faults::CALL_KINDS;
use std::collections::BTreeMap;

/// Counts of one run, or of many.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Events.
    pub steps: u64,
    /// Processes that ended without being asked to.
    pub crashes: u64,
    /// Leases won.
    pub failovers: u64,
    /// Writes that changed a component.
    pub writes: u64,
    /// Outcomes that were recorded.
    pub outcomes: BTreeMap<String, u64>,
    /// Faults of single calls, by kind.
    pub calls: [u64; CALL_KINDS.len()],
    /// Larger troubles, by kind.
    pub troubles: BTreeMap<&'static str, u64>,
    /// Answers in the inboxes, by reason or status.
    pub files: BTreeMap<String, u64>,
    /// Runs in which state or Lease was deleted or edited.
    pub apart: u64,
    /// Seconds of virtual time.
    pub virtual_seconds: u64,
    /// Creates that landed late and were removed.
    pub late_creates: u64,
}

impl Stats {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.crashes += other.crashes;
        self.failovers += other.failovers;
        self.writes += other.writes;
        for (reason, count) in &other.outcomes {
            *self.outcomes.entry(reason.clone()).or_default() += count;
        }
        for (sum, count) in self.calls.iter_mut().zip(other.calls) {
            *sum += count;
        }
        for (name, count) in &other.troubles {
            *self.troubles.entry(name).or_default() += count;
        }
        for (reason, count) in &other.files {
            *self.files.entry(reason.clone()).or_default() += count;
        }
        self.apart += other.apart;
        self.virtual_seconds += other.virtual_seconds;
        self.late_creates += other.late_creates;
    }
}
