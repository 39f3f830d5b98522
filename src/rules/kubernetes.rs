//! What decisions need to know of Kubernetes: an object's metadata, and what an answer means.

use serde_json::{Map, Value};

/// A Kubernetes object. Every accessor treats an absent or odd member as absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(pub Value);

impl Object {
    fn metadata(&self, member: &str) -> Option<&str> {
        self.0.get("metadata")?.get(member)?.as_str()
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.metadata("name")
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> Option<&str> {
        self.metadata("uid")
    }

    /// `metadata.resourceVersion`.
    #[must_use]
    pub fn resource_version(&self) -> Option<&str> {
        self.metadata("resourceVersion")
    }

    /// `metadata.generation`; 0 where the server gives none.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.0.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0)
    }

    /// Whether the object is being deleted (`metadata.deletionTimestamp` is set).
    #[must_use]
    pub fn terminating(&self) -> bool {
        self.metadata("deletionTimestamp").is_some()
    }

    /// `metadata.finalizers`.
    #[must_use]
    pub fn finalizers(&self) -> Vec<&str> {
        let list = self.0.pointer("/metadata/finalizers").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// One of `metadata.annotations`.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get("annotations")?.get(key)?.as_str()
    }

    /// One of `metadata.labels`.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get("labels")?.get(key)?.as_str()
    }

    /// Whether it nested too deep or weighed too much to be read, and stands here without what nests: never written back as read.
    #[must_use]
    pub fn is_shell(&self) -> bool {
        self.0.get("spec").is_some_and(Value::is_null)
    }

    /// Sets one entry of `metadata.annotations` or `metadata.labels`.
    pub fn set_metadata_entry(&mut self, group: &str, key: &str, value: &str) {
        let Value::Object(object) = &mut self.0 else { return };
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(metadata) = metadata else { return };
        let entries = metadata.entry(group).or_insert_with(|| Value::Object(Map::new()));
        if !entries.is_object() {
            *entries = Value::Object(Map::new());
        }
        if let Value::Object(entries) = entries {
            entries.insert(key.to_owned(), Value::String(value.to_owned()));
        }
    }

    /// Takes one entry out of `metadata.annotations` or `metadata.labels`.
    pub fn remove_metadata_entry(&mut self, group: &str, key: &str) {
        let entries = self.0.get_mut("metadata").and_then(|metadata| metadata.get_mut(group));
        if let Some(entries) = entries.and_then(Value::as_object_mut) {
            entries.remove(key);
        }
    }

    /// Takes out `metadata.managedFields`, often the largest part: who wrote what is the API server's to keep.
    pub fn forget_managed_fields(&mut self) {
        if let Some(metadata) = self.0.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }

    /// Sets a member of the object itself.
    pub fn set(&mut self, member: &str, value: Value) {
        if let Value::Object(object) = &mut self.0 {
            object.insert(member.to_owned(), value);
        }
    }
}

/// What came of a call that did not succeed, sorted by what the caller does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeError {
    /// 404: no such object, namespace or kind.
    NotFound(String),
    /// 409: the precondition did not hold, or the object exists.
    Conflict(String),
    /// 400, 403, 405, 413, 422: final.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's reason and message.
        message: String,
    },
    /// 410: the version or the continue token is too old; not acted on.
    Gone(String),
    /// Not acted on, to be tried again: 401, 429, or no connection.
    Unavailable {
        /// The HTTP status, where there was an answer.
        status: Option<u16>,
        /// What happened.
        message: String,
        /// The server's `Retry-After`, as sent.
        retry_after: Option<String>,
    },
    /// 5xx or no answer: a write may have been acted on, or may still be.
    Unanswered {
        /// What happened.
        message: String,
        /// The server's `Retry-After`, as sent.
        retry_after: Option<String>,
    },
}

impl KubeError {
    /// What an answer with this status means, other than 2xx; `retry_after` as sent.
    #[must_use]
    pub fn of(status: u16, message: String, retry_after: Option<String>) -> Self {
        match status {
            404 => Self::NotFound(message),
            409 => Self::Conflict(message),
            410 => Self::Gone(message),
            400 | 403 | 405 | 413 | 422 => Self::Refused { status, message },
            500.. => Self::Unanswered { message, retry_after },
            _ => Self::Unavailable { status: Some(status), message, retry_after },
        }
    }

    /// Whether the annotations are full: somebody else's leave no room for ours.
    #[must_use]
    pub fn annotations_full(&self) -> bool {
        matches!(self, Self::Refused { status: 422, message } if message.contains("metadata.annotations"))
    }

    /// How long the API server asks to be left alone, as sent (RFC 9110 section 10.2.3).
    #[must_use]
    pub fn retry_after(&self) -> Option<&str> {
        match self {
            Self::Unavailable { retry_after, .. } | Self::Unanswered { retry_after, .. } => {
                retry_after.as_deref()
            }
            Self::NotFound(_) | Self::Conflict(_) | Self::Refused { .. } | Self::Gone(_) => None,
        }
    }
}

impl std::fmt::Display for KubeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound(message)
            | Self::Conflict(message)
            | Self::Gone(message)
            | Self::Unavailable { message, .. }
            | Self::Unanswered { message, .. } => f.write_str(message),
            Self::Refused { status, message } => write!(f, "{message} ({status})"),
        }
    }
}
