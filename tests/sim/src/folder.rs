//! A model of the inbox: the files of one pod's volume, which outlives the containers of the pod, and the
//! agent's view of it. A write takes time, in which its process may be killed or paused.

use crate::host::Now;
use crate::thread::Port;
use navin_cluster_agent::clock::Clock;
use navin_cluster_agent::folder::{Entry, Folder, Stamp};
use navin_cluster_agent::inbox::Desk;
use navin_cluster_agent::rules::inbox::receipt_name;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest time that a write takes, in milliseconds.
const WRITE_MS: u64 = 50;
/// The grain of the file system's times, in microseconds: one tick of the kernel.
const TICK: u64 = 4_000;

/// What a person put into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The envelope of the manager's command with this index.
    Signed(usize),
    /// The beginning of it.
    Half(usize),
    /// One that was made up of it, as the gateway's are.
    Forged(usize, u8),
    /// A text that is not JSON, and not cut off.
    Garbage,
    /// More than 256 KiB.
    Oversized,
    /// A link.
    Link,
}

/// A file.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    stamp: Stamp,
    unreadable: Option<&'static str>,
    /// What a person put there; none for the agent's own.
    pub(crate) what: Option<What>,
    /// When it was changed last.
    pub(crate) changed: u64,
}

/// An answer that the agent wrote.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// The name of the command's file.
    pub(crate) file: String,
    /// What was written.
    pub(crate) bytes: Vec<u8>,
    /// When the writing began.
    pub(crate) began: u64,
    /// There was an answer already.
    pub(crate) again: bool,
}

#[derive(Default)]
struct Inner {
    files: BTreeMap<String, Held>,
    /// When each file that is gone was removed.
    removed: BTreeMap<String, u64>,
    inodes: u64,
    answers: Vec<Answered>,
    /// Until when nothing can be listed or written.
    broken_until: u64,
    /// Whom changes are hinted to.
    watcher: Option<Arc<Desk>>,
}

/// The files of one pod's volume.
pub struct Pile {
    now: Now,
    inner: Mutex<Inner>,
}

impl Pile {
    /// An empty volume.
    #[must_use]
    pub fn new(now: Now) -> Arc<Self> {
        Arc::new(Self { now, inner: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hints go to this desk from now on.
    pub fn watch(&self, desk: &Arc<Desk>) {
        self.lock().watcher = Some(Arc::clone(desk));
    }

    /// Nothing can be listed or written until `until`.
    pub(crate) fn breaks(&self, until: u64) {
        self.lock().broken_until = until;
    }

    /// A person writes a file: in place, or by renaming another to it. False where nothing changes.
    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>, what: What, in_place: bool) -> bool {
        let mut inner = self.lock();
        // As `submit` and any sender that wants an answer: a name that has one is not used again.
        if inner.files.contains_key(&receipt_of(name)) {
            return false;
        }
        inner.store(name, bytes, Some(what), in_place, self.now.get());
        true
    }

    /// A person takes a file away, and its answer.
    pub(crate) fn take_away(&self, name: &str) -> bool {
        let mut inner = self.lock();
        let now = self.now.get();
        let was_there = inner.files.remove(name).is_some();
        inner.files.remove(&receipt_of(name));
        inner.removed.insert(name.to_owned(), now);
        inner.hint();
        was_there
    }

    /// The file, if it is there.
    pub(crate) fn held(&self, name: &str) -> Option<Held> {
        self.lock().files.get(name).cloned()
    }

    /// When the file was removed last.
    pub(crate) fn removed(&self, name: &str) -> Option<u64> {
        self.lock().removed.get(name).copied()
    }

    /// What the agent answered since this was asked last.
    pub(crate) fn take_answers(&self) -> Vec<Answered> {
        std::mem::take(&mut self.lock().answers)
    }

    /// The commands that have no answer: their names, what they are, and since when.
    pub(crate) fn waiting(&self) -> Vec<(String, What, u64)> {
        let inner = self.lock();
        let waits = |(name, held): (&String, &Held)| {
            let what = held.what.filter(|_| !inner.files.contains_key(&receipt_of(name)))?;
            Some((name.clone(), what, held.changed))
        };
        inner.files.iter().filter_map(waits).collect()
    }
}

impl Inner {
    fn store(&mut self, name: &str, bytes: Vec<u8>, what: Option<What>, in_place: bool, now: u64) {
        let before = self.files.get(name).filter(|_| in_place).map(|held| held.stamp.file);
        let file = before.unwrap_or_else(|| {
            self.inodes += 1;
            (1, self.inodes)
        });
        let tick = (now / TICK).cast_signed();
        let stamp = Stamp { modified: (tick, 0), changed: (tick, 0), file, size: bytes.len() };
        let unreadable = (what == Some(What::Link)).then_some("not a regular file");
        self.files.insert(name.to_owned(), Held { bytes, stamp, unreadable, what, changed: now });
        self.hint();
    }

    fn hint(&self) {
        if let Some(desk) = &self.watcher {
            desk.hint();
        }
    }
}

fn receipt_of(name: &str) -> String {
    receipt_name(name).unwrap_or_default()
}

/// The agent's view of a [`Pile`].
pub struct Volume {
    /// The files.
    pub pile: Arc<Pile>,
    /// Whose view it is.
    pub port: Arc<Port>,
}

impl Volume {
    fn broken(&self) -> io::Result<()> {
        if self.port.dead() {
            return Err(io::Error::other("the process has ended"));
        }
        if self.pile.lock().broken_until > self.pile.now.get() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        Ok(())
    }
}

impl Folder for Volume {
    fn path(&self) -> Option<&Path> {
        None
    }

    fn list(&self, most: usize) -> io::Result<Vec<Entry>> {
        self.broken()?;
        let inner = self.pile.lock();
        let command =
            |name: &str| receipt_name(name).is_some_and(|answer| !inner.files.contains_key(&answer));
        let entries = inner.files.iter().filter(|(name, _)| command(name)).map(entry);
        Ok(entries.take(most).collect())
    }

    fn look(&self, name: &str) -> Option<Entry> {
        self.pile.lock().files.get_key_value(name).map(entry)
    }

    fn read(&self, seen: &Entry, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let inner = self.pile.lock();
        let Some(held) = inner.files.get(&seen.name).filter(|held| held.stamp == seen.stamp) else {
            return Ok(None);
        };
        Ok(held.unreadable.is_none().then(|| held.bytes.iter().copied().take(limit).collect()))
    }

    fn write(&self, name: &str, bytes: &[u8], _: bool) -> io::Result<()> {
        let began = self.pile.now.get();
        self.port.sleep(Duration::from_millis(self.port.random() % WRITE_MS));
        self.broken()?;
        let mut inner = self.pile.lock();
        if let Some(stem) = name.strip_suffix(".receipt.json") {
            let again = inner.files.contains_key(name);
            let file = format!("{stem}.json");
            inner.answers.push(Answered { file, bytes: bytes.to_vec(), began, again });
        }
        inner.store(name, bytes.to_vec(), None, false, self.pile.now.get());
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.broken()?;
        self.pile.lock().files.remove(name);
        Ok(())
    }
}

fn entry((name, held): (&String, &Held)) -> Entry {
    Entry { name: name.clone(), stamp: held.stamp, unreadable: held.unreadable }
}

/// A text of more than 256 KiB that is JSON all the same.
#[must_use]
pub fn oversized() -> Vec<u8> {
    format!("{{\"payload\":\"{}\"}}", "x".repeat(256 * 1024)).into_bytes()
}
