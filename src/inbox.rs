//! The inbox thread (CONTRACT section 7): hands the files of the break-glass folder to the leader thread, and
//! writes what it answers beside them. While this replica does not lead, files are left alone.
//!
//! Invariants: a scan decides what is there, the watch only hints when; nothing is handed over that changed
//! within the last second, nor more than 20 files a second; an answer is written only beside the
//! very content that was judged. Of a file that is under way nothing is kept but its name and stamp.

mod answering;
mod desk;
mod reading;
mod status;
#[cfg(test)]
mod tests;
mod watch;

pub use desk::{Answer, Desk, Reply};

use crate::clock::Clock;
use crate::event::{Event, Ticket};
use crate::folder::{Entry, Folder};
use crate::leadership::Permit;
use crate::rules::said::Said;
use crate::say::say;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use watch::Watch;

/// Most files that are read in a second, and most that the leader has at once.
const PER_SECOND: usize = 20;
/// The time for which [`PER_SECOND`] files may be read.
const SECOND: Duration = Duration::from_secs(1);
/// How long a file must not have changed before it is read.
const SETTLED: Duration = Duration::from_secs(1);
/// Most files that are kept in mind; more are found when these are answered.
const MOST: usize = 10_000;
/// Longest time between two scans.
const RESCAN: Duration = Duration::from_secs(30);
/// The same while nothing hints.
const RESCAN_UNWATCHED: Duration = Duration::from_secs(5);
/// Shortest time between two scans, however many hints there are.
const BETWEEN_SCANS: Duration = Duration::from_millis(200);
/// When a file that could not be judged is handed over again.
const AGAIN: Duration = Duration::from_secs(1);
/// When an answer that could not be written is tried again.
const REWRITE: Duration = Duration::from_secs(5);
/// How often a follower looks who leads; that it leads itself, the desk tells it.
const FOLLOW: Duration = Duration::from_secs(10);

/// A file without an answer.
struct File {
    entry: Entry,
    /// Since when it is seen as it is.
    since: Duration,
    /// When something is to be done about it.
    due: Duration,
    stage: Stage,
}

enum Stage {
    /// To be read and handed over.
    Ready,
    /// The leader has it.
    Handed(Ticket),
    /// Its command is being executed.
    UnderWay(Ticket),
    /// To be answered.
    Answered(Box<Answer>),
}

/// The inbox thread's state.
pub struct Inbox {
    folder: Box<dyn Folder>,
    clock: Arc<dyn Clock>,
    permit: Arc<Permit>,
    desk: Arc<Desk>,
    leader: SyncSender<Event>,
    replica: String,
    files: BTreeMap<String, File>,
    last_ticket: u64,
    reigns_ended: u64,
    rescan: Duration,
    scan_at: Duration,
    scanned_at: Option<Duration>,
    /// When the running second began, and how many files were read in it.
    window: (Duration, usize),
    /// What was last written for `submit`, and when it is due again.
    status: Option<(bool, Option<String>)>,
    status_at: Duration,
    /// What has failed and was logged.
    said: Said,
}

impl Inbox {
    /// An inbox that has seen nothing yet; `replica` is our pod's name.
    #[must_use]
    pub fn new(
        folder: Box<dyn Folder>,
        clock: &Arc<dyn Clock>,
        permit: &Arc<Permit>,
        desk: Arc<Desk>,
        leader: SyncSender<Event>,
        replica: &str,
    ) -> Self {
        Self {
            folder,
            clock: Arc::clone(clock),
            permit: Arc::clone(permit),
            desk,
            leader,
            replica: replica.to_owned(),
            files: BTreeMap::new(),
            last_ticket: 0,
            reigns_ended: 0,
            rescan: RESCAN,
            scan_at: Duration::ZERO,
            scanned_at: None,
            window: (Duration::ZERO, 0),
            status: None,
            status_at: Duration::ZERO,
            said: Said::default(),
        }
    }

    /// The thread: until the process ends. The simulation's is in `tests/sim/src/loops.rs`.
    pub fn run(mut self) {
        let mut watch = self.folder.path().map(|path| Watch::new(path, Arc::clone(&self.desk)));
        loop {
            let watched = watch.as_mut().is_some_and(Watch::keep);
            self.rescan = if watched { RESCAN } else { RESCAN_UNWATCHED };
            let pause = self.step();
            self.desk.wait(pause);
        }
    }

