//! Lists, page by page, of which only the members that the caller names are ever decoded.

use super::{Kube, KubeError};
use serde::Deserialize;
use std::io::BufReader;

/// Objects asked for in one page.
const PAGE: usize = 500;
/// Largest page, in bytes.
const PAGE_BYTES: u64 = 64 * 1024 * 1024;
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
    /// Larger than a page or a list may be.
    TooLarge,
    /// Not a list, cut short, or changing faster than it can be read.
    Incomplete(String),
}

impl std::fmt::Display for ListError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kube(error) => error.fmt(f),
            Self::TooLarge => write!(f, "more than {MOST} objects, or {PAGE_BYTES} bytes in one page"),
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

/// Reads the list at `path`, and begins anew where its continue token expires.
pub(super) fn all<T: for<'de> Deserialize<'de>>(kube: &Kube, path: &str) -> Result<Whole<T>, ListError> {
    for _ in 0..=RESTARTS {
        if let Some(whole) = once(kube, path)? {
            return Ok(whole);
        }
    }
    Err(ListError::Incomplete("its continue token expired again and again".to_owned()))
}

/// One pass over all pages; none where the token of the next one has expired.
fn once<T: for<'de> Deserialize<'de>>(kube: &Kube, path: &str) -> Result<Option<Whole<T>>, ListError> {
    let (mut items, mut token) = (Vec::new(), String::new());
    loop {
        let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
        let response = match kube.open(&format!("{path}?limit={PAGE}{next}"), PAGE_BYTES) {
            Ok(response) => response,
            Err(KubeError::Unavailable { .. }) if !token.is_empty() => return Ok(None),
            Err(error) => return Err(ListError::Kube(error)),
        };
        let page: Page<T> =
            serde_json::from_reader(BufReader::new(response.body)).map_err(|e| unreadable(&e))?;
        items.extend(page.items.unwrap_or_default());
        if items.len() > MOST {
            return Err(ListError::TooLarge);
        }
        let metadata = page.metadata.unwrap_or_default();
        token = metadata.r#continue.unwrap_or_default();
        if token.is_empty() {
            let resource_version = metadata.resource_version.unwrap_or_default();
            return Ok(Some(Whole { items, resource_version }));
        }
    }
}

fn unreadable(error: &serde_json::Error) -> ListError {
    if error.io_error_kind() == Some(std::io::ErrorKind::FileTooLarge) {
        ListError::TooLarge
    } else {
        ListError::Incomplete(error.to_string())
    }
}
