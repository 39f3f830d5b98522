//! The bearer token for the API server. It is read for every request, so that no rotation is ever missed, and
//! never shown. What cannot be one never gets into a header; while the file holds none, the last one is kept, and
//! where there never was one, the request goes out without.

use crate::files;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A bearer token in a file that is replaced as it rotates (a projected ServiceAccount token).
pub(crate) struct TokenFile {
    path: PathBuf,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    good: Option<String>,
    /// It was said that there is none.
    told: bool,
}

impl TokenFile {
    /// Largest token, in bytes.
    const LIMIT: usize = 64 * 1024;

    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, last: Mutex::default() }
    }

    /// The token as the file holds it now, or the last good one while the file is unreadable or empty.
    pub(crate) fn read(&self) -> Option<String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = match files::read_text(&self.path, Self::LIMIT) {
            Ok(text) if is_token(text.trim()) => {
                last.good = Some(text.trim().to_owned());
                return last.good.clone();
            }
            Ok(_) => "it holds no token".to_owned(),
            Err(error) => error.to_string(),
        };
        let (level, then) = match (&last.good, last.told) {
            (Some(_), _) => (log::Level::Debug, "the last one is kept"),
            (None, true) => (log::Level::Debug, "the API server is asked without one"),
            (None, false) => (log::Level::Warn, "the API server is asked without one"),
        };
        log::log!(level, "token not readable file={:?} error={problem:?}: {then}", self.path);
        last.told = true;
        last.good.clone()
    }
}

/// RFC 6750 section 2.1: one or more visible characters; anything else must not get into a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}
