//! The only place that starts a thread, and how long one may be silent.

#![expect(clippy::disallowed_methods, reason = "the only place that starts a thread")]

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Longest wait of a thread that has nothing to do, before it looks again.
pub const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Starts a named thread.
///
/// # Errors
///
/// What the operating system says, for example that the limit of processes is reached.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(body)
}
