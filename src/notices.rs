//! What people are told by Kubernetes Events (CONTRACT section 6): noted by any thread, posted by one of its
//! own. What repeats is counted, not repeated; what cannot be posted is dropped, since the log has it too.

use crate::clock::Clock;
use crate::kube::events::{self, Event};
use crate::kube::{Kube, KubeError};
use crate::rules::backoff::Backoff;
use crate::rules::names::format_time;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most kinds of notice that wait, and that are remembered.
const MOST: usize = 64;
/// Least time between two writes for one kind of notice.
const GATHER: Duration = Duration::from_secs(30);
/// How long a notice is counted on the Event that was posted first.
const SAME: Duration = Duration::from_hours(1);
/// Tries before what waits is dropped.
const TRIES: u32 = 3;
/// Longest message, in characters (the API takes 1,024 bytes).
const MESSAGE_CHARS: usize = 240;
/// Longest sleep.
const IDLE: Duration = Duration::from_hours(1);

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
    news: bool,
}

/// Where notices are put down; shared by all threads.
#[derive(Default)]
pub struct Notices {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl Notices {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something went as it should.
    pub fn normal(&self, reason: &'static str, about: About, message: &str) {
        self.note(reason, about, message, false);
    }

    /// Something a person may want to look at.
    pub fn warning(&self, reason: &'static str, about: About, message: &str) {
        self.note(reason, about, message, true);
    }

    fn note(&self, reason: &'static str, about: About, message: &str, warning: bool) {
        let mut inner = self.lock();
        let full = inner.waiting.len() >= MOST;
        let kind = (reason, about);
        if full && !inner.waiting.contains_key(&kind) {
            return;
        }
        let waiting =
            inner.waiting.entry(kind).or_insert(Waiting { count: 0, warning, message: String::new() });
        waiting.count = waiting.count.saturating_add(1);
        waiting.message = message.chars().take(MESSAGE_CHARS).collect();
        inner.news = true;
        self.changed.notify_all();
    }

    fn wait(&self, limit: Duration) {
        drop(self.changed.wait_timeout_while(self.lock(), limit, |inner| !inner.news));
    }

    /// Whether something was noted since the crier looked.
    #[must_use]
    pub fn news(&self) -> bool {
        self.lock().news
    }
}

/// An Event that was posted.
struct Posted {
    name: String,
    count: u32,
    first: Duration,
    last: Duration,
}

/// The posting side.
pub struct Crier {
    kube: Kube,
    clock: Arc<dyn Clock>,
    notices: Arc<Notices>,
    replica: String,
    uid: Option<String>,
    posted: BTreeMap<Kind, Posted>,
    backoff: Backoff,
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
        Self { kube, clock, notices, replica, uid, posted: BTreeMap::new(), backoff: Backoff::default() }
    }

    /// The thread: posts for ever.
    pub fn run(mut self) {
        loop {
            let pause = self.step();
            self.notices.wait(pause);
        }
    }

    /// Posts what is due; how long until more is.
    pub fn step(&mut self) -> Duration {
        // Before the look: what is noted after it wakes the thread.
        self.notices.lock().news = false;
        let now = self.clock.monotonic();
        self.posted.retain(|_, posted| now.saturating_sub(posted.first) < SAME);
        let due =
            |kind: &Kind| self.posted.get(kind).map_or(now, |posted| posted.last.saturating_add(GATHER));
        let next = self.notices.lock().waiting.keys().map(|kind| (due(kind), kind.clone())).min();
        let Some((due, kind)) = next else { return IDLE };
        if now < due {
            return due.saturating_sub(now);
        }
        let Some(waiting) = self.notices.lock().waiting.remove(&kind) else { return Duration::ZERO };
        match self.post(&kind, &waiting, now) {
            Ok(()) => {
                self.backoff.reset();
                Duration::ZERO
            }
            Err(error) => {
                let pause = self.backoff.next(self.clock.random());
                if self.backoff.failures() < TRIES {
                    // Noted again meanwhile, the newer message stands.
                    self.notices.lock().waiting.entry(kind).or_insert(waiting);
                } else {
                    log::info!("event dropped reason={} error={:?}", kind.0, error.to_string());
                }
                pause
            }
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
        let answer = if before.is_some() {
            events::repeat(&self.kube, &event)
        } else {
            events::create(&self.kube, &event)
        };
        if matches!(answer, Err(KubeError::NotFound(_))) {
            self.posted.remove(kind);
        }
        answer?;
        if self.posted.len() < MOST {
            self.posted.insert(kind.clone(), Posted { name, count, first, last: now });
        }
        Ok(())
    }
}
