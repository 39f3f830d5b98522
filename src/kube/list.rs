//! Lists, page by page, of which only the members that the caller names are ever decoded.

use super::{Kube, KubeError};
use serde::Deserialize;
use std::io::BufReader;

/// Objects asked for in one page.
const PAGE: usize = 500;
/// How much smaller pages are after one that was too large.
const PAGE_SHRINKS: usize = 8;
/// Largest page, in bytes.
const PAGE_BYTES: usize = 16 * 1024 * 1024;
/// How often a list is begun anew when its continue token has expired (410).
const RESTARTS: u32 = 3;
/// Most objects of one list.
const MOST: usize = 50_000;

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
    /// More objects than a list may have, or one that is too large by itself.
    TooLarge,
    /// Not a list, cut short, or changing faster than it can be read.
    Incomplete(String),
}

impl std::fmt::Display for ListError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kube(error) => error.fmt(f),
            Self::PageTooLarge => write!(f, "more than {PAGE_BYTES} bytes in one page"),
            Self::TooLarge => write!(f, "more than {MOST} objects, or one of more than {PAGE_BYTES} bytes"),
            Self::Incomplete(why) => write!(f, "the list could not be read to its end: {why}"),
        }
    }
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: Option<PageMetadata>,
    // A server writes null for an empty slice (Go's nil).
    #[serde(default = "Option::default")]
    items: Option<Vec<T>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PageMetadata {
    r#continue: Option<String>,
    resource_version: Option<String>,
}

/// Reads the list at `path`; begins anew where its continue token expires, and with smaller pages where one is
/// too large.
pub(super) fn all<T: for<'de> Deserialize<'de>>(kube: &Kube, path: &str) -> Result<Whole<T>, ListError> {
    let (mut page, mut restarts) = (PAGE, 0_u32);
    loop {
        match once(kube, path, page) {
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
fn once<T: for<'de> Deserialize<'de>>(kube: &Kube, path: &str, page: usize) -> Result<Whole<T>, ListError> {
    let (mut items, mut token) = (Vec::new(), String::new());
    for _ in 0..MOST {
        let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
        let response =
            kube.open(&format!("{path}?limit={page}{next}"), PAGE_BYTES).map_err(ListError::Kube)?;
        let page: Page<T> =
            serde_json::from_reader(BufReader::new(response.body)).map_err(|e| unreadable(&e))?;
        items.extend(page.items.unwrap_or_default());
        if items.len() > MOST {
            break;
        }
        let metadata = page.metadata.unwrap_or_default();
        token = metadata.r#continue.unwrap_or_default();
        if token.is_empty() {
            let resource_version = metadata.resource_version.unwrap_or_default();
            return Ok(Whole { items, resource_version });
        }
    }
    Err(ListError::TooLarge)
}

fn unreadable(error: &serde_json::Error) -> ListError {
    if error.io_error_kind() == Some(std::io::ErrorKind::FileTooLarge) {
        ListError::PageTooLarge
    } else {
        ListError::Incomplete(error.to_string())
    }
}
