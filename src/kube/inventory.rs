//! The inventory (CONTRACT section 5): five lists, read page by page, of which only the members that the
//! report names are ever decoded. What could not be read says so; it is never shown as empty.

mod objects;

use super::list::{self, Limits, ListError};
use super::{Kube, KubeError};
use crate::clock::Clock;
use crate::rules::report::{Inventory, LIMIT};
use objects::{Crd, IngressClass, Listed, Namespace, Node, StorageClass};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// What is told of one object.
type Told = fn(&[u8]) -> serde_json::Result<Row>;

/// What is listed: the inventory's member, then group and resource, which need a right, and what is told.
pub const KINDS: [(&str, &str, &str, Told); 5] = [
    ("nodes", "", "nodes", |object| row::<Node<'_>>(object)),
    ("namespaces", "", "namespaces", |object| row::<Namespace<'_>>(object)),
    ("crds", "apiextensions.k8s.io", "customresourcedefinitions", |object| row::<Crd<'_>>(object)),
    ("storage_classes", "storage.k8s.io", "storageclasses", |object| row::<StorageClass<'_>>(object)),
    ("ingress_classes", "networking.k8s.io", "ingressclasses", |object| row::<IngressClass<'_>>(object)),
];

/// What all lists together may take while they are held, in bytes; of one, a report's [`LIMIT`].
const HELD: usize = 2 * LIMIT;

/// Reads everything that the report's `inventory` holds.
#[must_use]
pub fn read(kube: &Kube, clock: &dyn Clock) -> Inventory {
    let mut limits = Limits::new(clock, Row::held, LIMIT);
    let mut left = HELD;
    let mut inventory = Inventory::default();
    inventory.set("version", document(kube, "/version"));
    inventory.set("api_groups", api_groups(kube));
    for (member, group, resource, row) in KINDS {
        let group = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        limits.most = left.min(LIMIT);
        let (state, items) = kind(kube, &format!("{group}/v1/{resource}"), row, &limits);
        left = items.iter().map(Row::held).fold(left, usize::saturating_sub);
        let items = items.into_iter().map(|row| row.text).collect();
        inventory.list(member, state, items);
    }
    inventory
}

/// The uid of `kube-system`, which stands for the cluster's own identity.
#[must_use]
pub fn cluster_uid(kube: &Kube) -> Option<String> {
    kube.get("/api/v1/namespaces/kube-system").ok()?.uid().map(str::to_owned)
}

fn document(kube: &Kube, path: &str) -> Value {
    match kube.get(path) {
        Ok(object) => object.0,
        Err(e) => json!({ "state": state_of(&e) }),
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
fn state_of(error: &KubeError) -> &'static str {
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

/// The state and the objects of a list, sorted by name.
fn kind(kube: &Kube, path: &str, row: Told, limits: &Limits<'_, Row>) -> (&'static str, Vec<Row>) {
    match list::all(kube, path, &row, limits) {
        Ok(whole) => {
            let mut rows = whole.items;
            rows.sort_by(|one, other| one.name.cmp(&other.name));
            ("ok", rows)
        }
        Err(error) => {
            let state = match &error {
                ListError::Kube(error) => state_of(error),
                ListError::PageTooLarge | ListError::TooLarge => "too_large",
                ListError::Incomplete(_) => "incomplete",
            };
            log::info!("inventory list={path} state={state} error={:?}", error.to_string());
            (state, Vec::new())
        }
    }
}

/// What is told of an object, as text from the moment that it is read: as values, all of a large list would
/// be several times as long.
pub struct Row {
    name: Box<str>,
    text: Box<RawValue>,
}

impl Row {
    /// What it takes of memory, in bytes.
    fn held(&self) -> usize {
        size_of::<Self>().saturating_add(self.name.len()).saturating_add(self.text.get().len())
    }
}

fn row<'a, T: Listed<'a>>(object: &'a [u8]) -> serde_json::Result<Row> {
    let object: T = serde_json::from_slice(object)?;
    Ok(Row { name: object.name().into(), text: to_raw_value(&object.told())? })
}
