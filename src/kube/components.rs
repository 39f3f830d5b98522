//! ManagedComponents (`platform.navin.ai/v1`).
//!
//! A PUT carries the uid and `resourceVersion` of the reading, which stand in its object; a DELETE has both as
//! preconditions; a create has none. Which of them is sent, and when, is decided elsewhere.

use super::{Kube, KubeError, Object};
use crate::rules::component::Write;
use crate::rules::names::ComponentName;
use serde_json::json;

pub(super) fn collection(kube: &Kube) -> String {
    format!("/apis/platform.navin.ai/v1/namespaces/{}/managedcomponents", kube.namespace())
}

fn path(kube: &Kube, name: &ComponentName) -> String {
    format!("{}/{}", collection(kube), name.as_str())
}

/// Reads one component.
///
/// # Errors
///
/// See [`KubeError`].
pub fn get(kube: &Kube, name: &ComponentName) -> Result<Option<Object>, KubeError> {
    kube.find(&path(kube, name))
}

/// Sends one write to the component `name`.
///
/// # Errors
///
/// See [`KubeError`]; `NotFound` on a create says that the namespace or the kind is missing.
pub fn send(kube: &Kube, name: &ComponentName, write: &Write) -> Result<Object, KubeError> {
    match write {
        Write::Create(object) => kube.post(&collection(kube), &object.0),
        Write::Replace(object) | Write::Settle(object) => kube.put(&path(kube, name), &object.0),
        Write::Delete { uid, resource_version } => delete(kube, name, uid, resource_version),
    }
}

/// Deletes the component with exactly this uid and `resourceVersion`.
fn delete(kube: &Kube, name: &ComponentName, uid: &str, resource_version: &str) -> Result<Object, KubeError> {
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": { "uid": uid, "resourceVersion": resource_version },
    });
    kube.delete(&path(kube, name), &options)
}