    /// Does what is due about the files; how long until more is. It waits for nothing but the folder.
    pub fn step(&mut self) -> Duration {
        let now = self.clock.monotonic();
        let leads = self.permit.tenure(now).is_some();
        self.show_status(leads, now);
        let news = self.desk.take();
        if !leads {
            self.let_go();
            self.scan_at = Duration::ZERO;
            return FOLLOW;
        }
        if news.reigns_ended != self.reigns_ended {
            self.reigns_ended = news.reigns_ended;
            self.let_go();
        }
        for (ticket, reply) in news.replies {
            self.replied(ticket, reply, now);
        }
        self.write_answers(now);
        if news.hint {
            let soonest = self.scanned_at.map_or(now, |at| at.saturating_add(BETWEEN_SCANS));
            self.scan_at = self.scan_at.min(soonest);
        }
        if now >= self.scan_at {
            self.scan(now);
        }
        self.hand_over(now);
        self.next_due().saturating_sub(now)
    }

    /// What the leader has, it has for nothing: whoever leads next is to be asked again.
    fn let_go(&mut self) {
        for file in self.files.values_mut() {
            match file.stage {
                Stage::Handed(ticket) | Stage::UnderWay(ticket) => self.desk.close(ticket),
                Stage::Ready | Stage::Answered(_) => {}
            }
        }
        self.files.clear();
        self.scan_at = Duration::ZERO;
    }

    /// Whether the file is there and as it was; one that is another by now begins anew.
    fn is_as_seen(&mut self, name: &str) -> bool {
        match self.folder.look(name) {
            Some(entry) if self.files.get(name).is_some_and(|file| file.entry == entry) => true,
            Some(entry) => {
                self.seen(entry);
                false
            }
            None => {
                self.forget(name);
                false
            }
        }
    }

    /// Takes in what a look has shown. Its time begins now: a step may have stood still since it began.
    fn seen(&mut self, entry: Entry) {
        if self.files.get(&entry.name).is_some_and(|file| file.entry == entry) {
            return;
        }
        self.forget(&entry.name);
        if self.files.len() >= MOST {
            return;
        }
        let now = self.clock.monotonic();
        let due = now.saturating_add(SETTLED);
        self.files.insert(entry.name.clone(), File { entry, since: now, due, stage: Stage::Ready });
    }

    fn forget(&mut self, name: &str) {
        if let Some(File { stage: Stage::Handed(ticket) | Stage::UnderWay(ticket), .. }) =
            self.files.remove(name)
        {
            self.desk.close(ticket);
        }
    }

    fn scan(&mut self, now: Duration) {
        self.scanned_at = Some(now);
        self.scan_at = now.saturating_add(self.rescan);
        let entries = match self.folder.list(MOST) {
            Ok(entries) => entries,
            Err(error) => {
                let line = format!("inbox not readable error={:?}", error.to_string());
                say(&mut self.said, now, log::Level::Warn, "inbox not readable", &line);
                // It says nothing about the files: what is under way may be answered yet.
                return;
            }
        };
        log::debug!("inbox scanned files={}", entries.len());
        if entries.len() < MOST {
            let listed: std::collections::BTreeSet<&str> = entries.iter().map(|e| e.name.as_str()).collect();
            let gone = self.files.keys().filter(|name| !listed.contains(name.as_str())).cloned();
            for name in gone.collect::<Vec<_>>() {
                self.forget(&name);
            }
        } else {
            let line = format!("inbox full: {MOST} files wait, others are left until these are answered");
            say(&mut self.said, now, log::Level::Warn, "inbox full", &line);
        }
        for entry in entries {
            self.seen(entry);
        }
    }

    fn next_due(&self) -> Duration {
        let mut next = self.scan_at.min(self.status_at);
        let full = self.window.1 >= PER_SECOND;
        let handed = self.handed();
        for file in self.files.values() {
            let due = match file.stage {
                Stage::Handed(_) => continue,
                // An answer of the leader makes room, and wakes us.
                Stage::Ready | Stage::UnderWay(_) if handed >= PER_SECOND => continue,
                Stage::Ready | Stage::UnderWay(_) if full => {
                    file.due.max(self.window.0.saturating_add(SECOND))
                }
                Stage::Answered(_) | Stage::Ready | Stage::UnderWay(_) => file.due,
            };
            next = next.min(due);
        }
        next
    }
}
