//! What must hold of repairs: they back off, and they come.

use super::KEEPS;
use crate::api::Api;
use crate::checker::Checker;
use crate::faults::SECOND;
use crate::history::Sender;
use crate::manager::Manager;
use crate::sample::Sample;
use crate::world::World;
use jiff::SignedDuration;
use std::time::Duration;

const BACK_OFF: &str = "after five repairs in ten minutes a component is repaired every ten minutes";

/// Repairs within [`WINDOW`] after which a component counts as contested.
const REPAIRS: usize = 5;
const WINDOW: Duration = Duration::from_mins(10);
/// How long a drift may last: a watch that fell silent is given up after five minutes, and clocks may be slow.
const REPAIRED_WITHIN: SignedDuration = SignedDuration::from_mins(10);

impl Checker {
    /// A repair that changed something was answered at `at` (monotonic).
    pub(crate) fn repaired(&mut self, sender: &Sender, name: &str, at: Duration) {
        let reign = self.known.entry(sender.process).or_default().reign;
        let key = (sender.process, reign, name.to_owned());
        let repairs = self.repairs.entry(key).or_default();
        let recent = repairs.len().checked_sub(REPAIRS).and_then(|first| repairs.get(first..));
        let contested = recent.and_then(|recent| {
            let (first, last) = (*recent.first()?, *recent.last()?);
            (last.saturating_sub(first) < WINDOW && sender.sent.saturating_sub(last) < WINDOW).then_some(last)
        });
        repairs.push(at);
        if let Some(last) = contested {
            self.broken(BACK_OFF, format!("{name}: at {:?} after {last:?}", sender.sent));
        }
    }

    fn contested(&self, sample: &Sample, name: &str) -> bool {
        let reign = self.known.get(&sample.process).map_or(0, |known| known.reign);
        let key = (sample.process, reign, name.to_owned());
        self.repairs.get(&key).is_some_and(|repairs| repairs.len() >= REPAIRS)
    }

    /// A calm leader restores what differs, whether the manager is there or not.
    pub(crate) fn drifts_sampled(&mut self, sample: &Sample, api: &Api, manager: &Manager) {
        if sample.calm < 600 * SECOND || self.lossy() {
            return;
        }
        let Some(stored) = self.stored.clone() else { return };
        let old = |since: &jiff::Timestamp| self.now.duration_since(*since) > REPAIRED_WITHIN;
        let drifted: Vec<String> =
            self.drifted.iter().filter(|(_, since)| old(since)).map(|(name, _)| name.clone()).collect();
        for name in drifted {
            let free = stored.accepted(&name).next().is_none() && !World::going(api, &name);
            if !free || self.contested(sample, &name) {
                continue;
            }
            if let Some(what) = self.unwanted(&name, api, manager) {
                self.broken(KEEPS, what);
            }
        }
    }
}
