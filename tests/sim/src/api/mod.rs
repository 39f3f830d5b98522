//! A model of the API server: one store, and of its behaviour what the agent can notice.
//!
//! `resourceVersion` rises only with a write that changes something; a PUT that changes nothing gives back the
//! object as it is. `tests/conformance/` holds the model against a real kube-apiserver.

mod route;
mod status;
mod watch;
mod write;

pub use route::{Kind, Route};
pub use status::Reply;
pub use watch::Opened;
pub use write::ANNOTATIONS_LIMIT;

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Largest `data` of a ConfigMap, in bytes (`core/v1` `MaxSecretSize`).
const CONFIG_MAP_LIMIT: usize = 1_048_576;

/// What the cluster does to a component's spec.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schema {
    /// The CRD gives `spec.replicas` a default of 1.
    pub default: bool,
    /// An admission webhook sets `spec.admitted`.
    pub admission: bool,
}

/// One change of the store.
#[derive(Clone, Debug)]
pub struct Effect {
    /// What kind of object.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// As it was; None where it did not exist.
    pub before: Option<Value>,
    /// As it is; None where it is gone.
    pub after: Option<Value>,
}

/// The store and what it does on writes.
pub struct Api {
    objects: BTreeMap<(Kind, String), Value>,
    version: u64,
    uids: u64,
    schema: Schema,
    /// At most so many objects in one page of a list of components.
    page: usize,
    /// What the continue tokens stand for: the rest of the list, and its version.
    pages: BTreeMap<String, (Vec<Value>, u64)>,
    /// Every change of a component or the Lease: its version, and a line of a watch.
    log: Vec<(u64, Kind, String)>,
    /// Older versions are forgotten.
    compacted: u64,
    /// Changes since they were last taken.
    pub effects: Vec<Effect>,
}

impl Api {
    /// An empty namespace.
    #[must_use]
    pub fn new(schema: Schema, page: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            version: 1_000,
            uids: 0,
            schema,
            page,
            pages: BTreeMap::new(),
            log: Vec::new(),
            compacted: 0,
            effects: Vec::new(),
        }
    }

    /// The object, if there is one.
    #[must_use]
    pub fn object(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.objects.get(&(kind, name.to_owned()))
    }

    /// All objects of a kind.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = (&str, &Value)> {
        self.objects
            .iter()
            .filter(move |((k, _), _)| *k == kind)
            .map(|((_, name), object)| (name.as_str(), object))
    }

    /// Answers one request; `time` is the server's clock.
    pub fn handle(&mut self, method: &str, path: &str, body: Option<&[u8]>, time: &str) -> Reply {
        let Some(route) = Route::parse(path) else { return Reply::of(&fixed(path, self.version)) };
        let body = match body.map(serde_json::from_slice::<Value>) {
            None => None,
            Some(Ok(body)) => Some(body),
            Some(Err(_)) => return Reply::status(400, "BadRequest", "the body is not JSON"),
        };
        match (method, route.name.as_deref(), body) {
            ("GET", None, _) => self.list(route.kind, &route.query),
            ("GET", Some(name), _) => match self.object(route.kind, name) {
                Some(object) => Reply::of(object),
                None => status::not_found(route.kind, name),
            },
            ("POST", None, Some(body)) => self.create(route.kind, body, time),
            ("PUT", Some(name), Some(body)) => self.replace(route.kind, name, body, route.status, time),
            ("DELETE", Some(name), body) => self.delete(route.kind, name, body.as_ref(), time),
            _ => Reply::status(405, "MethodNotAllowed", "the server does not allow this method"),
        }
    }

    fn put(&mut self, kind: Kind, name: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let before = self.objects.insert((kind, name.to_owned()), object.clone());
        self.record(kind, if before.is_some() { "MODIFIED" } else { "ADDED" }, &object);
        self.effects.push(Effect { kind, name: name.to_owned(), before, after: Some(object.clone()) });
        object
    }

    fn remove(&mut self, kind: Kind, name: &str) {
        self.version += 1;
        let before = self.objects.remove(&(kind, name.to_owned()));
        if let Some(mut object) = before.clone() {
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            self.record(kind, "DELETED", &object);
        }
        self.effects.push(Effect { kind, name: name.to_owned(), before, after: None });
    }

    /// A person's or another program's write that skips what clients must obey.
    pub fn edit(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        let Some(before) = self.object(kind, name) else { return false };
        let mut object = before.clone();
        change(&mut object);
        if object == *before {
            return false;
        }
        if kind == Kind::Component && object["spec"] != before["spec"] {
            let generation = before["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = json!(generation);
        }
        if write::released(&object) {
            self.remove(kind, name);
        } else {
            self.put(kind, name, object);
        }
        true
    }

    /// Deletes as a person would, finalizers or not.
    pub fn delete_by_hand(&mut self, kind: Kind, name: &str, time: &str) {
        let _reply = self.delete(kind, name, None, time);
    }

    /// Creates as a person would.
    pub fn create_by_hand(&mut self, kind: Kind, object: Value, time: &str) {
        let _reply = self.create(kind, object, time);
    }
}

/// What does not change: discovery and the lists of the inventory.
fn fixed(path: &str, version: u64) -> Value {
    let path = path.split('?').next().unwrap_or(path);
    match path {
        "/version" => json!({ "major": "1", "minor": "36", "gitVersion": "v1.36.3" }),
        "/apis" => json!({ "kind": "APIGroupList", "groups": [{ "name": "platform.navin.ai" }] }),
        "/api/v1/namespaces/kube-system" => {
            json!({ "metadata": { "name": "kube-system", "uid": "0c5d33c0-0000-4000-8000-000000000000" } })
        }
        _ => json!({ "metadata": { "resourceVersion": version.to_string() }, "items": [] }),
    }
}
