//! The lines of a watch, each with a limit.

use super::{Kube, KubeError};
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

/// Longest line, in bytes: one object with its managed fields, and what is around it.
const LINE_BYTES: u64 = 8 * 1024 * 1024;

/// A watch that is open.
pub(super) struct Lines(BufReader<Box<dyn Read + Send>>);

/// Watches `collection` with `query`; the server ends it after `seconds`, and `silence` later it is dead.
pub(super) fn open(
    kube: &Kube,
    collection: &str,
    query: &str,
    seconds: u64,
    silence: Duration,
) -> Result<Lines, KubeError> {
    let path = format!("{collection}?watch=1&timeoutSeconds={seconds}&{query}");
    let response = kube.stream(&path, Duration::from_secs(seconds).saturating_add(silence))?;
    Ok(Lines(BufReader::new(response.body)))
}

impl Lines {
    /// The next line; none at the stream's orderly end. An error where it broke, or was silent for too long.
    pub(super) fn read(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut line = Vec::new();
        let read = (&mut self.0).take(LINE_BYTES).read_until(b'\n', &mut line);
        read.map_err(|e| e.to_string())?;
        Ok((!line.is_empty()).then_some(line))
    }
}
