//! What is to happen, in order of time; what is due at one moment, in the order in which it was put down.

use crate::api::Reply;
use std::cmp::Ordering;

/// What is to happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// A process starts in this slot.
    Start(usize),
    /// SIGKILL after the time that an ending may take, for the process with this number.
    Overdue(usize, u64),
    /// A thread's time has come.
    Timer { slot: usize, process: u64, thread: usize, serial: u64 },
    /// A request arrives.
    Land(u64),
    /// A poll that waits is looked at again.
    Look(u64),
    /// An answer arrives.
    Answer(u64, Reply),
    /// Lines of a watch arrive, or its end.
    Lines(u64, String, bool),
    /// A watch is looked after.
    StreamTick(u64),
    /// A trouble of the plan.
    Trouble(usize),
    /// An item of the workload.
    Item(usize),
    /// All troubles end.
    Heal,
    /// What lasts for a while is looked at.
    Sample,
    /// Has everything settled?
    Settled,
}

/// An event and its time.
pub(crate) struct Timed {
    pub(crate) at: u64,
    pub(crate) order: u64,
    pub(crate) event: Event,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Timed {}
impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timed {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
