//! A folder in memory, whose writes can fail.

use crate::clock::HandClock;
use crate::folder::{Entry, Folder, Stamp};
use crate::rules::inbox::receipt_name;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Default)]
pub(super) struct Files {
    pub(super) held: BTreeMap<String, (Entry, Vec<u8>)>,
    pub(super) version: u64,
    pub(super) scans: usize,
    pub(super) reads: Vec<String>,
    pub(super) read_only: bool,
    pub(super) unlistable: bool,
    /// How long the next scan takes, and by which clock.
    pub(super) stalls: Option<(Arc<HandClock>, Duration)>,
}

#[derive(Clone, Default)]
pub(super) struct FakeFolder(Arc<Mutex<Files>>);

impl FakeFolder {
    pub(super) fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap()
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        let mut files = self.lock();
        files.version += 1;
        let at = (i64::try_from(files.version).unwrap(), 0);
        let stamp = Stamp { modified: at, changed: at, file: (1, 1), size: bytes.len() };
        let entry = Entry { name: name.to_owned(), stamp, unreadable: None };
        files.held.insert(name.to_owned(), (entry, bytes.to_vec()));
    }

    pub(super) fn text(&self, name: &str) -> Option<Value> {
        self.lock().held.get(name).map(|(_, bytes)| serde_json::from_slice(bytes).unwrap())
    }
}

impl Folder for FakeFolder {
    fn path(&self) -> Option<&Path> {
        None
    }
    fn list(&self, most: usize) -> io::Result<Vec<Entry>> {
        let mut files = self.lock();
        files.scans += 1;
        if let Some((clock, long)) = files.stalls.take() {
            clock.advance(long);
        }
        if files.unlistable {
            return Err(io::Error::other("too many open files"));
        }
        let unanswered =
            |name: &&String| receipt_name(name).is_some_and(|receipt| !files.held.contains_key(&receipt));
        let names = files.held.keys().filter(unanswered).take(most);
        Ok(names.map(|name| files.held[name].0.clone()).collect())
    }
    fn look(&self, name: &str) -> Option<Entry> {
        self.lock().held.get(name).map(|(entry, _)| entry.clone())
    }
    fn read(&self, entry: &Entry, _: usize) -> io::Result<Option<Vec<u8>>> {
        let mut files = self.lock();
        files.reads.push(entry.name.clone());
        Ok(files.held.get(&entry.name).filter(|(found, _)| found == entry).map(|(_, bytes)| bytes.clone()))
    }
    fn write(&self, name: &str, bytes: &[u8], _: bool) -> io::Result<()> {
        if self.lock().read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.put(name, bytes);
        Ok(())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.lock().held.remove(name);
        Ok(())
    }
}
