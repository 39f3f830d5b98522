//! `run`: builds the parts, starts the threads, and waits for a signal.
//!
//! Threads and what they speak to: lease (the Lease, over a connection of its own), leader (state and
//! components), watch (components), poll and outbox (the gateway), reporter (lists, and the gateway), inbox
//! (its folder), identity (its folder), events (Events), heartbeat (the run folder), signals. They are joined by one bounded channel of [`Event`] into the
//! leader, and by the [`Permit`]. A thread that ends takes the process with it.

mod parts;
#[cfg(test)]
mod tests;

use crate::clock::{Clock, SystemClock};
use crate::event::Event;
use crate::exit::{Exit, Fatal};
use crate::heartbeat::Pulse;
use crate::leader::Leader;
use crate::leadership::Permit;
use crate::threads::spawn;
use parts::Parts;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Events that wait for the leader thread; a producer blocks when it is full.
const EVENTS: usize = 64;
/// Ends of threads and signals that wait for the main thread, which goes by the first; more are not told.
const WAKES: usize = 8;
/// How long the ending may take before the process ends anyway.
const STOP_LIMIT: Duration = Duration::from_millis(4_500);

/// Where the API server is.
pub(crate) struct KubeAccess {
    /// `https://host:port`
    pub(crate) url: String,
    /// The bearer token's file.
    pub(crate) token: PathBuf,
    /// PEM of the issuers trusted for it.
    pub(crate) ca: PathBuf,
}

/// What `run` was started with.
pub(crate) struct Options {
    pub(crate) identity_dir: PathBuf,
    pub(crate) kube: KubeAccess,
    pub(crate) pod_name: Option<String>,
    pub(crate) pod_uid: Option<String>,
    pub(crate) pod_namespace: Option<String>,
    /// The break-glass folder.
    pub(crate) inbox: Option<PathBuf>,
    /// Where `health` finds what it reads; otherwise in the break-glass folder.
    pub(crate) run_dir: Option<PathBuf>,
}

/// What the main thread waits for.
enum Wake {
    Signal(i32),
    Ended(&'static str),
}

/// Runs the agent until a signal ends it.
pub(crate) fn run(options: &Options) -> Result<Exit, Fatal> {
    run_by(Arc::new(SystemClock::default()), options)
}

/// Runs it by this clock, which every thread looks at all the time.
fn run_by(clock: Arc<dyn Clock>, options: &Options) -> Result<Exit, Fatal> {
    let system =
        |what: &'static str| move |e: std::io::Error| Fatal::new(Exit::System, format!("{what}: {e}"));
    // First of all: as the first process of a container it has no other way to hear a signal.
    let signals = Signals::new([SIGTERM, SIGINT]).map_err(system("signal handler"))?;
    let (events, received) = sync_channel(EVENTS);
    let parts = Parts::new(clock, options, events)?;
    let elector = parts.elector()?;
    let leader = parts.leader()?;
    let watcher = parts.watcher()?;
    let poller = parts.poller()?;
    let outbox = parts.outbox()?;
    let reporter = parts.reporter()?;
    let crier = parts.crier()?;
    let inbox = parts.inbox();
    let rotation = parts.rotation();
    let heart = parts.heart();

    parts.announce(elector.holder());
    let (wake, woken) = sync_channel(WAKES);
    let start = |name: &'static str, body: Box<dyn FnOnce() + Send>| {
        guarded(name, wake.clone(), body).map_err(system("thread"))
    };
    start("signals", {
        let wake = wake.clone();
        Box::new(move || forward(signals, &wake))
    })?;
    start("leader", {
        let (permit, pulse) = (Arc::clone(&parts.permit), Arc::clone(&parts.pulse));
        Box::new(move || lead(leader, &received, &permit, &pulse))
    })?;
    start("lease", Box::new(move || elector.run()))?;
    start("watch", Box::new(move || watcher.run()))?;
    start("poll", Box::new(move || poller.run()))?;
    start("outbox", Box::new(move || outbox.run()))?;
    start("reporter", Box::new(move || reporter.run()))?;
    start("identity", Box::new(move || rotation.run()))?;
    start("events", Box::new(move || crier.run()))?;
    if let Some(inbox) = inbox {
        start("inbox", Box::new(move || inbox.run()))?;
    }
    if let Some(heart) = heart {
        start("heartbeat", Box::new(move || heart.run()))?;
    }
    await_end(&woken, &parts.permit, &parts.events)
}

/// The leader thread: takes events one by one, then does what is due. The simulation's is in `tests/sim/src/loops.rs`.
fn lead(mut leader: Leader, events: &Receiver<Event>, permit: &Permit, pulse: &Pulse) {
    let mut pause = Duration::ZERO;
    while !permit.closing() {
        match events.recv_timeout(pause) {
            Ok(event) => {
                leader.handle(event);
                for event in events.try_iter() {
                    leader.handle(event);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        pulse.took_events();
        pause = leader.work();
    }
}

fn forward(mut signals: Signals, wake: &SyncSender<Wake>) {
    for signal in &mut signals {
        if wake.send(Wake::Signal(signal)).is_err() {
            return;
        }
    }
}

/// Starts a thread whose end the main thread is told.
fn guarded(name: &'static str, wake: SyncSender<Wake>, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let ended = Ended { name, wake };
    let guarded = move || {
        let _ended = ended;
        body();
    };
    spawn(name, guarded).map(drop)
}

/// Tells the main thread that a thread has ended; by a panic too, where that unwinds and does not abort.
struct Ended {
    name: &'static str,
    wake: SyncSender<Wake>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        // A full channel means that the process is ending already.
        drop(self.wake.try_send(Wake::Ended(self.name)));
    }
}

/// Waits for a signal; then the leader thread stops, the lease thread releases, and the process ends.
fn await_end(woken: &Receiver<Wake>, permit: &Permit, events: &SyncSender<Event>) -> Result<Exit, Fatal> {
    match woken.recv() {
        Ok(Wake::Signal(signal)) => log::info!("stopping signal={signal}"),
        Ok(Wake::Ended(name)) => {
            return Err(Fatal::new(Exit::Software, format!("thread {name} ended unexpectedly")));
        }
        Err(error) => return Err(Fatal::new(Exit::Software, error)),
    }
    permit.close();
    // Wakes the leader thread; where the channel is full it is awake.
    drop(events.try_send(Event::Leadership));
    let clock = SystemClock::default();
    loop {
        match woken.recv_timeout(STOP_LIMIT.saturating_sub(clock.monotonic())) {
            Ok(Wake::Ended("leader")) if permit.holds() => permit.leader_has_stopped(),
            // A follower's lease thread may be watching the Lease, and has nothing to release.
            Ok(Wake::Ended("leader" | "lease")) => break,
            Ok(Wake::Ended(_) | Wake::Signal(_)) => {}
            Err(_) => {
                log::warn!("stopping without an orderly release: a call did not return in time");
                break;
            }
        }
    }
    log::info!("stopped");
    Ok(Exit::Success)
}
