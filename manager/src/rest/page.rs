//! Pages of a list: `limit` and `continue`.

use super::problem::Problem;
use crate::app::Shared;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

/// Entries of one page where nothing is asked for.
const DEFAULT_LIMIT: i64 = 100;

/// Most entries of one page.
const MAX_LIMIT: i64 = 1000;

/// Longest `continue`, in characters.
const MAX_CONTINUE: usize = 512;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    limit: Option<i64>,
    #[serde(rename = "continue")]
    after: Option<String>,
}

/// Which page is asked for.
pub(super) struct Page {
    limit: i64,
    after: Option<String>,
}

impl FromRequestParts<Shared> for Page {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        let query = Query::<Asked>::from_request_parts(parts, app).await;
        let Query(asked) =
            query.map_err(|_| Problem::bad_request("the query: expected limit and continue, each once"))?;
        let limit = asked.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Problem::bad_request("limit: expected 1 to 1000"));
        }
        let after = asked.after.as_deref().map(decode).transpose()?;
        Ok(Self { limit, after })
    }
}

impl Page {
    /// The key after which the page begins.
    pub(super) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The same where keys are numbers.
    pub(super) fn after_number(&self) -> Result<Option<i64>, Problem> {
        self.after().map(|key| key.parse().map_err(|_| unknown())).transpose()
    }

    /// How many rows to read: one more than is shown tells whether there is another page.
    pub(super) fn rows(&self) -> i64 {
        self.limit.saturating_add(1)
    }

    /// The page as a document: the rows as `view` shows them, and how to go on behind the last.
    pub(super) fn document<R, V>(
        &self,
        name: &'static str,
        mut rows: Vec<R>,
        key: impl Fn(&R) -> String,
        view: impl Fn(R) -> V,
    ) -> Document<V> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| URL_SAFE_NO_PAD.encode(key(row)));
        Document { name, shown: rows.into_iter().map(view).collect(), next }
    }
}

/// One page of a list.
pub(super) struct Document<V> {
    name: &'static str,
    shown: Vec<V>,
    next: Option<String>,
}

impl<V: Serialize> Serialize for Document<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(2))?;
        members.serialize_entry(self.name, &self.shown)?;
        members.serialize_entry("continue", &self.next)?;
        members.end()
    }
}

fn decode(text: &str) -> Result<String, Problem> {
    if text.len() > MAX_CONTINUE {
        return Err(unknown());
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| unknown())?;
    match String::from_utf8(bytes) {
        Ok(key) if !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(key),
        Ok(_) | Err(_) => Err(unknown()),
    }
}

fn unknown() -> Problem {
    Problem::bad_request("continue: not from an answer of this list")
}
