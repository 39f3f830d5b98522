//! Bounded reads of files, and the replacement of one. With `folder`, the only place where the agent opens one.

#![expect(clippy::disallowed_methods, reason = "opens files, and bounds what is read of them")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Largest file that the agent reads, in bytes: a certificate bundle or a command.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// What is read of a file at once, in bytes: the usual file whole. Not more, for which musl would map a page and unmap it.
const AT_ONCE: usize = 1024;

/// Reads at most `limit` bytes; a longer text is cut there.
///
/// # Errors
///
/// What the operating system says.
pub fn bounded(source: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(limit.min(AT_ONCE));
    source.take(u64::try_from(limit).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
///
/// What the operating system says, or `InvalidData` for something that is not a regular file or is larger.
pub fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    // NONBLOCK: to open a FIFO would wait for its writer. NOCTTY: nor does a terminal become ours.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "expected a regular file"));
    }
    let bytes = bounded(file, limit.saturating_add(1))?;
    if bytes.len() > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// [`read`], as text.
///
/// # Errors
///
/// As [`read`], and `InvalidData` for what is not UTF-8.
pub fn read_text(path: &Path, limit: usize) -> io::Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "expected UTF-8 text"))
}

/// Writes a file so that its name never has a part of it, in place of what has that name. It may be lost when
/// the machine stops: nothing waits for the disk. The temporary file has a name of its own, not a random one: nobody sweeps
/// the folder, and the next call takes away what one before has left.
///
/// # Errors
///
/// What the operating system says.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    // Left by a process that was killed, or put there by somebody; no link is followed.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    OpenOptions::new().write(true).create_new(true).open(&temporary)?.write_all(bytes)?;
    fs::rename(&temporary, path)
}

/// [`bounded`], of a file, or of standard input for `-`.
///
/// # Errors
///
/// What the operating system says.
pub fn read_head(path: &str, limit: usize) -> io::Result<Vec<u8>> {
    if path == "-" { bounded(io::stdin().lock(), limit) } else { bounded(File::open(path)?, limit) }
}
