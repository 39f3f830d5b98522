//! ManagedComponents (`platform.navin.ai/v1`).

use super::{Kube, KubeError, Object};
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
    match kube.get(&path(kube, name)) {
        Ok(object) => Ok(Some(object)),
        Err(KubeError::NotFound(_)) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Creates a component.
///
/// # Errors
///
/// See [`KubeError`]; `NotFound` says that the namespace or the kind is missing.
pub fn create(kube: &Kube, object: &Object) -> Result<Object, KubeError> {
    kube.post(&collection(kube), &object.0)
}

/// Replaces a component; uid and `resourceVersion` of `object` are the preconditions.
///
/// # Errors
///
/// See [`KubeError`].
pub fn replace(kube: &Kube, name: &ComponentName, object: &Object) -> Result<Object, KubeError> {
    kube.put(&path(kube, name), &object.0)
}

/// Deletes the component with exactly this uid and `resourceVersion`.
///
/// # Errors
///
/// See [`KubeError`].
pub fn delete(
    kube: &Kube,
    name: &ComponentName,
    uid: &str,
    resource_version: &str,
) -> Result<Object, KubeError> {
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": { "uid": uid, "resourceVersion": resource_version },
    });
    kube.delete(&path(kube, name), &options)
}
