//! The ConfigMap `navin-cluster-agent-state` (CONTRACT section 6).
//!
//! It is read and replaced whole, with other people's labels and keys as they were read.

use super::{Kube, KubeError, Object};
use serde_json::{Value, json};

/// The ConfigMap's name.
pub const NAME: &str = "navin-cluster-agent-state";
/// The key that holds the state.
pub const KEY: &str = "state.json";

fn collection(kube: &Kube) -> String {
    format!("/api/v1/namespaces/{}/configmaps", kube.namespace())
}

fn path(kube: &Kube) -> String {
    format!("{}/{NAME}", collection(kube))
}

/// Reads the ConfigMap, if there is one.
///
/// # Errors
///
/// See [`KubeError`].
pub fn get(kube: &Kube) -> Result<Option<Object>, KubeError> {
    kube.find_whole(&path(kube))
}

/// The state's text in a ConfigMap; absent where the key is.
#[must_use]
pub fn text(object: &Object) -> Option<&str> {
    object.0.get("data")?.get(KEY)?.as_str()
}

/// Takes the state's text out, which [`replace`] puts in anew.
pub fn forget_text(object: &mut Object) {
    if let Some(data) = object.0.get_mut("data").and_then(Value::as_object_mut) {
        data.remove(KEY);
    }
}

/// Makes the ConfigMap.
///
/// # Errors
///
/// See [`KubeError`]; a conflict says that there is one.
pub fn create(kube: &Kube, text: &str) -> Result<Object, KubeError> {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": kube.namespace(),
            "labels": { "app.kubernetes.io/managed-by": "navin-cluster-agent" },
        },
        "data": { KEY: text },
    });
    kube.post(&collection(kube), &object)
}

/// Replaces the state in the ConfigMap as it was read: uid and `resourceVersion` are the preconditions.
///
/// # Errors
///
/// See [`KubeError`]; a conflict says that it has changed since.
pub fn replace(kube: &Kube, read: &Object, text: &str) -> Result<Object, KubeError> {
    let mut object = read.clone();
    let mut data = match read.0.get("data") {
        Some(Value::Object(data)) => data.clone(),
        Some(_) | None => serde_json::Map::new(),
    };
    data.insert(KEY.to_owned(), Value::String(text.to_owned()));
    object.set("data", Value::Object(data));
    kube.put(&path(kube), &object.0)
}
