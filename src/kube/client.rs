//! One call to the API server: path in, object or a sorted error out.
//!
//! Every call has its limits in time and bytes, a write has the first at the server too; none is repeated. Objects come
//! from the store, never from a cache, and go back with all that they came with but `managedFields`, which the API server
//! keeps where a PUT leaves them out. A cut body is an error.

use super::shell;
use crate::http::{Http, HttpError, Method, Request, Response};
use crate::rules::json::parse_object;
use crate::rules::kubernetes::{KubeError, Object};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Limit on a read of one page of a list.
const LIST_LIMIT: Duration = Duration::from_secs(30);
/// Largest answer with one object, in bytes (etcd holds at most 1.5 MiB; managed fields add to it).
pub(super) const OBJECT_BYTES: usize = 8 * 1024 * 1024;
/// A stream has no limit in all: each of its lines has one.
const ENDLESS: usize = usize::MAX;
/// How much longer than the server's own limit an answer may take, so that it still arrives.
const ARRIVES: Duration = Duration::from_secs(1);
/// How much of a foreign message is kept, in characters.
const MESSAGE_CHARS: usize = 600;

/// A client of the API server for one managed namespace. Clones share the connection pool.
#[derive(Clone)]
pub struct Kube {
    http: Arc<dyn Http>,
    namespace: String,
    write_timeout: Duration,
}

impl From<HttpError> for KubeError {
    fn from(error: HttpError) -> Self {
        let message = error.to_string();
        match error {
            HttpError::Unsent(_) => Self::Unavailable { status: None, message, retry_after: None },
            HttpError::Unanswered(_) => Self::Unanswered { message, retry_after: None },
        }
    }
}

impl Kube {
    /// A client over `http`; `write_timeout` bounds every write, at the server too.
    #[must_use]
    pub fn new(http: Arc<dyn Http>, namespace: &str, write_timeout: Duration) -> Self {
        Self { http, namespace: namespace.to_owned(), write_timeout }
    }

    /// The managed namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Reads one object; never from the watch cache (no `resourceVersion=0`).
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn get(&self, path: &str) -> Result<Object, KubeError> {
        let request = self.request(Method::Get, path.to_owned(), None, longest_call(self.write_timeout));
        object(self.send(&request)?)
    }

    /// [`Kube::get`], of an object that may not be there, and is to be written: a write names its uid and
    /// `resourceVersion`.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn find(&self, path: &str) -> Result<Option<Object>, KubeError> {
        match self.get(path) {
            Ok(object) if object.uid().is_none() || object.resource_version().is_none() => {
                Err(not_an_answer("an object without uid or resourceVersion"))
            }
            Ok(object) => Ok(Some(object)),
            Err(KubeError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// [`Kube::find`], of one whose content decides: where it could not be read whole it is not as good as none.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn find_whole(&self, path: &str) -> Result<Option<Object>, KubeError> {
        match self.find(path)? {
            Some(object) if object.is_shell() => Err(not_an_answer("nested too deep or too large")),
            found => Ok(found),
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn post(&self, path: &str, object_: &Value) -> Result<Object, KubeError> {
        object(self.send(&self.write(Method::Post, path, object_))?)
    }

    /// Replaces an object; its `resourceVersion` is the precondition.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn put(&self, path: &str, object_: &Value) -> Result<Object, KubeError> {
        object(self.send(&self.write(Method::Put, path, object_))?)
    }

    /// Changes the members of `change` (JSON Merge Patch, RFC 7396); has no precondition.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn patch(&self, path: &str, change: &Value) -> Result<Object, KubeError> {
        object(self.send(&self.write(Method::Patch, path, change))?)
    }

    /// Deletes an object with the preconditions in `options`; the answer is the object or a Status.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn delete(&self, path: &str, options: &Value) -> Result<Object, KubeError> {
        object(self.send(&self.write(Method::Delete, path, options))?)
    }

    /// Reads one page of a list, with a limit of the caller's on the body, which is still to be read.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn page(&self, path: &str, limit: usize) -> Result<Response, KubeError> {
        let mut request = self.request(Method::Get, path.to_owned(), None, LIST_LIMIT);
        request.limit = limit;
        self.send(&request)
    }

    /// Reads as [`Kube::get`], with a limit of the caller's on the body, which is still to be read.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn get_body(&self, path: &str, limit: usize) -> Result<Response, KubeError> {
        let mut request = self.request(Method::Get, path.to_owned(), None, longest_call(self.write_timeout));
        request.limit = limit;
        self.send(&request)
    }

    /// Opens a stream whose body is read as it comes, at most until `timeout`; its lines have a limit of the
    /// caller's.
    ///
    /// # Errors
    ///
    /// See [`KubeError`].
    pub fn stream(&self, path: &str, timeout: Duration) -> Result<Response, KubeError> {
        let mut request = self.request(Method::Get, path.to_owned(), None, timeout);
        request.limit = ENDLESS;
        self.send(&request)
    }

    fn write(&self, method: Method, path: &str, body: &Value) -> Request {
        let seconds = self.write_timeout.as_secs().max(1);
        let manager = if method == Method::Delete { "" } else { "&fieldManager=navin-cluster-agent" };
        let path = format!("{path}?timeout={seconds}s{manager}");
        let limit = longest_call(self.write_timeout);
        // Nothing in it can fail to be written: no map has other keys than texts.
        self.request(method, path, Some(serde_json::to_vec(body).unwrap_or_default()), limit)
    }

    #[expect(clippy::unused_self, reason = "reads as one of the client's verbs")]
    fn request(&self, method: Method, path: String, body: Option<Vec<u8>>, timeout: Duration) -> Request {
        Request { method, path, body, timeout, limit: OBJECT_BYTES }
    }

    fn send(&self, request: &Request) -> Result<Response, KubeError> {
        let response = self.http.send(request)?;
        log::debug!("kube method={:?} path={} status={}", request.method, request.path, response.status);
        if (200..300).contains(&response.status) { Ok(response) } else { Err(sort_status(response)) }
    }
}

/// How long a write or a read of one object takes at most: who reads one decides on it, or renews a Lease.
#[must_use]
pub fn longest_call(write_timeout: Duration) -> Duration {
    write_timeout.saturating_add(ARRIVES)
}

fn object(response: Response) -> Result<Object, KubeError> {
    let bytes = response.bytes()?;
    match parse_object(&bytes, OBJECT_BYTES) {
        Ok(value @ Value::Object(_)) => {
            let mut object = Object(value);
            object.forget_managed_fields();
            Ok(object)
        }
        Ok(_) | Err(_) => shell::read(&bytes).ok_or_else(|| not_an_answer("not a JSON object")),
    }
}

fn not_an_answer(what: &str) -> KubeError {
    KubeError::Unanswered { message: format!("the API server's answer is {what}"), retry_after: None }
}

fn sort_status(response: Response) -> KubeError {
    let status = response.status;
    let retry_after = response.retry_after.clone();
    let message = match response.bytes() {
        Ok(body) => describe(status, &body),
        Err(_) => format!("the API server answered {status}"),
    };
    KubeError::of(status, message, retry_after)
}

/// The reason and message of a Kubernetes Status, or the status alone for anything else.
fn describe(status: u16, body: &[u8]) -> String {
    let body = parse_object(body, OBJECT_BYTES).ok();
    let member = |name| body.as_ref().and_then(|b| b.get(name)).and_then(Value::as_str).unwrap_or("");
    let (reason, message) = (member("reason"), member("message"));
    let text = match (reason, message) {
        ("", "") => format!("the API server answered {status}"),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    text.chars().take(MESSAGE_CHARS).collect()
}
