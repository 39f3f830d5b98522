//! What shows that each thread goes round. A thread is heard whenever it looks at its clock, sends a request or
//! reads of an answer: nothing else has to be remembered, and between two of these there is at most one call that
//! blocks. A thread of its own writes what was heard into the run folder, for `health` in the same container.
//!
//! Whoever waits for the leader thread is excused (`rules::health`): that one's own silence counts then.

use crate::clock::{Clock, uptime};
use crate::files;
use crate::http::{Http, HttpError, Request, Response};
use crate::leadership::Permit;
use crate::rules::health::{HEALTH_NAME, Health, Heard, MAX_HEALTH_BYTES, WRITE_EVERY, may_wait};
use crate::rules::said::Said;
use crate::say::say;
use crate::threads::LONGEST_WAIT;
use jiff::Timestamp;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long after the end of its wait a thread looks again.
const NOTICE: Duration = Duration::from_secs(1);
/// What a thread may be late, on a node that is short of everything.
const SLACK: Duration = Duration::from_secs(30);

/// One thread's clock and connections, by which it is heard.
pub struct Pulse {
    name: &'static str,
    limit: Duration,
    clock: Arc<dyn Clock>,
    /// Milliseconds of `clock`'s monotonic time.
    heard: AtomicU64,
    /// When the leader thread took its events last; of the others, never.
    taken: AtomicU64,
}

impl Pulse {
    /// Of a thread whose longest call that blocks takes at most `longest`.
    #[must_use]
    pub fn new(name: &'static str, longest: Duration, clock: Arc<dyn Clock>) -> Arc<Self> {
        let limit = longest.max(LONGEST_WAIT.saturating_add(NOTICE)).saturating_add(SLACK);
        let now = AtomicU64::new(millis(clock.monotonic()));
        Arc::new(Self { name, limit, clock, heard: now, taken: AtomicU64::new(0) })
    }

    /// The thread is heard.
    pub fn beat(&self) {
        self.heard.store(millis(self.clock.monotonic()), Ordering::Relaxed);
    }

    /// The leader thread: all events that waited are taken.
    pub fn took_events(&self) {
        self.taken.store(millis(self.clock.monotonic()), Ordering::Relaxed);
    }

    /// The same connections, by whose calls the thread is heard.
    #[must_use]
    pub fn over(self: &Arc<Self>, http: Arc<dyn Http>) -> Arc<dyn Http> {
        Arc::new(Heeded { http, pulse: Arc::clone(self) })
    }

    fn heard(&self, now: Duration, taken: Option<Duration>) -> Heard {
        let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
        Heard {
            name: self.name.to_owned(),
            silent_ms: millis(now.saturating_sub(heard)),
            limit_ms: millis(self.limit),
            excused: taken.is_some_and(|taken| may_wait(heard, taken)),
        }
    }
}

impl Clock for Pulse {
    fn wall(&self) -> Timestamp {
        self.clock.wall()
    }

    fn monotonic(&self) -> Duration {
        let now = self.clock.monotonic();
        self.heard.store(millis(now), Ordering::Relaxed);
        now
    }

    fn sleep(&self, pause: Duration) {
        self.beat();
        self.clock.sleep(pause);
        self.beat();
    }

    fn random(&self) -> u64 {
        self.clock.random()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

struct Heeded {
    http: Arc<dyn Http>,
    pulse: Arc<Pulse>,
}

impl Http for Heeded {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        self.pulse.beat();
        let answer = self.http.send(request);
        self.pulse.beat();
        let Response { status, retry_after, date, body } = answer?;
        let body = Box::new(Body { inner: body, pulse: Arc::clone(&self.pulse) });
        Ok(Response { status, retry_after, date, body })
    }
}

struct Body {
    inner: Box<dyn Read + Send>,
    pulse: Arc<Pulse>,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer);
        self.pulse.beat();
        read
    }
}

/// The writing side.
pub struct Heart {
    /// The run folder.
    pub dir: PathBuf,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Whether the process is ending.
    pub permit: Arc<Permit>,
    /// The leader thread.
    pub leader: Arc<Pulse>,
    /// All others.
    pub others: Vec<Arc<Pulse>>,
}

impl Heart {
    /// The thread: writes until the process ends.
    pub fn run(self) {
        let mut trouble = Said::default();
        loop {
            match self.write() {
                Ok(()) => trouble.over(),
                Err(error) => {
                    let text = format!("heartbeat not written folder={:?} error={error:?}", self.dir);
                    say(&mut trouble, self.clock.monotonic(), log::Level::Warn, &text, &text);
                }
            }
            if self.permit.await_closing(WRITE_EVERY) {
                return;
            }
        }
    }

    fn write(&self) -> Result<(), String> {
        let uptime = uptime().ok_or("the machine's uptime is not readable")?;
        let health = self.look(uptime).to_json();
        files::replace(&self.dir.join(HEALTH_NAME), health.as_bytes()).map_err(|error| error.to_string())
    }

    /// What was heard, at `uptime` since the machine started.
    fn look(&self, uptime: Duration) -> Health {
        let now = self.clock.monotonic();
        let taken = Duration::from_millis(self.leader.taken.load(Ordering::Relaxed));
        let others = self.others.iter().map(|pulse| pulse.heard(now, Some(taken)));
        let threads = std::iter::once(self.leader.heard(now, None)).chain(others).collect();
        Health { written_at_ms: millis(uptime), threads }
    }
}

/// Why the agent is not known to be alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAlive {
    /// There is nothing to judge by.
    Unknown(String),
    /// It is not: which thread is silent, or that all are.
    Silent(String),
}

impl std::fmt::Display for NotAlive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Unknown(why) | Self::Silent(why)) = self;
        f.write_str(why)
    }
}

/// Judges what the agent of another process wrote into its run folder; one line where all is well.
///
/// # Errors
///
/// See [`NotAlive`].
pub fn look(dir: &Path) -> Result<String, NotAlive> {
    let path = dir.join(HEALTH_NAME);
    let text = files::read(&path, MAX_HEALTH_BYTES).map_err(|error| {
        let question = "is the agent running, with this --run-dir or --inbox?";
        NotAlive::Unknown(format!("{}: not readable: {error}: {question}", path.display()))
    })?;
    let now = uptime().ok_or_else(|| NotAlive::Unknown("/proc/uptime: not readable".to_owned()))?;
    let (health, age) =
        Health::judge(&text, now).map_err(|why| NotAlive::Silent(format!("{}: {why}", path.display())))?;
    Ok(format!("alive: {} threads go round, seen {} s ago", health.threads.len(), age.as_secs()))
}

#[cfg(test)]
mod tests;
