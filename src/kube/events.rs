//! Events (`v1`): what happened, for people who look with kubectl.
//!
//! They are written and never read: nothing rests on one, and one that is lost is lost.

use super::{Kube, KubeError, Object};
use serde_json::{Value, json};

/// An Event as it is posted.
pub struct Event<'a> {
    /// `metadata.name`.
    pub name: &'a str,
    /// The object that it is about.
    pub about: Value,
    /// `Warning`, or else `Normal`.
    pub warning: bool,
    /// One word, as CONTRACT section 6 lists them.
    pub reason: &'static str,
    /// What happened.
    pub message: &'a str,
    /// How often.
    pub count: u32,
    /// RFC 3339.
    pub time: &'a str,
    /// Our pod.
    pub replica: &'a str,
}

/// The pod as an Event refers to it; without uid where that is not known.
#[must_use]
pub fn pod(kube: &Kube, name: &str, uid: Option<&str>) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "namespace": kube.namespace(), "name": name, "uid": uid })
}

/// A component as an Event refers to it.
#[must_use]
pub fn component(kube: &Kube, name: &str) -> Value {
    json!({
        "apiVersion": "platform.navin.ai/v1",
        "kind": "ManagedComponent",
        "namespace": kube.namespace(),
        "name": name,
    })
}

fn collection(kube: &Kube) -> String {
    format!("/api/v1/namespaces/{}/events", kube.namespace())
}

/// Posts a new Event.
///
/// # Errors
///
/// See [`KubeError`].
pub fn create(kube: &Kube, event: &Event<'_>) -> Result<Object, KubeError> {
    let body = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": event.name, "namespace": kube.namespace() },
        "involvedObject": event.about,
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "message": event.message,
        "count": event.count,
        "firstTimestamp": event.time,
        "lastTimestamp": event.time,
        "source": { "component": "navin-cluster-agent" },
        "reportingComponent": "navin-cluster-agent",
        "reportingInstance": event.replica,
    });
    kube.post(&collection(kube), &body)
}

/// Says that an Event that was posted happened again.
///
/// # Errors
///
/// See [`KubeError`]; `NotFound` where it was forgotten by the server.
pub fn repeat(kube: &Kube, event: &Event<'_>) -> Result<Object, KubeError> {
    let path = format!("{}/{}", collection(kube), event.name);
    let change = json!({ "count": event.count, "lastTimestamp": event.time, "message": event.message });
    kube.patch(&path, &change)
}
