//! The break-glass folder as the file system has it (CONTRACT section 7): the real [`Folder`].
//!
//! Invariants: no link is followed below the folder, nothing but a regular file with one name is read,
//! an open never waits for a writer, every read has a limit, and what is written appears whole or not at
//! all.

#![expect(clippy::disallowed_methods, reason = "opens files, and bounds what is read of them")]

use crate::clock::unpredictable;
use crate::files::bounded;
use crate::rules::inbox::receipt_name;
use jiff::Timestamp;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most names that are looked at for what was left.
const SWEEP_MOST: usize = 100_000;
/// Age at which a temporary file was left, in seconds: nobody writes one for as long.
const SWEEP_AFTER_S: i64 = 600;

/// What tells one content of a file from another, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Last modification, seconds and nanoseconds since 1970 by the file system's clock.
    pub modified: (i64, i64),
    /// Last change of anything, which nobody can set.
    pub changed: (i64, i64),
    /// Device and inode.
    pub file: (u64, u64),
    /// In bytes.
    pub size: usize,
}

/// A name in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub stamp: Stamp,
    /// Why it is not to be read, where it is not.
    pub unreadable: Option<&'static str>,
}

/// The inbox's view of its folder; the simulation has another.
pub trait Folder: Send {
    /// Where it can be watched, if it can.
    fn path(&self) -> Option<&Path>;

    /// The commands without an answer, at most `most` of them, in no order.
    ///
    /// # Errors
    ///
    /// What the operating system says: no such folder, no right to read it.
    fn list(&self, most: usize) -> io::Result<Vec<Entry>>;

    /// One name, where it exists.
    fn look(&self, name: &str) -> Option<Entry>;

    /// Reads a file of at most `limit` bytes, of which `entry` is the look; `None` where it has changed.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    fn read(&self, entry: &Entry, limit: usize) -> io::Result<Option<Vec<u8>>>;

    /// Writes a file so that its name never has a part of it, in place of what has that name; what is not
    /// `durable` may be lost when the machine stops, and nothing waits for the disk.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    fn write(&self, name: &str, bytes: &[u8], durable: bool) -> io::Result<()>;

    /// Removes a file; one that is not there is removed already.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A folder of the file system, by its path: one that is removed and made again is the same one.
pub struct DirFolder {
    path: PathBuf,
}

impl DirFolder {
    /// The folder at `path`, whether it is there yet or not.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Removes what a process that was killed while it wrote has left: our temporary files that have not
    /// changed for ten minutes at `now`. What cannot be removed harms nobody.
    pub fn sweep(&self, now: Timestamp) {
        let Ok(found) = fs::read_dir(&self.path) else { return };
        for name in found.take(SWEEP_MOST).flatten().filter_map(|entry| entry.file_name().into_string().ok())
        {
            let Some(entry) = self.look(&name).filter(|_| is_temporary(&name)) else { continue };
            if now.as_second().saturating_sub(entry.stamp.changed.0) >= SWEEP_AFTER_S {
                log::debug!("left by a process that was killed, removed file={name:?}");
                drop(self.remove(&name));
            }
        }
    }
}

impl Folder for DirFolder {
    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn list(&self, most: usize) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for found in fs::read_dir(&self.path)? {
            let found = found?;
            let Ok(name) = found.file_name().into_string() else { continue };
            let Some(receipt) = receipt_name(&name) else { continue };
            // Neither look follows a link.
            if self.look(&receipt).is_some() {
                continue;
            }
            if let Ok(metadata) = found.metadata() {
                entries.push(entry(name, &metadata));
            }
            if entries.len() >= most {
                break;
            }
        }
        Ok(entries)
    }

    fn look(&self, name: &str) -> Option<Entry> {
        let metadata = fs::symlink_metadata(self.path.join(name)).ok()?;
        Some(entry(name.to_owned(), &metadata))
    }

    fn read(&self, seen: &Entry, limit: usize) -> io::Result<Option<Vec<u8>>> {
        // NONBLOCK: to open a FIFO would wait for its writer. NOCTTY: nor does a terminal become ours.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(self.path.join(&seen.name));
        let mut file = match opened {
            Ok(file) => file,
            Err(error) => {
                return if self.look(&seen.name).as_ref() == Some(seen) { Err(error) } else { Ok(None) };
            }
        };
        let unchanged =
            |file: &File| Ok::<_, io::Error>(entry(seen.name.clone(), &file.metadata()?) == *seen);
        // What was opened is what was looked at; a FIFO put in its place is not read from.
        if !unchanged(&file)? || seen.unreadable.is_some() {
            return Ok(None);
        }
        let bytes = bounded(&mut file, limit)?;
        Ok(unchanged(&file)?.then_some(bytes))
    }

    fn write(&self, name: &str, bytes: &[u8], durable: bool) -> io::Result<()> {
        let temporary = self.path.join(format!(".{}.tmp", unpredictable()?));
        let written =
            write_new(&temporary, bytes, durable).and_then(|()| fs::rename(&temporary, self.path.join(name)));
        if written.is_err() {
            // The first error tells more than one about what may not even be there.
            drop(fs::remove_file(&temporary));
        }
        written
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Whether [`Folder::write`] gives such names.
fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".tmp"));
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    random.is_some_and(|random| random.len() == 32 && random.bytes().all(hex))
}

/// Writes a file that is not there yet; one that is `durable`, down to the disk: an empty answer must not survive a
/// crash.
fn write_new(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    if durable { file.sync_data() } else { Ok(()) }
}

fn entry(name: String, metadata: &Metadata) -> Entry {
    let unreadable = if !metadata.is_file() {
        Some("not a regular file")
    } else if metadata.nlink() > 1 {
        Some("a file with other names (hard links)")
    } else {
        None
    };
    let stamp = Stamp {
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        file: (metadata.dev(), metadata.ino()),
        size: usize::try_from(metadata.len()).unwrap_or(usize::MAX),
    };
    Entry { name, stamp, unreadable }
}

#[cfg(test)]
mod tests;
