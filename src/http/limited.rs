//! An answer's body under its limit.

use super::Request;
use std::io::{self, Read};

/// A reader that fails, rather than ends, at its limit: a cut text must not pass for a whole one.
pub(super) struct Limited<R> {
    inner: R,
    left: usize,
    limit: usize,
    path: String,
}

impl<R> Limited<R> {
    /// The answer to `request`, under its limit.
    pub(super) fn new(inner: R, request: &Request) -> Self {
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        Self { inner, left: request.limit, limit: request.limit, path }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let Some(left) = self.left.checked_sub(read) else {
            let why = format!("the answer to {} is larger than {} bytes", self.path, self.limit);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        };
        self.left = left;
        Ok(read)
    }
}
