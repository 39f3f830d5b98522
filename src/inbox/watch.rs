//! What the kernel says about the folder: hints for the inbox, which scans in any case. The only file that
//! names notify.
//!
//! Its own reads must not wake it: the watch reports them as accesses, which are left out, and so are the
//! answers and hidden files that it writes. A watch that cannot be had (no folder yet, the limit of inotify
//! reached) is tried again before every rescan; a folder that was removed and made again is watched anew.

use super::desk::Desk;
use crate::rules::inbox::receipt_name;
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Keeps a watch on one folder.
pub(super) struct Watch {
    path: PathBuf,
    desk: Arc<Desk>,
    current: Option<Current>,
    /// The last failure that was logged, so that it is logged once.
    told: Option<String>,
}

struct Current {
    /// Device and inode of the folder that is watched.
    folder: (u64, u64),
    /// It was removed or moved: another may have its inode by now.
    gone: Arc<AtomicBool>,
    /// Ends with its drop.
    _watcher: RecommendedWatcher,
}

impl Watch {
    pub(super) fn new(path: &Path, desk: Arc<Desk>) -> Self {
        Self { path: path.to_owned(), desk, current: None, told: None }
    }

    /// Sees that the folder of now is watched; whether it is.
    pub(super) fn keep(&mut self) -> bool {
        let Some(folder) = identity(&self.path) else {
            self.current = None;
            return false;
        };
        let same = |current: &Current| current.folder == folder && !current.gone.load(Ordering::Relaxed);
        if self.current.as_ref().is_some_and(same) {
            return true;
        }
        self.current = None;
        let gone = Arc::new(AtomicBool::new(false));
        match self.begin(&gone) {
            Ok(watcher) => {
                log::info!("inbox watched folder={:?}", self.path);
                self.told = None;
                self.current = Some(Current { folder, gone, _watcher: watcher });
                // Whatever came before the watch is found by a scan.
                self.desk.hint();
                true
            }
            Err(error) => {
                let text = describe(&error);
                if self.told.as_ref() != Some(&text) {
                    log::warn!("inbox not watched, scanned instead folder={:?} error={text:?}", self.path);
                    self.told = Some(text);
                }
                false
            }
        }
    }

    fn begin(&self, gone: &Arc<AtomicBool>) -> notify::Result<RecommendedWatcher> {
        let (desk, path, gone) = (Arc::clone(&self.desk), self.path.clone(), Arc::clone(gone));
        let hint = move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            if is_its_end(&event, &path) {
                gone.store(true, Ordering::Relaxed);
                desk.hint();
            } else if concerns_a_command(&event) {
                desk.hint();
            }
        };
        let mut watcher = RecommendedWatcher::new(hint, Config::default())?;
        watcher.watch(&self.path, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().filter(fs::Metadata::is_dir).map(|folder| (folder.dev(), folder.ino()))
}

/// Whether the watched folder itself was removed or moved.
fn is_its_end(event: &Event, folder: &Path) -> bool {
    let ends = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    ends && event.paths.iter().any(|path| path == folder)
}

/// Whether an event may mean that there is something to read.
fn concerns_a_command(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Any => {
            let command = |path: &PathBuf| {
                path.file_name()
                    .and_then(|name| name.to_str())
                    .is_some_and(|name| receipt_name(name).is_some())
            };
            event.need_rescan() || event.paths.iter().any(command)
        }
        // The queue ran over: what was in it is unknown.
        EventKind::Other => event.need_rescan(),
        EventKind::Access(_) => false,
    }
}

/// The kernel's "no space left on device" and "too many open files" are about its own limits here.
fn describe(error: &notify::Error) -> String {
    let limit = match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENOSPC)),
        ErrorKind::Generic(_)
        | ErrorKind::PathNotFound
        | ErrorKind::WatchNotFound
        | ErrorKind::InvalidConfig(_) => false,
    };
    if limit {
        format!("the limit of inotify is reached (fs.inotify.max_user_instances, max_user_watches): {error}")
    } else {
        error.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{CreateKind, DataChange, Flag, RemoveKind, RenameMode};

    #[test]
    fn a_command_that_comes_or_changes_is_a_hint_and_what_the_inbox_itself_does_is_none() {
        let access = |kind| EventKind::Access(kind);
        let modify = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        for (kind, name, wanted) in [
            (EventKind::Create(CreateKind::File), "a.json", true),
            (modify, "a.json", true),
            (renamed, "a.json", true),
            (access(AccessKind::Close(AccessMode::Write)), "a.json", true),
            (EventKind::Remove(RemoveKind::File), "a.json", true),
            (access(AccessKind::Open(AccessMode::Any)), "a.json", false),
            (access(AccessKind::Close(AccessMode::Read)), "a.json", false),
            (access(AccessKind::Open(AccessMode::Any)), "inbox", false),
            (EventKind::Create(CreateKind::File), ".0123.tmp", false),
            (renamed, "a.receipt.json", false),
            (renamed, ".status.json", false),
            (modify, "notes.txt", false),
        ] {
            let event = Event::new(kind).add_path(PathBuf::from("/inbox").join(name));
            assert_eq!(concerns_a_command(&event), wanted, "{event:?}");
        }
        assert!(concerns_a_command(&Event::new(EventKind::Other).set_flag(Flag::Rescan)));
    }
}
