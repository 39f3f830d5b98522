//! Files: bounded reads, replacement that is whole or not at all, locks between processes.

use super::failure::Failure;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Largest key or certificate file that is read, in bytes.
const MAX_KEY_FILE_BYTES: u64 = 256 * 1024;

/// Mode of a private file.
pub(crate) const PRIVATE: u32 = 0o600;

/// Mode of a public file.
pub(crate) const PUBLIC: u32 = 0o644;

/// Makes a folder that only this user can enter, and those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| Failure::file(path, error))
}

/// Whether a file is there. One that may not be looked at is an error, and none that is missing.
pub(crate) fn is_there(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(|error| Failure::file(path, error))
}

/// Reads a small text; `None` where there is no such file.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, Failure> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::file(path, error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_KEY_FILE_BYTES).read_to_end(&mut bytes).map_err(|error| Failure::file(path, error))?;
    String::from_utf8(bytes).map(Some).map_err(|_| Failure::damaged(path, "not text"))
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Replaces a file: whole or not at all, and durable when this returns.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let folder = folder_of(path);
    let temporary = folder.join(format!(".{}.tmp", uuid::Uuid::new_v4()));
    let written = write_new(&temporary, bytes, mode)
        .and_then(|()| std::fs::rename(&temporary, path))
        .and_then(|()| File::open(folder)?.sync_all());
    written.map_err(|error| {
        drop(std::fs::remove_file(&temporary));
        Failure::file(path, error)
    })
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits for the lock of a folder. It is held until the file is dropped, or the process is gone.
pub(crate) fn lock_folder(folder: &Path) -> Result<File, Failure> {
    let path = folder.join(".lock");
    let file = open_private(&path)?;
    file.lock().map_err(|error| Failure::file(&path, error))?;
    Ok(file)
}

/// Opens a private file for its lock; made, empty, where it is not there.
pub(crate) fn open_private(path: &Path) -> Result<File, Failure> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE)
        .open(path)
        .map_err(|error| Failure::file(path, error))
}
