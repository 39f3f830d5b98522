//! Holds the model of the API server against a real kube-apiserver: the same calls, the same answers, but for
//! uids, resource versions, times, and the words of messages.

mod sides;

use navin_sim::api::{Kind, Opened};
use navin_sim::identity::NAMESPACE;
use serde_json::{Value, json};
use sides::{Both, Side};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/navin-platform/leases";
const CONFIG_MAPS: &str = "/api/v1/namespaces/navin-platform/configmaps";
const COMPONENTS: &str = "/apis/platform.navin.ai/v1/namespaces/navin-platform/managedcomponents";

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
