//! The break-glass folder as the file system has it (CONTRACT section 7): the real [`Folder`].
//!
//! Invariants: no link is followed below the folder, nothing but a regular file with one name is read,
//! an open never waits for a writer, every read has a limit, and what is written appears whole or not at
//! all.

use crate::rules::inbox::receipt_name;
use ring::rand::{SecureRandom, SystemRandom};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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
    pub size: u64,
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
    fn read(&self, entry: &Entry, limit: u64) -> io::Result<Option<Vec<u8>>>;

    /// Writes a file so that its name never has a part of it, in place of what has that name.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

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
    random: SystemRandom,
}

impl DirFolder {
    /// The folder at `path`, whether it is there yet or not.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), random: SystemRandom::new() }
    }

    /// A name that nobody can guess: 128 random bits in hexadecimal.
    ///
    /// # Errors
    ///
    /// The operating system gives no random bits.
    pub fn unpredictable(&self) -> io::Result<String> {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes).map_err(|_| io::Error::other("no random bits"))?;
        Ok(bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
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

    fn read(&self, seen: &Entry, limit: u64) -> io::Result<Option<Vec<u8>>> {
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
        let mut bytes = Vec::new();
        (&mut file).take(limit).read_to_end(&mut bytes)?;
        Ok(unchanged(&file)?.then_some(bytes))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.path.join(format!(".{}.tmp", self.unpredictable()?));
        let written =
            write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, self.path.join(name)));
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

/// Writes a file that is not there yet, down to the disk: an empty answer must not survive a crash.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
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
        size: metadata.len(),
    };
    Entry { name, stamp, unreadable }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A fresh folder of this test's own, removed with the value.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> (Self, DirFolder) {
            let path = std::env::temp_dir().join(format!("navin-folder-{}-{name}", std::process::id()));
            fs::create_dir_all(path.join("inbox")).unwrap();
            let folder = DirFolder::new(&path.join("inbox"));
            (Self(path), folder)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn names(folder: &DirFolder) -> Vec<String> {
        let mut names: Vec<String> = folder.list(100).unwrap().into_iter().map(|e| e.name).collect();
        names.sort();
        names
    }

    #[test]
    fn only_commands_without_an_answer_are_listed_and_no_more_than_asked_for() {
        let (_scratch, folder) = Scratch::new("list");
        for name in ["a.json", "b.json", "b.receipt.json", ".c.json", "d.txt", "e.receipt.json"] {
            fs::write(folder.path.join(name), "{}").unwrap();
        }
        // An answer that is a link to nowhere is an answer, and is not followed.
        fs::write(folder.path.join("f.json"), "{}").unwrap();
        symlink("nowhere", folder.path.join("f.receipt.json")).unwrap();
        assert_eq!(names(&folder), ["a.json"]);
        fs::remove_file(folder.path.join("b.receipt.json")).unwrap();
        assert_eq!(names(&folder), ["a.json", "b.json"]);
        assert_eq!(folder.list(1).unwrap().len(), 1);
    }

    #[test]
    fn what_is_not_a_regular_file_with_one_name_is_never_read() {
        let (scratch, folder) = Scratch::new("kinds");
        let secret = scratch.0.join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, folder.path.join("link.json")).unwrap();
        fs::hard_link(&secret, folder.path.join("hard.json")).unwrap();
        fs::create_dir(folder.path.join("dir.json")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(folder.path.join("socket.json")).unwrap();
        for name in ["link.json", "hard.json", "dir.json", "socket.json"] {
            let entry = folder.look(name).unwrap();
            assert!(entry.unreadable.is_some(), "{name}");
            let read = folder.read(&entry, 100);
            assert!(matches!(read, Ok(None) | Err(_)), "{name}: {read:?}");
            // Nor where it is claimed to be an ordinary file.
            let claimed = Entry { unreadable: None, ..entry };
            let read = folder.read(&claimed, 100);
            assert!(matches!(read, Ok(None) | Err(_)), "{name}: {read:?}");
        }
        drop(socket);
    }

    #[test]
    fn a_file_that_has_changed_since_the_look_is_not_taken() {
        let (scratch, folder) = Scratch::new("changed");
        let path = folder.path.join("a.json");
        fs::write(&path, "one").unwrap();
        let entry = folder.look("a.json").unwrap();
        assert_eq!(folder.read(&entry, 100).unwrap().as_deref(), Some(b"one".as_slice()));
        assert_eq!(folder.read(&entry, 2).unwrap().as_deref(), Some(b"on".as_slice()));
        fs::write(scratch.0.join("other"), "two").unwrap();
        fs::rename(scratch.0.join("other"), &path).unwrap();
        assert_eq!(folder.read(&entry, 100).unwrap(), None, "another file of that name and size");
        fs::remove_file(&path).unwrap();
        assert_eq!(folder.read(&entry, 100).unwrap(), None);
        symlink("/etc/passwd", &path).unwrap();
        assert_eq!(folder.read(&entry, 100).unwrap(), None);
    }

    #[test]
    fn what_is_written_replaces_a_link_instead_of_following_it_and_leaves_nothing_else() {
        let (scratch, folder) = Scratch::new("write");
        let other = scratch.0.join("other");
        fs::write(&other, "untouched").unwrap();
        symlink(&other, folder.path.join("a.receipt.json")).unwrap();
        folder.write("a.receipt.json", b"answer").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"untouched");
        assert_eq!(fs::read(folder.path.join("a.receipt.json")).unwrap(), b"answer");
        fs::create_dir(folder.path.join("b.receipt.json")).unwrap();
        assert!(folder.write("b.receipt.json", b"answer").is_err());
        assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 2, "no temporary file is left");
        folder.remove("a.receipt.json").unwrap();
        folder.remove("a.receipt.json").unwrap();
    }
}
