//! What people are told by Kubernetes Events (CONTRACT section 6): noted by any thread, posted by one of its
//! own. What repeats is counted, not repeated; what cannot be posted is dropped, since the log has it too.

use crate::clock::Clock;
use crate::kube::events::{self, Event};
use crate::kube::{Kube, KubeError};
use crate::rules::backoff::{Backoff, retry_after};
use crate::rules::names::format_time;
use crate::rules::notices::{Ration, WRITES, cut, gather};
use crate::threads::{LONGEST_WAIT, Shared};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Most kinds of notice that wait; more are dropped.
const MOST: usize = 64;
/// Most Events that are remembered, to be counted on; then the oldest is forgotten.
const REMEMBERED: usize = 256;
/// How long a notice is counted on the Event that was posted first.
const SAME: Duration = Duration::from_hours(1);
/// Tries before what waits is dropped.
const TRIES: u32 = 3;

/// What a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// This replica.
    Pod,
    /// A component, by its name.
    Component(String),
}

/// One kind of notice: its reason and what it is about.
type Kind = (&'static str, About);

struct Waiting {
    count: u32,
    warning: bool,
    message: String,
}

#[derive(Default)]
struct Inner {
    waiting: BTreeMap<Kind, Waiting>,
    /// Some were dropped, which was said, since none waited.
    dropped: bool,
}

/// Where notices are put down; shared by all threads.
#[derive(Default)]
pub struct Notices(Shared<Inner>);

impl Notices {
    /// Something went as it should.
    pub fn normal(&self, reason: &'static str, about: About, message: &str) {
        self.note(reason, about, message, false);
    }

    /// Something a person may want to look at.
    pub fn warning(&self, reason: &'static str, about: About, message: &str) {
        self.note(reason, about, message, true);
    }

    fn note(&self, reason: &'static str, about: About, message: &str, warning: bool) {
        let mut inner = self.0.lock();
        let kind = (reason, about);
        if inner.waiting.len() >= MOST && !inner.waiting.contains_key(&kind) {
            if !std::mem::replace(&mut inner.dropped, true) {
                log::warn!("events dropped: {MOST} wait, at most {WRITES} a minute are written");
            }
            return;
        }
        let waiting =
            inner.waiting.entry(kind).or_insert(Waiting { count: 0, warning, message: String::new() });
        waiting.count = waiting.count.saturating_add(1);
        cut(message).clone_into(&mut waiting.message);
        drop(inner);
        self.0.notify();
    }

    /// Whether something was noted since the crier looked. For the simulation, which waits by other means.
    #[must_use]
    pub fn news(&self) -> bool {
        self.0.news()
    }
}

/// An Event that was posted.
struct Posted {
    name: String,
    count: u32,
    first: Duration,
    last: Duration,
    writes: u32,
}

/// The posting side.
pub struct Crier {
    kube: Kube,
    clock: Arc<dyn Clock>,
    notices: Arc<Notices>,
    replica: String,
    uid: Option<String>,
    posted: BTreeMap<Kind, Posted>,
    ration: Ration,
    backoff: Backoff,
    /// Nothing is written before this time: the last write was refused.
    not_before: Duration,
}

impl Crier {
    /// A crier for the pod `replica`, whose uid may not be known.
    #[must_use]
    pub fn new(
        kube: Kube,
        clock: Arc<dyn Clock>,
        notices: Arc<Notices>,
        replica: String,
        uid: Option<String>,
    ) -> Self {
        Self {
            kube,
            clock,
            notices,
            replica,
            uid,
            posted: BTreeMap::new(),
            ration: Ration::default(),
            backoff: Backoff::default(),
            not_before: Duration::ZERO,
        }
    }

    /// The thread: posts for ever. The simulation's is in `tests/sim/src/loops.rs`.
    pub fn run(mut self) {
        loop {
            let pause = self.step();
            self.notices.0.wait(pause);
        }
    }

    /// Posts what is due; how long until more is.
    pub fn step(&mut self) -> Duration {
        // Before the look: what is noted after it wakes the thread.
        self.notices.0.heed();
        let now = self.clock.monotonic();
        self.posted.retain(|_, posted| now.saturating_sub(posted.first) < SAME);
        let gathered = |posted: &Posted| posted.last.saturating_add(gather(posted.writes));
        let due = |kind: &Kind| self.posted.get(kind).map_or(now, gathered);
        let next = self.notices.0.lock().waiting.keys().map(|kind| (due(kind), kind.clone())).min();
        let Some((due, kind)) = next else {
            self.notices.0.lock().dropped = false;
            return LONGEST_WAIT;
        };
        let due = due.max(self.not_before).max(self.ration.next(now));
        if now < due {
            return due.saturating_sub(now);
        }
        let Some(waiting) = self.notices.0.lock().waiting.remove(&kind) else { return Duration::ZERO };
        self.ration.spend(now);
        match self.post(&kind, &waiting, now) {
            Ok(()) => self.backoff.reset(),
            Err(error) => self.failed(kind, waiting, &error),
        }
        Duration::ZERO
    }

    fn failed(&mut self, kind: Kind, waiting: Waiting, error: &KubeError) {
        // Counted also where the server says itself how long.
        let own = self.backoff.next(self.clock.random());
        let pause = retry_after(error.retry_after(), self.clock.wall()).unwrap_or(own);
        self.not_before = self.clock.monotonic().saturating_add(pause);
        // What is refused for what it is will be refused again.
        let again = !matches!(error, KubeError::Refused { .. }) && self.backoff.failures() < TRIES;
        if again {
            // Noted again meanwhile, the newer message stands.
            self.notices.0.lock().waiting.entry(kind).or_insert(waiting);
        } else {
            log::info!("event dropped reason={} error={:?}", kind.0, error.to_string());
        }
    }

    fn post(&mut self, kind: &Kind, waiting: &Waiting, now: Duration) -> Result<(), KubeError> {
        let (reason, about) = kind;
        let before = self.posted.get(kind);
        let name = before.map_or_else(
            || format!("navin-cluster-agent.{:016x}", self.clock.random()),
            |posted| posted.name.clone(),
        );
        let time = format_time(self.clock.wall());
        let count = waiting.count.saturating_add(before.map_or(0, |posted| posted.count));
        let event = Event {
            name: &name,
            about: match about {
                About::Pod => events::pod(&self.kube, &self.replica, self.uid.as_deref()),
                About::Component(name) => events::component(&self.kube, name),
            },
            warning: waiting.warning,
            reason,
            message: &waiting.message,
            count,
            time: &time,
            replica: &self.replica,
        };
        let first = before.map_or(now, |posted| posted.first);
        let writes = before.map_or(0, |posted| posted.writes).saturating_add(1);
        let repeated = before.is_some();
        let answer =
            if repeated { events::repeat(&self.kube, &event) } else { events::create(&self.kube, &event) };
        if matches!(answer, Err(KubeError::NotFound(_))) {
            self.posted.remove(kind);
        }
        answer?;
        if !repeated && self.posted.len() >= REMEMBERED {
            let oldest =
                self.posted.iter().min_by_key(|(_, posted)| posted.last).map(|(kind, _)| kind.clone());
            oldest.map(|kind| self.posted.remove(&kind));
        }
        self.posted.insert(kind.clone(), Posted { name, count, first, last: now, writes });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
