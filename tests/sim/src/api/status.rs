//! Answers: an object, or a Status that says why not.

use super::Kind;
use serde_json::{Value, json};

/// An answer of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: Vec<u8>,
    /// `Retry-After`
    pub retry_after: Option<String>,
}

impl Reply {
    /// 200 with a document.
    #[must_use]
    pub fn of(document: &Value) -> Self {
        Self::with(200, document)
    }

    /// Any status with a document.
    #[must_use]
    pub fn with(status: u16, document: &Value) -> Self {
        Self { status, body: document.to_string().into_bytes(), retry_after: None }
    }

    /// A Status of failure.
    #[must_use]
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        Self::with(
            code,
            &json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": message, "reason": (!reason.is_empty()).then_some(reason), "code": code,
            }),
        )
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

pub(super) fn not_found(kind: Kind, name: &str) -> Reply {
    Reply::status(404, "NotFound", &format!("{} {name:?} not found", kind.resource()))
}

pub(super) fn exists(kind: Kind, name: &str) -> Reply {
    Reply::status(409, "AlreadyExists", &format!("{} {name:?} already exists", kind.resource()))
}

pub(super) fn changed(kind: Kind, name: &str) -> Reply {
    let resource = kind.resource();
    let message = format!(
        "Operation cannot be fulfilled on {resource} {name:?}: the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    Reply::status(409, "Conflict", &message)
}

pub(super) fn precondition(kind: Kind, name: &str, what: &str) -> Reply {
    let resource = kind.resource();
    let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {what}");
    Reply::status(409, "Conflict", &message)
}

pub(super) fn invalid(kind: Kind, name: &str, what: &str) -> Reply {
    Reply::status(422, "Invalid", &format!("{} {name:?} is invalid: {what}", kind.name()))
}

pub(super) fn expired(message: &str) -> Reply {
    Reply::status(410, "Expired", message)
}
