//! Holds the model of the API server against a real kube-apiserver: the same calls, the same answers, but for
//! uids, resource versions, times, and the words of messages.

use navin_sim::api::{Api as Model, Kind, Opened, Schema};
use navin_sim::identity::NAMESPACE;
use navin_test_support::{Api, Cluster};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/navin-platform/leases";
const CONFIG_MAPS: &str = "/api/v1/namespaces/navin-platform/configmaps";
const COMPONENTS: &str = "/apis/platform.navin.ai/v1/namespaces/navin-platform/managedcomponents";

/// One of the two servers, and its objects as they were last answered.
#[derive(Default)]
struct Side {
    seen: BTreeMap<String, Value>,
}

impl Side {
    /// The object as it was last answered, to be sent back changed.
    fn read(&self, name: &str) -> Value {
        self.seen.get(name).cloned().unwrap_or_else(|| panic!("{name} was never answered"))
    }

    /// An answer in comparable form: the status, and the object with its version as "same" or "new".
    fn normal(&mut self, status: u16, mut body: Value) -> Value {
        if body["kind"] == "Status" {
            let gone = body["status"] == "Success";
            return json!({ "http": status, "reason": body["reason"], "code": body["code"], "success": gone });
        }
        if let Some(items) = body.get("items").and_then(Value::as_array) {
            let names: Vec<Value> = items.iter().map(|item| item["metadata"]["name"].clone()).collect();
            let more = body["metadata"]["continue"].is_string();
            return json!({ "http": status, "names": names, "more": more, "kind": body["kind"] });
        }
        // Kept as it is, shown cut short.
        let name = body["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let before = self.seen.insert(name, body.clone()).unwrap_or_default();
        let before = &before["metadata"];
        let metadata = body["metadata"].as_object_mut().expect("metadata");
        metadata.remove("managedFields");
        for member in ["uid", "resourceVersion"] {
            let same = metadata[member] == before[member];
            metadata.insert(member.to_owned(), json!(if same { "same" } else { "new" }));
        }
        for member in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(time) = metadata.get_mut(member) {
                *time = json!("time");
            }
        }
        metadata.remove("namespace");
        for text in
            body.get_mut("data").and_then(Value::as_object_mut).into_iter().flatten().map(|(_, text)| text)
        {
            *text = json!(text.as_str().map(str::len));
        }
        json!({ "http": status, "object": body })
    }
}

/// Both servers.
struct Both {
    real: Api,
    namespace: String,
    model: Model,
    sides: [Side; 2],
}

impl Both {
    fn new(page: usize) -> Self {
        let cluster = Cluster::shared();
        let namespace = cluster.namespace("sim").name;
        let model = Model::new(Schema::default(), page);
        Self { real: cluster.admin(), namespace, model, sides: Default::default() }
    }

    /// The same call to both; `body` makes it from what each side has answered before.
    #[track_caller]
    fn call(&mut self, method: &str, path: &str, body: impl Fn(&Side) -> Value) -> Value {
        let bodies = [0, 1].map(|side: usize| Some(body(&self.sides[side])).filter(|body| !body.is_null()));
        let there = |text: &str| text.replace(NAMESPACE, &self.namespace);
        let sent: Option<Value> =
            bodies[0].as_ref().map(|body| serde_json::from_str(&there(&body.to_string())).expect("JSON"));
        let (status, answer) = self.real.call(method, &there(path), sent.as_ref()).expect("an answer");
        let real = self.sides[0].normal(status, answer);
        let sent = bodies[1].as_ref().map(|body| body.to_string().into_bytes());
        let reply = self.model.handle(method, path, sent.as_deref(), "2026-11-30T12:00:00Z");
        let model = self.sides[1].normal(reply.status, reply.json());
        assert_eq!(real, model, "{method} {path}: left the real one, right the model");
        real
    }

    #[track_caller]
    fn get(&mut self, path: &str) -> Value {
        self.call("GET", path, |_| Value::Null)
    }
}

