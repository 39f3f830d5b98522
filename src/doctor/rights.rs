//! The rights of CONTRACT section 6, one by one, and some that the agent must not have.

use crate::kube::inventory::KINDS;
use crate::kube::review::Right;
use crate::kube::{lease, state};

const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "delete"];
const READ: &[&str] = &["get", "list"];

/// Verbs, group, resource, name; and whether in the managed namespace.
type Row = (&'static [&'static str], &'static str, &'static str, &'static str, bool);

const NEEDED: [Row; 6] = [
    (&["get", "watch", "update"], "coordination.k8s.io", "leases", lease::NAME, true),
    (&["create"], "coordination.k8s.io", "leases", "", true),
    (&["get", "update"], "", "configmaps", state::NAME, true),
    (&["create"], "", "configmaps", "", true),
    (&["create", "patch"], "", "events", "", true),
    (WRITE, "platform.navin.ai", "managedcomponents", "", true),
];
const PATHS: [&str; 3] = ["/version", "/api", "/apis"];
const FORBIDDEN: [Row; 3] =
    [(READ, "", "secrets", "", true), (READ, "", "secrets", "", false), (&["create"], "", "pods", "", true)];

fn each((verbs, group, resource, name, namespaced): Row) -> impl Iterator<Item = Right> {
    verbs.iter().map(move |&verb| Right::Resource { verb, group, resource, name, namespaced })
}

/// What the agent needs.
pub(super) fn needed() -> impl Iterator<Item = Right> {
    let listed = KINDS.into_iter().map(|(_, group, resource, _)| (READ, group, resource, "", false));
    NEEDED.into_iter().chain(listed).flat_map(each).chain(PATHS.into_iter().map(Right::Path))
}

/// What it must not be able to do.
pub(super) fn forbidden() -> impl Iterator<Item = Right> {
    FORBIDDEN.into_iter().flat_map(each)
}
