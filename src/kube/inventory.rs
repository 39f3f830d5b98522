//! The inventory (CONTRACT section 5): five lists, read page by page, of which only the members that the
//! report names are ever decoded. What could not be read says so; it is never shown as empty.

mod objects;

use super::list::{self, ListError};
use super::{Kube, KubeError};
use crate::rules::report::Inventory;
use objects::{Crd, IngressClass, Listed, Namespace, Node, StorageClass};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::marker::PhantomData;

/// Reads everything that the report's `inventory` holds.
#[must_use]
pub fn read(kube: &Kube) -> Inventory {
    let mut inventory = Inventory::default();
    inventory.set("version", document(kube, "/version"));
    inventory.set("api_groups", api_groups(kube));
    let mut list = |name, (state, items)| inventory.list(name, state, items);
    list("nodes", kind::<Node>(kube, "/api/v1/nodes"));
    list("namespaces", kind::<Namespace>(kube, "/api/v1/namespaces"));
    list("crds", kind::<Crd>(kube, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"));
    list("storage_classes", kind::<StorageClass>(kube, "/apis/storage.k8s.io/v1/storageclasses"));
    list("ingress_classes", kind::<IngressClass>(kube, "/apis/networking.k8s.io/v1/ingressclasses"));
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

/// The state and the objects of a list, sorted by name.
fn kind<T: Listed>(kube: &Kube, path: &str) -> (&'static str, Vec<Box<RawValue>>) {
    match list::all::<Row<T>>(kube, path) {
        Ok(whole) => {
            let mut rows = whole.items;
            rows.sort_by(|one, other| one.name.cmp(&other.name));
            ("ok", rows.into_iter().map(|row| row.text).collect())
        }
        Err(error) => {
            let state = match &error {
                ListError::Kube(error) => sort(error),
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
struct Row<T> {
    name: Box<str>,
    text: Box<RawValue>,
    of: PhantomData<T>,
}

impl<'de, T: Listed> Deserialize<'de> for Row<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let row = T::deserialize(source)?.row();
        let name = row.get("name").and_then(Value::as_str).unwrap_or_default().into();
        Ok(Self { name, text: to_raw_value(&row).map_err(D::Error::custom)?, of: PhantomData })
    }
}
