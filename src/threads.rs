//! The only place that starts a thread.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a named thread.
///
/// # Errors
///
/// What the operating system says, for example that the limit of processes is reached.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(body)
}
