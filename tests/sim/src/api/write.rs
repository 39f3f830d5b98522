//! Create, replace, delete.

use super::{Api, CONFIG_MAP_LIMIT, Kind, Reply, status};
use serde_json::{Value, json};

/// Largest sum of a metadata's annotations, in bytes.
pub const ANNOTATIONS_LIMIT: usize = 256 * 1024;

impl Api {
    pub(super) fn create(&mut self, kind: Kind, mut object: Value, time: &str) -> Reply {
        let Some(name) = object["metadata"]["name"].as_str().map(str::to_owned) else {
            return Reply::status(422, "Invalid", "metadata.name: Required value");
        };
        if object["metadata"].get("resourceVersion").is_some_and(|version| version != "") {
            let message = "resourceVersion should not be set on objects to be created";
            // As a real one does.
            return Reply::status(500, "", message);
        }
        if let Some(refused) = refused(kind, &name, &object) {
            return refused;
        }
        if self.object(kind, &name).is_some() {
            return status::exists(kind, &name);
        }
        self.uids += 1;
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(format!("aaaaaaaa-0000-4000-8000-{:012}", self.uids));
        metadata["creationTimestamp"] = json!(time);
        if kind == Kind::Component {
            metadata["generation"] = json!(1);
            if let Some(object) = object.as_object_mut() {
                object.remove("status");
            }
        }
        self.admit(kind, &mut object);
        let object = self.put(kind, &name, object);
        Reply::with(201, &object)
    }

    pub(super) fn replace(&mut self, kind: Kind, name: &str, body: Value, sub: bool, time: &str) -> Reply {
        if body["metadata"]["name"].as_str().is_some_and(|named| named != name) {
            return Reply::status(
                400,
                "BadRequest",
                "the name of the object does not match the name on the URL",
            );
        }
        let wanted = |member: &str| body["metadata"][member].as_str().unwrap_or("").to_owned();
        let (uid, version) = (wanted("uid"), wanted("resourceVersion"));
        let Some(before) = self.object(kind, name).cloned() else {
            return self.replace_missing(kind, name, body, &uid, time);
        };
        let found = |member: &str| before["metadata"][member].as_str().unwrap_or("").to_owned();
        if !uid.is_empty() && uid != found("uid") {
            let what = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                found("uid")
            );
            return status::precondition(kind, name, &what);
        }
        if version.is_empty() && kind != Kind::ConfigMap {
            let what = "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update";
            return status::invalid(kind, name, what);
        }
        if !version.is_empty() && version != found("resourceVersion") {
            return status::changed(kind, name);
        }
        if let Some(refused) = refused(kind, name, &body) {
            return refused;
        }
        let mut object = updated(kind, &before, body, sub);
        self.admit(kind, &mut object);
        if kind == Kind::Component && !sub {
            let same = without_metadata(&object) == without_metadata(&before);
            let generation = before["metadata"]["generation"].as_i64().unwrap_or(0);
            object["metadata"]["generation"] = json!(if same { generation } else { generation + 1 });
        }
        if released(&object) {
            self.remove(kind, name);
            return Reply::of(&object);
        }
        // A write that changes nothing is not written.
        Reply::of(&if object == before { before } else { self.put(kind, name, object) })
    }

    /// Only a Lease may be made by a PUT, and with a uid not even that.
    fn replace_missing(&mut self, kind: Kind, name: &str, mut body: Value, uid: &str, time: &str) -> Reply {
        if kind != Kind::Lease {
            return status::not_found(kind, name);
        }
        if !uid.is_empty() {
            let what = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return status::precondition(kind, name, &what);
        }
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        self.create(kind, body, time)
    }

    pub(super) fn delete(&mut self, kind: Kind, name: &str, options: Option<&Value>, time: &str) -> Reply {
        let Some(before) = self.object(kind, name).cloned() else { return status::not_found(kind, name) };
        for (member, words) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let wanted = options.and_then(|options| options["preconditions"][member].as_str());
            let found = before["metadata"][member].as_str().unwrap_or("");
            if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
                let what = format!(
                    "Precondition failed: {words} in precondition: {wanted}, {words} in object meta: {found}"
                );
                return status::precondition(kind, name, &what);
            }
        }
        if held(&before) {
            if before["metadata"].get("deletionTimestamp").is_some() {
                return Reply::of(&before);
            }
            let mut object = before;
            object["metadata"]["deletionTimestamp"] = json!(time);
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            if let Some(generation) = object["metadata"]["generation"].as_i64() {
                object["metadata"]["generation"] = json!(generation + 1);
            }
            return Reply::of(&self.put(kind, name, object));
        }
        self.remove(kind, name);
        Reply::of(&json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": { "name": name, "uid": before["metadata"]["uid"] },
        }))
    }

    fn admit(&self, kind: Kind, object: &mut Value) {
        if kind != Kind::Component {
            return;
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            if self.schema.default && !spec.contains_key("replicas") {
                spec.insert("replicas".to_owned(), json!(1));
            }
            if self.schema.admission {
                spec.insert("admitted".to_owned(), json!(true));
            }
        }
    }
}

/// What is stored for a PUT: the server's own members stay.
fn updated(kind: Kind, before: &Value, body: Value, status: bool) -> Value {
    let mut object = if status {
        let mut object = before.clone();
        object["status"] = body["status"].clone();
        return object;
    } else {
        body
    };
    for member in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
    ] {
        set_or_remove(&mut object["metadata"], member, before["metadata"].get(member));
    }
    object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
    if kind == Kind::Component {
        set_or_remove(&mut object, "status", before.get("status"));
    }
    object
}

fn set_or_remove(object: &mut Value, member: &str, value: Option<&Value>) {
    let Some(object) = object.as_object_mut() else { return };
    match value {
        Some(value) => object.insert(member.to_owned(), value.clone()),
        None => object.remove(member),
    };
}

fn without_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(object) = object.as_object_mut() {
        object.remove("metadata");
        object.remove("status");
    }
    object
}

fn held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty())
}

/// Being deleted, and nothing holds it any more.
pub(super) fn released(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some() && !held(object)
}

/// What validation refuses.
fn refused(kind: Kind, name: &str, object: &Value) -> Option<Reply> {
    let length = |entries: &Value, keys: usize| {
        let entries = entries.as_object().into_iter().flatten();
        entries.map(|(key, value)| keys * key.len() + value.as_str().map_or(0, str::len)).sum::<usize>()
    };
    if length(&object["metadata"]["annotations"], 1) > ANNOTATIONS_LIMIT {
        let what = "metadata.annotations: Too long: may not be more than 262144 bytes";
        return Some(status::invalid(kind, name, what));
    }
    if kind == Kind::ConfigMap && length(&object["data"], 0) > CONFIG_MAP_LIMIT {
        return Some(status::invalid(kind, name, "[]: Too long: may not be more than 1048576 bytes"));
    }
    None
}
