//! The watch of the components: while this replica leads, tells the leader and the board what is there and
//! what changes. A list, then a watch from its version; after any doubt a list again, and one every ten
//! minutes all the same, so that nothing rests on the stream alone.

use crate::board::{Board, Since};
use crate::clock::Clock;
use crate::event::Event;
use crate::kube::Kube;
use crate::kube::watch::{self, Change, Failure, SILENCE};
use crate::rules::backoff::{Backoff, retry_after};
use crate::rules::said::Said;
use crate::say::say;
use crate::threads::LONGEST_WAIT;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Shortest watch that is asked for, in seconds; the longest is [`SPREAD_S`] longer, so that replicas and
/// agents do not begin anew together.
const SHORTEST_S: u64 = 240;
/// See [`SHORTEST_S`].
const SPREAD_S: u64 = 50;
/// Longest that a watch is silent before it is dead.
pub const LONGEST: Duration = Duration::from_mins(5);
const _: () =
    assert!(LONGEST.as_secs() == SHORTEST_S + SPREAD_S + SILENCE.as_secs(), "the longest and its silence");
/// Age of the list at which a watch is followed by another list.
const RELIST: Duration = Duration::from_mins(8);
const _: () = assert!(
    RELIST.as_secs() == 2 * SHORTEST_S,
    "two watches always reach it: a list is ten minutes old at most"
);
/// Least time between two lists.
const LEAST: Duration = Duration::from_secs(5);
/// A watch that lasted as long did work: the next failure is the first.
const WORKED: Duration = Duration::from_secs(10);
/// Least time from one watch to the next.
const SHORT: Duration = Duration::from_secs(1);

/// The watching side.
pub struct Watcher {
    /// The API server, with a connection of the watch's own.
    pub kube: Kube,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Who decides what a sighting means.
    pub leader: SyncSender<Event>,
    /// Who shows it, and says whether this replica leads and what is wanted.
    pub board: Arc<Board>,
    /// Where the watch stands.
    pub progress: Progress,
}

/// What may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    List,
    Watch,
}

/// What the watch remembers between two steps.
#[derive(Default)]
pub struct Progress {
    /// The version up to which everything is known; none where a list is needed.
    version: Option<String>,
    /// For which leadership it is known.
    reign: Option<Since>,
    listed: Option<Duration>,
    backoff: Backoff,
    /// What has failed since it last worked; each is logged once a minute.
    broken: Option<Part>,
    said: Said,
}

impl Watcher {
    /// The thread: watches for ever. The simulation's is in `tests/sim/src/loops.rs`.
    pub fn run(mut self) {
        loop {
            let pause = self.step();
            self.board.shown.wait_while(pause, |shown| shown.reign == self.progress.reign);
        }
    }

    fn reign(&self) -> Option<Since> {
        self.board.shown.lock().reign
    }

    /// Lists, or watches until the stream ends; how long to pause before the next step, while this replica leads
    /// or does not.
    pub fn step(&mut self) -> Duration {
        let began = self.clock.monotonic();
        let reign = self.reign();
        if reign != self.progress.reign {
            // What was known is worth nothing for another leadership: it begins with a list.
            self.progress.version = None;
            self.progress.reign = reign;
            self.board.unlisted();
        }
        if reign.is_none() {
            return LONGEST_WAIT;
        }
        let watching = self.progress.version.is_some();
        let part = if watching { Part::Watch } else { Part::List };
        let done = match self.progress.version.take() {
            Some(version) => self.watch(version),
            None => match self.progress.listed.map(|listed| listed.saturating_add(LEAST)) {
                Some(least) if began < least => return least.saturating_sub(began),
                Some(_) | None => self.list(began),
            },
        };
        let took = self.clock.monotonic().saturating_sub(began);
        if took >= WORKED {
            self.progress.backoff.reset();
            if watching {
                self.worked(Part::Watch);
            }
        }
        match done {
            // A server that ends every watch at once is not asked again at once.
            Ok(()) => SHORT.saturating_sub(if watching { took } else { SHORT }),
            Err(Failure { why, retry_after: told }) => {
                let line = format!("components not watched error={why:?}");
                say(&mut self.progress.said, self.clock.monotonic(), log::Level::Warn, &why, &line);
                self.progress.broken = Some(part);
                let told = retry_after(told.as_deref(), self.clock.wall());
                told.unwrap_or_else(|| self.progress.backoff.next(self.clock.random()))
            }
        }
    }

    fn list(&mut self, now: Duration) -> Result<(), Failure> {
        self.progress.listed = Some(now);
        let all = watch::list(&self.kube, &*self.clock, |name| self.board.wants(name));
        let (components, version) = all.inspect_err(|_| self.board.unlisted())?;
        let sightings = components.iter().map(|(sighting, _)| sighting.clone()).collect();
        self.board.listed(components);
        self.tell(Event::Listed(sightings));
        self.progress.version = Some(version);
        self.worked(Part::List);
        Ok(())
    }

    /// That a list works says nothing about a watch that was refused.
    fn worked(&mut self, part: Part) {
        if self.progress.broken.take_if(|broken| *broken == part).is_some() {
            log::info!("components watched again");
        }
    }

    /// Keeps the version only where nothing can have been missed.
    fn watch(&mut self, mut version: String) -> Result<(), Failure> {
        let random = self.clock.random().checked_rem(SPREAD_S).unwrap_or(0);
        let seconds = SHORTEST_S.saturating_add(random);
        let mut stream = watch::open(&self.kube, &version, seconds)?;
        while let Some((change, newer)) = stream.read()? {
            if let Some(newer) = newer {
                version = newer;
            }
            match change {
                Change::Seen(sighting, status) => {
                    self.board.seen(sighting.clone(), status);
                    self.tell(Event::Seen(sighting));
                }
                Change::Gone(name) => {
                    self.board.gone(&name);
                    self.tell(Event::Gone(name));
                }
                Change::Bookmark => {}
                Change::Failed(why) => return Err(why.into()),
            }
            if self.reign() != self.progress.reign {
                return Ok(());
            }
        }
        let age = self.progress.listed.map(|listed| self.clock.monotonic().saturating_sub(listed));
        if age.is_some_and(|age| age < RELIST) {
            self.progress.version = Some(version);
        }
        Ok(())
    }

    /// Blocks while the leader is busy: nothing more is read than can be taken.
    fn tell(&self, event: Event) {
        if self.leader.send(event).is_err() {
            log::debug!("the leader thread has ended");
        }
    }
}

#[cfg(test)]
mod tests;
