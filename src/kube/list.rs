//! Lists, page by page, of which only what the caller wants of an object is ever decoded.
//!
//! A list is whole, or an error: never the pages that came. Its pages, objects and restarts are bounded, and so are its
//! time and what is held of it.

mod page;
#[cfg(test)]
mod tests;

use super::{Kube, KubeError};
use crate::clock::Clock;
use page::PageError;
use std::io::BufReader;
use std::time::Duration;

/// Objects asked for in one page.
const PAGE: usize = 500;
/// How much smaller pages are after one that was too large.
const PAGE_SHRINKS: usize = 8;
/// Largest page, in bytes.
const PAGE_BYTES: usize = 16 * 1024 * 1024;
/// What is read of a page at once, in bytes: two records of TLS.
const BUFFER: usize = 32 * 1024;
/// How often a list is begun anew when its continue token has expired (410).
const RESTARTS: u32 = 3;
/// Most objects of one list.
const MOST: usize = 50_000;

/// Longest time for a list, or for the lists of an inventory together.
const LONGEST: Duration = Duration::from_mins(10);

/// Decodes one object of a list from its JSON.
pub(super) type Decode<'a, T> = &'a dyn Fn(&[u8]) -> serde_json::Result<T>;

/// How much of a list is read.
pub(super) struct Limits<'a, T> {
    clock: &'a dyn Clock,
    /// Until when (monotonic).
    until: Duration,
    /// What one object takes, as it is held, in bytes.
    pub(super) held: fn(&T) -> usize,
    /// What all of them may take, in bytes; the page that goes over it comes on top.
    pub(super) most: usize,
}

impl<'a, T> Limits<'a, T> {
    /// From now on.
    pub(super) fn new(clock: &'a dyn Clock, held: fn(&T) -> usize, most: usize) -> Self {
        Self { clock, until: clock.monotonic().saturating_add(LONGEST), held, most }
    }
}

/// Every object of a list, at one moment.
pub(super) struct Whole<T> {
    pub(super) items: Vec<T>,
    /// `metadata.resourceVersion`, from which a watch goes on.
    pub(super) resource_version: String,
}

/// Why a list is not whole.
pub(super) enum ListError {
    /// An error's answer, or none.
    Kube(KubeError),
    /// A page larger than it may be: smaller ones may do.
    PageTooLarge,
    /// More objects than a list may have, or larger ones.
    TooLarge,
    /// Not a list, cut short, or changing faster than it can be read.
    Incomplete(String),
}

impl std::fmt::Display for ListError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kube(error) => error.fmt(f),
            Self::PageTooLarge => write!(f, "more than {PAGE_BYTES} bytes in one page"),
            Self::TooLarge => {
                write!(f, "more than {MOST} objects, one of more than {PAGE_BYTES} bytes, or too much in all")
            }
            Self::Incomplete(why) => write!(f, "the list could not be read to its end: {why}"),
        }
    }
}

/// Reads the list at `path`; begins anew where its continue token expires, and with smaller pages where one is
/// too large.
pub(super) fn all<T>(
    kube: &Kube,
    path: &str,
    decode: Decode<'_, T>,
    limits: &Limits<'_, T>,
) -> Result<Whole<T>, ListError> {
    let (mut page, mut restarts) = (PAGE, 0_u32);
    loop {
        match once(kube, path, page, decode, limits) {
            Err(ListError::Kube(KubeError::Gone(_))) if restarts < RESTARTS => {
                restarts = restarts.saturating_add(1);
            }
            Err(ListError::PageTooLarge) if page > 1 => {
                page = page.checked_div(PAGE_SHRINKS).unwrap_or(1).max(1);
            }
            Err(ListError::PageTooLarge) => return Err(ListError::TooLarge),
            result => return result,
        }
    }
}

/// One pass over all pages of so many objects.
fn once<T>(
    kube: &Kube,
    path: &str,
    page: usize,
    decode: Decode<'_, T>,
    limits: &Limits<'_, T>,
) -> Result<Whole<T>, ListError> {
    let (mut items, mut token) = (Vec::new(), String::new());
    let mut held = 0_usize;
    for _ in 0..MOST {
        if limits.clock.monotonic() >= limits.until {
            return Err(ListError::Incomplete(format!("it takes longer than {} s", LONGEST.as_secs())));
        }
        let before = items.len();
        let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
        let response =
            kube.page(&format!("{path}?limit={page}{next}"), PAGE_BYTES).map_err(ListError::Kube)?;
        let metadata = page::read(BufReader::with_capacity(BUFFER, response.body), decode, &mut items)
            .map_err(|error| unreadable(&error))?;
        held = items.iter().skip(before).map(limits.held).fold(held, usize::saturating_add);
        if items.len() > MOST || held > limits.most {
            break;
        }
        token = metadata.r#continue.unwrap_or_default();
        if token.is_empty() {
            let resource_version = metadata.resource_version.unwrap_or_default();
            return Ok(Whole { items, resource_version });
        }
    }
    Err(ListError::TooLarge)
}

fn unreadable(error: &PageError) -> ListError {
    match error {
        PageError::Io(error) if error.kind() == std::io::ErrorKind::FileTooLarge => ListError::PageTooLarge,
        PageError::Io(error) => ListError::Incomplete(error.to_string()),
        PageError::Json(why) => ListError::Incomplete(why.clone()),
    }
}