fn component(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
            "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec })
}

fn lease(name: &str, holder: &str) -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "holderIdentity": holder, "leaseTransitions": 1 } })
}

fn config_map(name: &str, text: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": NAMESPACE },
            "data": { "state.json": text } })
}

/// `object` with one member of its metadata set, or removed.
fn with(mut object: Value, member: &str, value: Option<&str>) -> Value {
    match value {
        Some(value) => object["metadata"][member] = json!(value),
        None => drop(object["metadata"].as_object_mut().and_then(|metadata| metadata.remove(member))),
    }
    object
}

const NO_UID: &str = "00000000-0000-4000-8000-00000000dead";

#[test]
fn writes_of_each_kind_are_answered_alike() {
    let mut both = Both::new(500);
    let kinds = [
        (LEASES, lease("a", "x"), "/spec/holderIdentity"),
        (CONFIG_MAPS, config_map("b", "1"), "/data/state.json"),
        (COMPONENTS, component("c", &json!({ "size": "1" })), "/spec/size"),
    ];
    for (collection, object, member) in kinds {
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        let path = format!("{collection}/{name}");
        let changed = |side: &Side, value: &str| {
            let mut object = side.read(&name);
            *object.pointer_mut(member).expect("the member") = json!(value);
            object
        };
        both.get(&path);
        both.call("POST", collection, |_| with(object.clone(), "resourceVersion", Some("1")));
        both.call("POST", collection, |_| object.clone());
        both.call("POST", collection, |_| object.clone());
        both.get(&path);
        // A PUT of what is there changes nothing, not even the version.
        let same = both.call("PUT", &path, |side| side.read(&name));
        assert_eq!(same["object"]["metadata"]["resourceVersion"], "same");
        both.call("PUT", &path, |side| changed(side, "2"));
        both.get(&path);
        both.call("PUT", &path, |side| with(changed(side, "3"), "resourceVersion", Some("1")));
        both.call("PUT", &path, |side| with(changed(side, "3"), "uid", Some(NO_UID)));
        both.call("PUT", &path, |side| with(changed(side, "3"), "uid", None));
        both.call("PUT", &path, |side| with(changed(side, "4"), "resourceVersion", None));
        both.call("PUT", &format!("{collection}/other"), |side| side.read(&name));
        for (member, value) in [("uid", NO_UID), ("resourceVersion", "1")] {
            both.call("DELETE", &path, |_| json!({ "preconditions": { member: value } }));
        }
        let exact = |side: &Side| {
            let metadata = &side.read(&name)["metadata"];
            json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
                    "preconditions": { "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"] } })
        };
        both.get(&path);
        both.call("DELETE", &path, exact);
        both.call("DELETE", &path, exact);
        both.get(&path);
        // A PUT of what is gone: with the uid, and without.
        both.call("PUT", &path, |side| changed(side, "5"));
        both.call("PUT", &path, |side| with(changed(side, "6"), "uid", None));
    }
}

#[test]
fn finalizers_hold_what_is_deleted_and_a_put_can_let_it_go() {
    let mut both = Both::new(500);
    let path = format!("{COMPONENTS}/a");
    both.call("POST", COMPONENTS, |_| {
        let mut object = component("a", &json!({ "size": 1 }));
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        object
    });
    both.call("DELETE", &path, |_| Value::Null);
    both.get(&path);
    both.call("DELETE", &path, |_| Value::Null);
    both.call("PUT", &path, |side| {
        let mut object = side.read("a");
        object["spec"] = json!({ "size": 2 });
        object
    });
    both.call("POST", COMPONENTS, |_| component("a", &json!({})));
    both.call("PUT", &path, |side| with(side.read("a"), "finalizers", None));
    both.get(&path);
}

