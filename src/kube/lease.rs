//! The Lease `navin-cluster-agent` (`coordination.k8s.io/v1`).

use super::{Kube, KubeError, Object};
use serde_json::json;

/// The Lease's name.
pub const NAME: &str = "navin-cluster-agent";

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

/// Reads the Lease.
///
/// # Errors
///
/// See [`KubeError`].
pub fn get(kube: &Kube) -> Result<Object, KubeError> {
    kube.get(&path(kube))
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
