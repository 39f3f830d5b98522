//! What `doctor` asks: the server's version and clock, and what we may do (`authorization.k8s.io/v1`), which
//! everybody may ask about oneself.

use super::{Kube, KubeError, components};
use crate::rules::json::parse_foreign;
use serde_json::{Value, json};

/// Largest answer to `/version` that is read, in bytes.
const VERSION_BYTES: usize = 64 * 1024;

/// The server's `gitVersion`, and its `Date`.
///
/// # Errors
///
/// See [`KubeError`].
pub fn version(kube: &Kube) -> Result<(String, Option<String>), KubeError> {
    let response = kube.get_body("/version", VERSION_BYTES)?;
    let date = response.date.clone();
    let document = parse_foreign(&response.bytes()?, VERSION_BYTES).ok();
    let version = document.as_ref().and_then(|document| document.get("gitVersion")).and_then(Value::as_str);
    match version {
        Some(version) => Ok((version.to_owned(), date)),
        None => Err(KubeError::Unanswered {
            message: "not the answer of an API server".into(),
            retry_after: None,
        }),
    }
}

/// Something that is allowed, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// On a kind, or on one object of it.
    Resource {
        /// `get`, `list` and so on.
        verb: &'static str,
        /// The API group; empty for the core.
        group: &'static str,
        /// The plural.
        resource: &'static str,
        /// The object's name; empty for all of them.
        name: &'static str,
        /// In the managed namespace, else in the whole cluster.
        namespaced: bool,
    },
    /// To get a path.
    Path(&'static str),
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Resource { verb, group, resource, name: "", .. } => write!(f, "{verb} {group}/{resource}"),
            Self::Resource { verb, group, resource, name, .. } => {
                write!(f, "{verb} {group}/{resource}/{name}")
            }
            Self::Path(path) => write!(f, "get {path}"),
        }
    }
}

/// Whether we may.
///
/// # Errors
///
/// See [`KubeError`].
pub fn allowed(kube: &Kube, right: &Right) -> Result<bool, KubeError> {
    let spec = match right {
        Right::Resource { verb, group, resource, name, namespaced } => {
            let namespace = if *namespaced { kube.namespace() } else { "" };
            json!({ "resourceAttributes": {
                "namespace": namespace, "verb": verb, "group": group, "resource": resource, "name": name,
            } })
        }
        Right::Path(path) => json!({ "nonResourceAttributes": { "verb": "get", "path": path } }),
    };
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec,
    });
    let answer = kube.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review)?;
    Ok(answer.0.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
}

/// Whether components are served at all.
///
/// # Errors
///
/// See [`KubeError`].
pub fn components_served(kube: &Kube) -> Result<bool, KubeError> {
    match kube.get_body(&format!("{}?limit=1", components::collection(kube)), 0) {
        Ok(_) => Ok(true),
        Err(KubeError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