#[test]
fn generation_follows_the_spec_and_status_has_a_way_of_its_own() {
    let mut both = Both::new(500);
    let path = format!("{COMPONENTS}/a");
    both.call("POST", COMPONENTS, |_| {
        let mut object = component("a", &json!({ "size": 1 }));
        object["status"] = json!({ "ignored": true });
        object
    });
    let labelled = both.call("PUT", &path, |side| {
        let mut object = side.read("a");
        object["metadata"]["labels"] = json!({ "a": "b" });
        object["status"] = json!({ "ignored": true });
        object
    });
    assert_eq!(labelled["object"]["metadata"]["generation"], 1);
    let status = format!("{path}/status");
    both.call("PUT", &status, |side| {
        let mut object = side.read("a");
        object["status"] = json!({ "phase": "Ready" });
        object["spec"] = json!({ "ignored": true });
        object
    });
    let changed = both.call("PUT", &path, |side| {
        let mut object = side.read("a");
        object["spec"] = json!({ "size": 2 });
        object
    });
    assert_eq!(changed["object"]["metadata"]["generation"], 2);
    assert_eq!(changed["object"]["status"], json!({ "phase": "Ready" }));
}

#[test]
fn what_is_too_large_is_refused() {
    let mut both = Both::new(500);
    let path = format!("{CONFIG_MAPS}/a");
    both.call("POST", CONFIG_MAPS, |_| config_map("a", "x"));
    let sized = |side: &Side, bytes: usize| {
        let mut object = side.read("a");
        object["data"] = json!({ "state.json": "x".repeat(bytes) });
        object
    };
    both.call("PUT", &path, |side| sized(side, 1_048_576));
    both.call("PUT", &path, |side| sized(side, 1_048_577));
    both.call("POST", COMPONENTS, |_| {
        let mut object = component("a", &json!({}));
        object["metadata"]["annotations"] = json!({ "a": "x".repeat(256 * 1024) });
        object
    });
}

#[test]
fn lists_come_in_pages() {
    let mut both = Both::new(2);
    for name in ["a", "b", "c"] {
        both.call("POST", COMPONENTS, |_| component(name, &json!({})));
    }
    both.get(&format!("{COMPONENTS}?limit=2"));
}

#[test]
fn a_watch_tells_what_happened_since_its_version() {
    let mut both = Both::new(500);
    let path = format!("{COMPONENTS}/a");
    both.call("POST", COMPONENTS, |_| component("a", &json!({})));
    let version =
        |side: &Side| side.read("a")["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let versions = [version(&both.sides[0]), version(&both.sides[1])];
    both.call("PUT", &path, |side| {
        let mut object = side.read("a");
        object["spec"] = json!({ "size": 1 });
        object
    });
    both.call("DELETE", &path, |_| Value::Null);
    let kinds = |text: &str| -> Vec<Value> {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line"));
        let kinds = lines.filter(|line| line["type"] != "BOOKMARK");
        kinds
            .map(|line| json!([line["type"], line["object"]["metadata"]["name"], line["object"]["code"]]))
            .collect()
    };
    let watch = |both: &Both, version: &str| {
        let path = format!(
            "{COMPONENTS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={version}"
        );
        let (status, answer) = both.real.get(&path.replace(NAMESPACE, &both.namespace));
        assert_eq!(status, 200);
        // One line alone is JSON to the client, more are text.
        kinds(&answer.as_str().map_or_else(|| answer.to_string(), str::to_owned))
    };
    let real = watch(&both, &versions[0]);
    let Opened::Lines(lines) = both.model.watch(Kind::Component, versions[1].parse().expect("a number"))
    else {
        panic!("the version is not too old");
    };
    let model: String = lines.into_iter().map(|(_, line)| line).collect();
    assert_eq!(real, kinds(&model));
    assert_eq!(real.len(), 2);
    // From a version that is forgotten: one line, ERROR 410.
    both.model.compact();
    let Opened::Expired(line) = both.model.watch(Kind::Component, 1) else {
        panic!("the version is too old")
    };
    assert_eq!(watch(&both, "1"), kinds(&line));
}
