//! What must not last: a leader without the manager, a file without an answer, a component that differs. Judged
//! every few seconds, of leaders that nothing has been in the way of for long enough.

use crate::api::Kind;
use crate::faults::SECOND;
use crate::host::true_time;
use crate::seasons::Season;
use crate::world::{Event, World};

/// How often it is looked.
const EVERY: u64 = 5 * SECOND;
/// How long after a fault something of it may still be in the way: pauses, time limits, `Retry-After`.
pub(crate) const DISTURBED: u64 = 150 * SECOND;

/// A leader as a sample finds it.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) process: u64,
    /// Since when it leads, on its monotonic clock, and the time on that.
    pub(crate) since: std::time::Duration,
    pub(crate) monotonic: std::time::Duration,
    /// The true time, and for how long nothing has been in its way, in microseconds.
    pub(crate) now: u64,
    pub(crate) calm: u64,
}

impl World {
    pub(crate) fn sample(&mut self) {
        for slot in 0..self.slots.len() {
            let Some(sample) = self.leader_at(slot) else { continue };
            self.checker.link_sampled(&sample);
            // Where the state is full, files wait for room, and the state's writes for their pace.
            if self.season == Season::Large {
                continue;
            }
            let waiting = self.slots[slot].pile.waiting();
            self.checker.files_sampled(&sample, &waiting, &self.manager);
            self.checker.drifts_sampled(&sample, &self.api, &self.manager);
        }
        self.after(EVERY, Event::Sample);
    }

    fn leader_at(&self, slot: usize) -> Option<Sample> {
        let (now, place) = (self.now.get(), &self.slots[slot]);
        let replica = place.replica.as_ref()?;
        let since = replica.tenure()?.since;
        let monotonic = replica.life.monotonic();
        let leads = replica.life.host.true_length(monotonic.saturating_sub(since));
        let from = place.disturbed.max(place.paused_until);
        let calm = now.saturating_sub(from).min(leads);
        Some(Sample { process: place.process, since, monotonic, now, calm })
    }

    /// Something is in the way of this replica until `until`.
    pub(crate) fn disturb(&mut self, slot: usize, until: u64) {
        let place = &mut self.slots[slot];
        place.disturbed = place.disturbed.max(until + DISTURBED);
        self.checker.known.entry(place.process).or_default().disturbed = true;
    }

    /// The same for all of them.
    pub(crate) fn disturb_all(&mut self, until: u64) {
        for slot in 0..self.slots.len() {
            self.disturb(slot, until);
        }
    }

    /// The process there stands still until `until`.
    pub(crate) fn pause(&mut self, slot: usize, until: u64) {
        self.slots[slot].paused_until = until;
        let over = true_time(until + DISTURBED);
        self.checker.paused_until = self.checker.paused_until.max(over);
    }

    /// At the end: a file beside the leader that has no answer.
    pub(crate) fn unanswered(&self) -> Option<String> {
        let leads = |slot: &&crate::world::Slot| slot.replica.as_ref().is_some_and(|r| r.tenure().is_some());
        let leader = self.slots.iter().find(leads)?;
        let (file, what, _) = leader.pile.waiting().into_iter().next()?;
        Some(format!("the file {file} ({what:?}) has no answer"))
    }

    /// Whether a component is being deleted.
    pub(crate) fn going(api: &crate::api::Api, name: &str) -> bool {
        let object = api.object(Kind::Component, name);
        object.is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some())
    }
}
