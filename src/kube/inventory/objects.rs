//! The objects of an inventory: what is read of each, and what is told of it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An object of a list, as far as it is read.
pub(super) trait Listed: for<'de> Deserialize<'de> {
    /// What is told of it: a JSON object with its `name`.
    fn row(self) -> Value;
}

type Texts = Option<BTreeMap<String, Option<String>>>;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    name: Option<String>,
    labels: Texts,
    annotations: Texts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    metadata: Option<Metadata>,
    spec: Option<NodeSpec>,
    status: Option<NodeStatus>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeSpec {
    unschedulable: Option<bool>,
    taints: Option<Vec<Taint>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct NodeStatus {
    conditions: Option<Vec<Typed>>,
    addresses: Option<Vec<Typed>>,
    node_info: Option<NodeInfo>,
    capacity: Texts,
    allocatable: Texts,
}

#[derive(Deserialize, Serialize, Default)]
#[serde(default)]
struct Taint {
    key: Option<String>,
    value: Option<String>,
    effect: Option<String>,
}

/// A condition (`type`, `status`) or an address (`type`, `address`).
#[derive(Deserialize, Default)]
#[serde(default)]
struct Typed {
    r#type: Option<String>,
    status: Option<String>,
    address: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct NodeInfo {
    kubelet_version: Option<String>,
    os_image: Option<String>,
    kernel_version: Option<String>,
    architecture: Option<String>,
    container_runtime_version: Option<String>,
}

impl Listed for Node {
    fn row(self) -> Value {
        const ROLE: &str = "node-role.kubernetes.io/";
        let metadata = self.metadata.unwrap_or_default();
        let spec = self.spec.unwrap_or_default();
        let status = self.status.unwrap_or_default();
        let info = status.node_info.unwrap_or_default();
        let labels = metadata.labels.unwrap_or_default();
        let roles: Vec<&str> = labels.keys().filter_map(|key| key.strip_prefix(ROLE)).collect();
        let conditions = status.conditions.unwrap_or_default();
        let ready = |c: &Typed| c.r#type.as_deref() == Some("Ready") && c.status.as_deref() == Some("True");
        let addresses = status.addresses.unwrap_or_default().into_iter();
        let internal =
            addresses.filter(|a| a.r#type.as_deref() == Some("InternalIP")).filter_map(|a| a.address);
        json!({
            "name": metadata.name,
            "roles": roles,
            "ready": conditions.iter().any(ready),
            "schedulable": !spec.unschedulable.unwrap_or(false),
            "kubelet_version": info.kubelet_version,
            "os_image": info.os_image,
            "kernel_version": info.kernel_version,
            "architecture": info.architecture,
            "container_runtime": info.container_runtime_version,
            "capacity": status.capacity.unwrap_or_default(),
            "allocatable": status.allocatable.unwrap_or_default(),
            "taints": spec.taints.unwrap_or_default(),
            "internal_addresses": internal.collect::<Vec<_>>(),
        })
    }
}

#[derive(Deserialize)]
pub(super) struct Namespace {
    metadata: Option<Metadata>,
    status: Option<NamespaceStatus>,
}

#[derive(Deserialize)]
struct NamespaceStatus {
    phase: Option<String>,
}

impl Listed for Namespace {
    fn row(self) -> Value {
        let phase = self.status.and_then(|status| status.phase);
        json!({ "name": self.metadata.and_then(|m| m.name), "phase": phase })
    }
}

#[derive(Deserialize)]
pub(super) struct Crd {
    metadata: Option<Metadata>,
    spec: Option<CrdSpec>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CrdSpec {
    group: Option<String>,
    scope: Option<String>,
    names: Option<CrdNames>,
    versions: Option<Vec<CrdVersion>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CrdNames {
    kind: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CrdVersion {
    name: Option<String>,
    served: Option<bool>,
    storage: Option<bool>,
}

impl Listed for Crd {
    fn row(self) -> Value {
        let spec = self.spec.unwrap_or_default();
        let version = |v: CrdVersion| json!({ "name": v.name, "served": v.served.unwrap_or(false), "storage": v.storage.unwrap_or(false) });
        let versions: Vec<Value> = spec.versions.unwrap_or_default().into_iter().map(version).collect();
        json!({
            "name": self.metadata.and_then(|m| m.name),
            "group": spec.group,
            "kind": spec.names.and_then(|n| n.kind),
            "scope": spec.scope,
            "versions": versions,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StorageClass {
    metadata: Option<Metadata>,
    provisioner: Option<String>,
    reclaim_policy: Option<String>,
    volume_binding_mode: Option<String>,
    allow_volume_expansion: Option<bool>,
}

impl Listed for StorageClass {
    fn row(self) -> Value {
        let metadata = self.metadata.unwrap_or_default();
        json!({
            "name": metadata.name,
            "provisioner": self.provisioner,
            "default": is_default(metadata.annotations, "storageself.kubernetes.io/is-default-class"),
            "reclaim_policy": self.reclaim_policy,
            "binding_mode": self.volume_binding_mode,
            "expansion": self.allow_volume_expansion.unwrap_or(false),
        })
    }
}

#[derive(Deserialize)]
pub(super) struct IngressClass {
    metadata: Option<Metadata>,
    spec: Option<IngressClassSpec>,
}

#[derive(Deserialize)]
struct IngressClassSpec {
    controller: Option<String>,
}

impl Listed for IngressClass {
    fn row(self) -> Value {
        let metadata = self.metadata.unwrap_or_default();
        json!({
            "name": metadata.name,
            "controller": self.spec.and_then(|spec| spec.controller),
            "default": is_default(metadata.annotations, "ingressself.kubernetes.io/is-default-class"),
        })
    }
}

fn is_default(annotations: Texts, key: &str) -> bool {
    annotations.and_then(|mut a| a.remove(key)).flatten().as_deref() == Some("true")
}
