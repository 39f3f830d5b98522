//! The calls that `/openapi.json` describes, and what is sent to them.

use crate::support::{Answer, Folder, Manager, id, receipt};
use serde_json::{Value, json};

/// The tenant's cluster: a name that is nowhere in anything else.
pub(crate) const CLUSTER: &str = "walked-cluster";

/// The description, and the manager that it is of.
pub(crate) struct Walk {
    pub(crate) document: Value,
    pub(crate) manager: Manager,
    pub(crate) command_id: String,
}

/// One call that is described.
pub(crate) struct Operation<'w> {
    pub(crate) id: &'w str,
    pub(crate) method: String,
    pub(crate) path: &'w str,
    pub(crate) described: &'w Value,
    pub(crate) parameters: Vec<&'w Value>,
}

/// What is sent.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Walk {
    pub(crate) fn start(folder: &Folder, token: &str) -> Self {
        let manager = folder.serve();
        let agent = manager.cluster(token, CLUSTER);
        let inventory = json!({ "nodes": { "state": "ok", "items": [] } });
        let report = json!({ "type": "navin.report/v1", "tenant_id": "acme", "cluster_id": CLUSTER,
            "replica": "pod-1", "agent_version": "0.1.0", "cluster_uid": "u", "inventory_revision": "r",
            "inventory": inventory, "components": [], "counters": { "executed": 3, "refused": { "expired": 1 },
            "drift_repaired": 2, "offline_periods": 1 }, "state": { "bytes": 9, "receipts_waiting": 4 },
            "clock_offset_ms": 1500 });
        agent.report(&report).expect(200);
        let command = manager.queue(token, CLUSTER);
        agent.receipt(&receipt(&command, "succeeded", true)).expect(200);
        let document = manager.get("", "/openapi.json").expect(200);
        Self { document, manager, command_id: id(&command) }
    }

    pub(crate) fn operations(&self) -> Vec<Operation<'_>> {
        let mut operations = Vec::new();
        for (path, item) in self.document["paths"].as_object().unwrap() {
            for (method, described) in
                item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
            {
                let listed = [&item["parameters"], &described["parameters"]];
                let parameters = listed.into_iter().filter_map(Value::as_array).flatten().collect();
                let id = described["operationId"].as_str().unwrap();
                operations.push(Operation { id, method: method.to_uppercase(), path, described, parameters });
            }
        }
        operations
    }

    /// A call that is taken.
    pub(crate) fn valid(&self, operation: &Operation<'_>) -> Call {
        let path = operation.path.replace("{cluster_id}", CLUSTER).replace("{command_id}", &self.command_id);
        let image = ("image".to_owned(), format!("agent@sha256:{}", "0".repeat(64)));
        let query = if operation.id == "manifests" { vec![image] } else { Vec::new() };
        let body = valid_body(operation.id).map_or(Vec::new(), |body| body.to_string().into_bytes());
        Call { path, query, body }
    }

    pub(crate) fn send(&self, token: &str, operation: &Operation<'_>, call: &Call) -> Answer {
        let query: Vec<String> = call.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let path = format!("{}{mark}{}", call.path, query.join("&"));
        self.manager.send(&operation.method, token, &path, Some(call.body.clone()))
    }

    /// The answer is one of those that are described, with a body of the form that is described.
    pub(crate) fn check(&self, operation: &Operation<'_>, call: &Call, answer: &Answer) {
        let told = || {
            let body: String = String::from_utf8_lossy(&call.body).chars().take(300).collect();
            format!("{} {} {:?} {body}: {answer:?}", operation.method, call.path, call.query)
        };
        assert!(answer.status < 500, "{}", told());
        let mut described = &operation.described["responses"][answer.status.to_string()];
        if let Some(place) = described["$ref"].as_str() {
            described = self.document.pointer(place.trim_start_matches('#')).unwrap();
        }
        let (kind, schema) = described["content"]
            .as_object()
            .and_then(|kinds| kinds.iter().next())
            .unwrap_or_else(|| panic!("not described: {}", told()));
        assert_eq!(answer.content_type.split(';').next().unwrap(), kind, "{}", told());
        let schema = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema",
            "components": self.document["components"], "allOf": [schema["schema"]] });
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        if let Err(error) = validator.validate(&answer.body) {
            panic!("{error} at {}: {}", error.instance_path(), told());
        }
    }
}

fn valid_body(operation_id: &str) -> Option<Value> {
    match operation_id {
        "register" => Some(json!({ "cluster_id": "another", "namespace": "navin" })),
        "issueIdentity" => {
            Some(json!({ "gateway_url": "https://manager.example:8462", "lease_duration_s": 15,
            "offline_after_s": 120, "poll_wait_s": 30, "report_interval_s": 300, "max_validity_s": 604_800 }))
        }
        "queue" => Some(json!({ "operation": "managedcomponent.apply", "valid_for_s": 900,
            "arguments": { "name": "web", "spec": { "size": 1.5 } } })),
        _ => None,
    }
}

/// A good body made bad, in every way that its schema tells, and in some that no schema tells.
pub(crate) fn bad_bodies(document: &Value, operation: &Operation<'_>) -> Vec<Vec<u8>> {
    let Some(good) = valid_body(operation.id) else { return Vec::new() };
    let place = operation.described["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
    let schema = document.pointer(place.unwrap().trim_start_matches('#')).unwrap();
    let mut bodies: Vec<Vec<u8>> = [json!(null), json!([]), json!("x"), json!(1), json!({})]
        .iter()
        .map(|body| body.to_string().into_bytes())
        .collect();
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body.to_string().into_bytes()
    };
    for (name, property) in schema["properties"].as_object().unwrap() {
        let kinds = [
            json!(true),
            json!(1.5),
            json!(-1),
            json!("\u{0}"),
            json!([]),
            json!({ "\u{0}": 1 }),
            json!(u64::MAX),
        ];
        let optional_null = property["type"].as_array().is_some();
        bodies.extend(kinds.into_iter().map(|value| with(name, value)));
        if !optional_null {
            bodies.push(with(name, json!(null)));
        }
        for (bound, by) in [("minimum", -1), ("maximum", 1)] {
            if let Some(limit) = property[bound].as_i64() {
                bodies.push(with(name, json!(limit + by)));
            }
        }
        if schema["required"].as_array().unwrap().iter().any(|required| required == name) {
            let mut body = good.clone();
            body.as_object_mut().unwrap().remove(name);
            bodies.push(body.to_string().into_bytes());
        }
    }
    bodies.push(with("not_described", json!(1)));
    let text = good.to_string();
    let first = text.split_once(',').unwrap().0;
    bodies.push(format!("{first},{}", &text[1..]).into_bytes());
    bodies.push([b"\xef\xbb\xbf", text.as_bytes()].concat());
    bodies.push([text.as_bytes(), b"x"].concat());
    bodies.push(text.as_bytes()[..text.len() / 2].to_vec());
    bodies.push(b"{\"\xff\":1}".to_vec());
    bodies.push([b"[".repeat(100_000)].concat());
    bodies.push(with("not_described", json!("x".repeat(1024 * 1024))));
    bodies
}
