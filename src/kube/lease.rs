//! The Lease `navin-cluster-agent` (`coordination.k8s.io/v1`).
//!
//! It is written as it was read but for its spec, so that its uid and version are the precondition; a create has none, and
//! the server lets one of two win. Nothing here decides whose it is (`rules::election`).

use super::stream::{self, Lines};
use super::{Kube, KubeError, Object};
use crate::rules::json::parse_object;
use serde_json::{Value, json};
use std::time::Duration;

/// The Lease's name.
pub const NAME: &str = "navin-cluster-agent";

/// Largest line of a watch of it, in bytes.
const LINE_BYTES: usize = 1024 * 1024;
/// How much longer than the server was told a follower waits for the end of a watch.
const SILENCE: Duration = Duration::from_secs(1);

fn path(kube: &Kube) -> String {
    format!("{}/{NAME}", collection(kube))
}

fn collection(kube: &Kube) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", kube.namespace())
}

/// What a holder writes into the Lease.
pub struct Holding<'a> {
    /// `spec.holderIdentity`; empty to release.
    pub holder: &'a str,
    /// `spec.leaseDurationSeconds`.
    pub duration_s: u64,
    /// `spec.leaseTransitions`.
    pub transitions: u32,
    /// `spec.acquireTime`, RFC 3339 with six fractional digits.
    pub acquire_time: &'a str,
    /// `spec.renewTime`, likewise.
    pub renew_time: &'a str,
}

/// Reads the Lease, if there is one.
///
/// # Errors
///
/// See [`KubeError`].
pub fn get(kube: &Kube) -> Result<Option<Object>, KubeError> {
    kube.find_whole(&path(kube))
}

/// Makes the Lease with us as its holder.
///
/// # Errors
///
/// See [`KubeError`]; a conflict says that another was faster.
pub fn create(kube: &Kube, holding: &Holding<'_>) -> Result<Object, KubeError> {
    let lease = Object(json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": NAME, "namespace": kube.namespace() },
    }));
    kube.post(&collection(kube), &filled(lease, holding).0)
}

/// Replaces the Lease as it was read: uid and `resourceVersion` go along as preconditions.
///
/// # Errors
///
/// See [`KubeError`]; a conflict says that it has changed since.
pub fn replace(kube: &Kube, read: &Object, holding: &Holding<'_>) -> Result<Object, KubeError> {
    kube.put(&path(kube), &filled(read.clone(), holding).0)
}

/// A watch of the Lease that is open.
pub struct Watch(Lines);

/// Watches the Lease from `version` on; the server ends it after `seconds`.
///
/// # Errors
///
/// See [`KubeError`].
pub fn watch(kube: &Kube, version: &str, seconds: u64) -> Result<Watch, KubeError> {
    let query = format!("fieldSelector=metadata.name%3D{NAME}&resourceVersion={version}");
    stream::open(kube, &collection(kube), &query, seconds, SILENCE, LINE_BYTES).map(Watch)
}

impl Watch {
    /// The Lease after its next change; none where it is to be read instead: the stream has ended, or the
    /// Lease was deleted.
    ///
    /// # Errors
    ///
    /// The stream broke, was silent for too long, or holds something else.
    pub fn read(&mut self) -> Result<Option<Object>, String> {
        let Some(line) = self.0.read()? else { return Ok(None) };
        let mut event = parse_object(&line, LINE_BYTES).map_err(|e| e.to_string())?;
        match event.get("type").and_then(Value::as_str) {
            Some("ADDED" | "MODIFIED") => {
                let object = event.get_mut("object").map(Value::take).map(Object);
                let lease = object.filter(|object| object.name() == Some(NAME));
                lease.map(Some).ok_or_else(|| "another object than the Lease".to_owned())
            }
            Some("DELETED") => Ok(None),
            Some(_) | None => Err("not a change of the Lease".to_owned()),
        }
    }
}

fn filled(mut lease: Object, holding: &Holding<'_>) -> Object {
    let spec = json!({
        "holderIdentity": holding.holder,
        "leaseDurationSeconds": holding.duration_s,
        "leaseTransitions": holding.transitions,
        "acquireTime": holding.acquire_time,
        "renewTime": holding.renew_time,
    });
    lease.set("spec", spec);
    lease
}
