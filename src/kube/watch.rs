//! What the API server tells of the components: all of them once, then each change (Kubernetes API
//! concepts, "efficient detection of changes"). Nothing here decides; a sighting is a hint to look.

use super::list::{self, Limits, ListError};
use super::stream::{self, Lines};
use super::{Kube, KubeError, components};
use crate::clock::Clock;
use crate::rules::component::CREATED;
use crate::rules::json::{fault, parse_foreign, weight};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest line of a watch, in bytes: one object with its managed fields, and what is around it.
const LINE_BYTES: usize = 8 * 1024 * 1024;
/// Largest `status` that is kept, in bytes (CONTRACT section 5).
const STATUS_BYTES: usize = 16 * 1024;
/// Heaviest one that is kept, in units of 32 bytes ([`weight()`]): 64 KiB, some hundred members of objects.
const STATUS_WEIGHT: usize = 2 * 1024;
/// What the statuses of all components may take while they are held, in bytes; others are marked as too large.
pub const STATUSES_BYTES: usize = 16 * 1024 * 1024;
/// How much longer than the server was told the client waits: then the stream is dead, however quiet.
pub const SILENCE: Duration = Duration::from_secs(10);

/// One component as it was seen, without its spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`; 0 where the server gives none.
    pub generation: i64,
    /// The annotation `platform.navin.ai/created`, where the agent made it.
    pub created: Option<u64>,
    /// Whether it is being deleted.
    pub terminating: bool,
}

/// `status` of a component.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Status {
    /// It has none.
    #[default]
    Absent,
    /// It has this, as its text: as a value it may take four times as much.
    Here(Box<str>),
    /// More than 16 KiB, heavier than 64 KiB in memory, or deeper than we read.
    TooLarge,
}

impl Status {
    /// The length of its text, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Here(text) => text.len(),
            Self::Absent | Self::TooLarge => 0,
        }
    }

    /// Itself, where it fits into what is `left`.
    #[must_use]
    pub fn within(self, left: usize) -> Self {
        if self.bytes() <= left { self } else { Self::TooLarge }
    }
}

/// A component of a list, and its status.
pub type Listed = (Sighting, Status);

/// Reads a status as text first: one that is too large, or too deep, costs neither memory nor the list.
fn cut<'de, D: Deserializer<'de>>(source: D) -> Result<Status, D::Error> {
    let text = Box::<RawValue>::deserialize(source)?;
    Ok(match parse_foreign(text.get().as_bytes(), STATUS_BYTES) {
        Ok(Value::Null) => Status::Absent,
        Ok(status) if weight(&status) <= STATUS_WEIGHT => Status::Here(text.get().into()),
        Ok(_) | Err(_) => Status::TooLarge,
    })
}

/// One line of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Made or changed.
    Seen(Sighting, Status),
    /// Deleted: its name.
    Gone(String),
    /// Nothing but a newer `resourceVersion`.
    Bookmark,
    /// The stream has failed; what is known is to be read anew. 410 says that the version is too old.
    Failed(String),
}

/// Why there is no list, or no watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What happened, for people.
    pub why: String,
    /// The server's `Retry-After`, as sent.
    pub retry_after: Option<String>,
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self { why, retry_after: None }
    }
}

impl From<KubeError> for Failure {
    fn from(error: KubeError) -> Self {
        Self { why: error.to_string(), retry_after: error.retry_after().map(str::to_owned) }
    }
}

impl From<ListError> for Failure {
    fn from(error: ListError) -> Self {
        match error {
            ListError::Kube(error) => error.into(),
            ListError::PageTooLarge | ListError::TooLarge | ListError::Incomplete(_) => {
                error.to_string().into()
            }
        }
    }
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default, deserialize_with = "cut")]
    status: Status,
    /// Of a Status.
    #[serde(default)]
    code: Option<u16>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<String>,
    annotations: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    object: Item,
}

/// Reads all components, of which those come whose names are `wanted`, and the version from which [`open`] goes on.
/// A missing kind is an error, never an empty list.
///
/// # Errors
///
/// See [`Failure`].
pub fn list(
    kube: &Kube,
    clock: &dyn Clock,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Vec<Listed>, String), Failure> {
    let left = Cell::new(STATUSES_BYTES);
    let seen = |object: &[u8]| {
        let (sighting, status) = serde_json::from_slice::<Item>(object)?.seen();
        let is_wanted = wanted(&sighting.name);
        Ok(is_wanted.then(|| {
            let status = status.within(left.get());
            left.set(left.get().saturating_sub(status.bytes()));
            (sighting, status)
        }))
    };
    // What is wanted is bounded by the state that names it, its statuses just here.
    let limits = Limits::new(clock, |_| 0, usize::MAX);
    let whole = list::all(kube, &components::collection(kube), &seen, &limits)?;
    Ok((whole.items.into_iter().flatten().collect(), whole.resource_version))
}

/// A watch that is open.
pub struct Watch(Lines);

/// Watches the components from `version` on; the server ends it after `seconds`.
///
/// # Errors
///
/// See [`Failure`].
pub fn open(kube: &Kube, version: &str, seconds: u64) -> Result<Watch, Failure> {
    let query = format!("allowWatchBookmarks=true&resourceVersion={version}");
    Ok(Watch(stream::open(kube, &components::collection(kube), &query, seconds, SILENCE, LINE_BYTES)?))
}

impl Watch {
    /// The next change with its `resourceVersion`; none at the stream's orderly end.
    ///
    /// # Errors
    ///
    /// The stream broke, or was silent for too long.
    pub fn read(&mut self) -> Result<Option<(Change, Option<String>)>, String> {
        let Some(line) = self.0.read()? else { return Ok(None) };
        let line: Line =
            serde_json::from_slice(&line).map_err(|e| format!("not a line of a watch: {}", fault(&e)))?;
        let version = line.object.metadata.as_ref().and_then(|m| m.resource_version.clone());
        let change = match line.r#type.as_str() {
            "ADDED" | "MODIFIED" => {
                let (sighting, status) = line.object.seen();
                Change::Seen(sighting, status)
            }
            "DELETED" => Change::Gone(line.object.seen().0.name),
            "BOOKMARK" => Change::Bookmark,
            "ERROR" => Change::Failed(format!("code {}", line.object.code.unwrap_or_default())),
            _ => Change::Failed("unknown event".to_owned()),
        };
        Ok(Some((change, version)))
    }
}

impl Item {
    fn seen(self) -> (Sighting, Status) {
        let metadata = self.metadata.unwrap_or_default();
        let mut annotations = metadata.annotations.unwrap_or_default();
        let sighting = Sighting {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            created: annotations.remove(CREATED).flatten().and_then(|text| text.parse().ok()),
            terminating: metadata.deletion_timestamp.is_some(),
        };
        (sighting, self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_is_short_as_text_and_large_in_memory_is_left_out() {
        let read = |status: &str| cut(&mut serde_json::Deserializer::from_str(status)).unwrap();
        let many = |count: usize| format!(r#"{{"s":[{}]}}"#, vec![r#"{"a":0}"#; count].join(","));
        assert!(many(1_500).len() < STATUS_BYTES);
        assert_eq!(read(&many(1_500)), Status::TooLarge);
        assert!(matches!(read(&many(50)), Status::Here(_)), "as many conditions as nobody has");
        assert_eq!(read("null"), Status::Absent);
    }
}
