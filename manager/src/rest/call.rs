//! What a call brings, read strictly, and what it is answered.

use super::problem::Problem;
use crate::app::{Shared, http};
use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use navin_cluster_agent::rules::json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Largest body, in bytes.
pub(super) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The parts of the path; what cannot be read is told as a problem.
pub(super) struct Segments<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, app).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(_) => Err(Problem::bad_request("the path is not text")),
        }
    }
}

/// Reads a body as strict JSON: what is refused in an envelope is refused here.
pub(super) async fn read_object(body: Body) -> Result<Map<String, Value>, Problem> {
    let bytes = http::read(body, MAX_BODY_BYTES).await?;
    match json::parse(&bytes, MAX_BODY_BYTES) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Problem::bad_request("the body is not an object")),
        Err(error) => Err(Problem::bad_request(&format!("the body is not strict JSON: {error}"))),
    }
}

/// Takes a member that must be a text.
pub(super) fn take_text(members: &mut Map<String, Value>, name: &str) -> Result<String, Problem> {
    match members.remove(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Problem::bad_request(&format!("{name}: expected a text"))),
        None => Err(Problem::bad_request(&format!("{name}: missing"))),
    }
}

/// Refuses members that were not taken: those but `known`.
pub(super) fn end(members: &Map<String, Value>, known: &[&str]) -> Result<(), Problem> {
    if members.is_empty() {
        return Ok(());
    }
    Err(Problem::bad_request(&format!("the body: expected no other members than {}", known.join(", "))))
}

/// An answer of JSON.
pub(super) fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    // Nothing of ours can fail to be written: no map has other keys than texts.
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    http::text(status, text, "application/json")
}

/// A document of the database, shown as it stands there: what agents wrote takes no more memory than its text.
pub(super) fn stored(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}
