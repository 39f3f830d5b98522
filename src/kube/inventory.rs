//! The inventory (CONTRACT section 5): five lists, read page by page, of which only the members that the
//! report names are ever decoded. What could not be read says so; it is never shown as empty.

use super::list::{self, ListError};
use super::{Kube, KubeError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Reads one kind from a path: its state and its items.
type Read = fn(&Kube, &str) -> Value;

/// What is listed: the inventory's member, then group and resource, which need a right, and how they are read.
pub const KINDS: [(&str, &str, &str, Read); 5] = [
    ("nodes", "", "nodes", |kube, path| list(kube, path, node)),
    ("namespaces", "", "namespaces", |kube, path| list(kube, path, namespace)),
    ("crds", "apiextensions.k8s.io", "customresourcedefinitions", |kube, path| list(kube, path, crd)),
    ("storage_classes", "storage.k8s.io", "storageclasses", |kube, path| list(kube, path, storage_class)),
    ("ingress_classes", "networking.k8s.io", "ingressclasses", |kube, path| list(kube, path, ingress_class)),
];

/// Reads everything that the report's `inventory` holds.
#[must_use]
pub fn read(kube: &Kube) -> Value {
    let cluster = [("version", document(kube, "/version")), ("api_groups", api_groups(kube))];
    let lists = KINDS.into_iter().map(|(member, group, resource, read)| {
        let group = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        (member, read(kube, &format!("{group}/v1/{resource}")))
    });
    cluster.into_iter().chain(lists).collect()
}

/// How many objects of each kind an inventory holds, for the result of `inventory.report`; null where the
/// kind could not be read whole.
#[must_use]
pub fn counts(inventory: &Value) -> Value {
    let count = |(kind, value): (&String, &Value)| {
        let items = value.get("items")?.as_array()?;
        let whole = value.get("state").and_then(Value::as_str) == Some("ok");
        Some((kind.clone(), json!(whole.then_some(items.len()))))
    };
    let kinds = inventory.as_object().into_iter().flatten();
    Value::Object(kinds.filter_map(count).collect())
}

/// The uid of `kube-system`, which stands for the cluster's own identity.
#[must_use]
pub fn cluster_uid(kube: &Kube) -> Option<String> {
    kube.get("/api/v1/namespaces/kube-system").ok()?.uid().map(str::to_owned)
}

fn document(kube: &Kube, path: &str) -> Value {
    match kube.get(path) {
        Ok(object) => object.0,
        Err(e) => json!({ "state": sort(&e) }),
    }
}

/// The names of the API groups; null where they could not be read.
fn api_groups(kube: &Kube) -> Value {
    let Ok(object) = kube.get("/apis") else { return Value::Null };
    let groups = object.0.get("groups").and_then(Value::as_array);
    let names = groups.into_iter().flatten().filter_map(|g| g.get("name")?.as_str());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    json!(names)
}

/// A list's state for an error: `forbidden`, `absent` or `incomplete`.
fn sort(error: &KubeError) -> &'static str {
    match error {
        KubeError::Refused { status: 403, .. } => "forbidden",
        KubeError::NotFound(_) => "absent",
        KubeError::Refused { .. }
        | KubeError::Conflict(_)
        | KubeError::Gone(_)
        | KubeError::Unavailable { .. }
        | KubeError::Unanswered { .. } => "incomplete",
    }
}

fn list<T: for<'de> Deserialize<'de>>(kube: &Kube, path: &str, row: fn(T) -> Value) -> Value {
    let (state, mut items) = match list::all::<T>(kube, path) {
        Ok(whole) => ("ok", whole.items.into_iter().map(row).collect()),
        Err(error) => {
            let state = match &error {
                ListError::Kube(error) => sort(error),
                ListError::PageTooLarge | ListError::TooLarge => "too_large",
                ListError::Incomplete(_) => "incomplete",
            };
            log::info!("inventory list={path} state={state} error={:?}", error.to_string());
            (state, Vec::new())
        }
    };
    let name = |item: &Value| item.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
    items.sort_by_cached_key(name);
    json!({ "state": state, "items": items })
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
struct Node {
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

fn node(node: Node) -> Value {
    const ROLE: &str = "node-role.kubernetes.io/";
    let metadata = node.metadata.unwrap_or_default();
    let spec = node.spec.unwrap_or_default();
    let status = node.status.unwrap_or_default();
    let info = status.node_info.unwrap_or_default();
    let labels = metadata.labels.unwrap_or_default();
    let roles: Vec<&str> = labels.keys().filter_map(|key| key.strip_prefix(ROLE)).collect();
    let conditions = status.conditions.unwrap_or_default();
    let ready = |c: &Typed| c.r#type.as_deref() == Some("Ready") && c.status.as_deref() == Some("True");
    let addresses = status.addresses.unwrap_or_default().into_iter();
    let internal = addresses.filter(|a| a.r#type.as_deref() == Some("InternalIP")).filter_map(|a| a.address);
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

#[derive(Deserialize)]
struct Namespace {
    metadata: Option<Metadata>,
    status: Option<NamespaceStatus>,
}

#[derive(Deserialize)]
struct NamespaceStatus {
    phase: Option<String>,
}

fn namespace(namespace: Namespace) -> Value {
    let phase = namespace.status.and_then(|status| status.phase);
    json!({ "name": namespace.metadata.and_then(|m| m.name), "phase": phase })
}

#[derive(Deserialize)]
struct Crd {
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

fn crd(crd: Crd) -> Value {
    let spec = crd.spec.unwrap_or_default();
    let version = |v: CrdVersion| json!({ "name": v.name, "served": v.served.unwrap_or(false), "storage": v.storage.unwrap_or(false) });
    let versions: Vec<Value> = spec.versions.unwrap_or_default().into_iter().map(version).collect();
    json!({
        "name": crd.metadata.and_then(|m| m.name),
        "group": spec.group,
        "kind": spec.names.and_then(|n| n.kind),
        "scope": spec.scope,
        "versions": versions,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StorageClass {
    metadata: Option<Metadata>,
    provisioner: Option<String>,
    reclaim_policy: Option<String>,
    volume_binding_mode: Option<String>,
    allow_volume_expansion: Option<bool>,
}

fn storage_class(class: StorageClass) -> Value {
    let metadata = class.metadata.unwrap_or_default();
    json!({
        "name": metadata.name,
        "provisioner": class.provisioner,
        "default": is_default(metadata.annotations, "storageclass.kubernetes.io/is-default-class"),
        "reclaim_policy": class.reclaim_policy,
        "binding_mode": class.volume_binding_mode,
        "expansion": class.allow_volume_expansion.unwrap_or(false),
    })
}

#[derive(Deserialize)]
struct IngressClass {
    metadata: Option<Metadata>,
    spec: Option<IngressClassSpec>,
}

#[derive(Deserialize)]
struct IngressClassSpec {
    controller: Option<String>,
}

fn ingress_class(class: IngressClass) -> Value {
    let metadata = class.metadata.unwrap_or_default();
    json!({
        "name": metadata.name,
        "controller": class.spec.and_then(|spec| spec.controller),
        "default": is_default(metadata.annotations, "ingressclass.kubernetes.io/is-default-class"),
    })
}

fn is_default(annotations: Texts, key: &str) -> bool {
    annotations.and_then(|mut a| a.remove(key)).flatten().as_deref() == Some("true")
}
