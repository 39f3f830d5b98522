//! How long a value is as JSON, without its text.

use serde::Serialize;
use std::io;

/// The length of a value as JSON.
#[must_use]
pub fn length(value: &impl Serialize) -> usize {
    let mut counter = Counter(0);
    // Nothing of ours can fail to be written (no map has other keys than texts), and the counter takes everything.
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// Counts what is written to it.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
