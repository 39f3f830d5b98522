//! The bearer token for the API server. It is read for every request, so that no rotation is ever missed, and
//! never shown. What cannot be one never gets into a header; while the file holds none, the last one is kept.

use crate::files;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A bearer token in a file that is replaced as it rotates (a projected ServiceAccount token).
pub(crate) struct TokenFile {
    path: PathBuf,
    last_good: Mutex<Option<String>>,
}

impl TokenFile {
    /// Largest token, in bytes.
    const LIMIT: usize = 64 * 1024;

    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, last_good: Mutex::new(None) }
    }

    /// The token as the file holds it now, or the last good one while the file is unreadable or empty.
    pub(crate) fn read(&self) -> Option<String> {
        let mut last_good = self.last_good.lock().unwrap_or_else(PoisonError::into_inner);
        match files::read_text(&self.path, Self::LIMIT) {
            Ok(text) if is_token(text.trim()) => *last_good = Some(text.trim().to_owned()),
            Ok(_) => log::debug!("token file={:?} holds no token: the last one is kept", self.path),
            Err(e) => log::debug!("token file={:?} error={e}: the last one is kept", self.path),
        }
        last_good.clone()
    }
}

/// RFC 6750 section 2.1: one or more visible characters; anything else must not get into a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}
