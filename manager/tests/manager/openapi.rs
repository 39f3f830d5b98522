//! Every call that `/openapi.json` describes, as described: with what it takes, with what it does not,
//! without a token, and with another tenant's.

use crate::support::{Answer, Folder, Manager};
use serde_json::{Map, Value, json};

/// The tenant's cluster: a name that is nowhere in anything else.
const CLUSTER: &str = "walked-cluster";

/// The description, and the manager that it is of.
struct Walk {
    document: Value,
    manager: Manager,
    command_id: String,
}

/// One call that is described.
struct Operation<'w> {
    id: &'w str,
    method: String,
    path: &'w str,
    described: &'w Value,
    parameters: Vec<&'w Value>,
}

/// What is sent.
#[derive(Clone)]
struct Call {
    path: String,
    query: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Walk {
    fn start(folder: &Folder, token: &str) -> Self {
        let manager = folder.serve();
        let agent = manager.cluster(token, CLUSTER);
        let inventory = json!({ "nodes": { "state": "ok", "items": [] } });
        let report = json!({ "type": "navin.report/v1", "tenant_id": "acme", "cluster_id": CLUSTER,
            "replica": "pod-1", "agent_version": "0.1.0", "cluster_uid": "u", "inventory_revision": "r",
            "inventory": inventory, "components": [], "counters": { "executed": 3, "refused": { "expired": 1 },
            "drift_repaired": 2, "offline_periods": 1 }, "state": { "bytes": 9, "receipts_waiting": 0 } });
        agent.report(&report).expect(200);
        let command = manager.queue(token, CLUSTER);
        agent.receipt(&crate::support::receipt(&command, "succeeded", true)).expect(200);
        let document = manager.get("", "/openapi.json").expect(200);
        Self { document, manager, command_id: command["command_id"].as_str().unwrap().to_owned() }
    }

    fn operations(&self) -> Vec<Operation<'_>> {
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
    fn valid(&self, operation: &Operation<'_>) -> Call {
        let path = operation.path.replace("{cluster_id}", CLUSTER).replace("{command_id}", &self.command_id);
        let image = ("image".to_owned(), format!("agent@sha256:{}", "0".repeat(64)));
        let query = if operation.id == "manifests" { vec![image] } else { Vec::new() };
        let body = valid_body(operation.id).map_or(Vec::new(), |body| body.to_string().into_bytes());
        Call { path, query, body }
    }

    fn send(&self, token: &str, operation: &Operation<'_>, call: &Call) -> Answer {
        let query: Vec<String> = call.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let path = format!("{}{mark}{}", call.path, query.join("&"));
        self.manager.send(&operation.method, token, &path, Some(call.body.clone()))
    }

    /// The answer is one of those that are described, with a body of the form that is described.
    fn check(&self, operation: &Operation<'_>, call: &Call, answer: &Answer) {
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
fn bad_bodies(document: &Value, operation: &Operation<'_>) -> Vec<Vec<u8>> {
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

#[test]
fn every_call_takes_what_is_described_and_answers_as_described() {
    let folder = Folder::new("walk-valid");
    let token = folder.token("acme");
    let walk = Walk::start(&folder, &token);
    for operation in walk.operations() {
        let call = walk.valid(&operation);
        let answer = walk.send(&token, &operation, &call);
        assert!(answer.status < 300, "{} {}: {answer:?}", operation.method, operation.path);
        walk.check(&operation, &call, &answer);
    }
}

#[test]
fn every_call_refuses_what_is_not_described_as_described() {
    let folder = Folder::new("walk-bad");
    let token = folder.token("acme");
    let walk = Walk::start(&folder, &token);
    for operation in walk.operations() {
        let good = walk.valid(&operation);
        let mut calls: Vec<Call> = bad_bodies(&walk.document, &operation)
            .into_iter()
            .map(|body| Call { body, ..good.clone() })
            .collect();
        for parameter in &operation.parameters {
            let name = parameter["name"].as_str().unwrap();
            for bad in
                ["", "%00", "%ff", "..", "A", "-1", "0", "1001", "1e3", "%E2%82%AC", "x'--", &"a".repeat(600)]
            {
                let mut call = good.clone();
                if parameter["in"] == "query" {
                    call.query.retain(|(known, _)| known != name);
                    call.query.push((name.to_owned(), bad.to_owned()));
                } else {
                    let of = if name == "cluster_id" { CLUSTER } else { &walk.command_id };
                    call.path = call.path.replace(of, bad);
                    if bad.is_empty() || bad == ".." {
                        continue;
                    }
                }
                calls.push(call);
            }
            if parameter["in"] == "query" {
                let twice = vec![(name.to_owned(), "1".to_owned()); 2];
                calls.push(Call { query: twice, ..good.clone() });
            }
        }
        for call in calls {
            let answer = walk.send(&token, &operation, &call);
            let told: String = String::from_utf8_lossy(&call.body).chars().take(300).collect();
            assert!(
                (400..500).contains(&answer.status),
                "{} {} {:?} {told}: {answer:?}",
                operation.method,
                call.path,
                call.query
            );
            walk.check(&operation, &call, &answer);
        }
    }
}

#[test]
fn without_a_good_token_every_call_is_refused_but_those_that_need_none() {
    let folder = Folder::new("walk-tokenless");
    let token = folder.token("acme");
    let walk = Walk::start(&folder, &token);
    let listed = String::from_utf8(folder.run(&["token", "list"]).stdout).unwrap();
    let id = listed.split('\t').next().unwrap().to_owned();
    assert!(listed.contains("acme") && !listed.contains(&token));
    assert!(folder.run(&["token", "revoke", &id]).status.success());
    assert!(!folder.run(&["token", "revoke", &id]).status.success(), "revoked twice");
    for operation in walk.operations() {
        let public = operation.described["security"] == json!([]);
        for token in ["", "navin_wrong", &token] {
            let call = walk.valid(&operation);
            let answer = walk.send(token, &operation, &call);
            assert_eq!(
                answer.status,
                if public { 200 } else { 401 },
                "{} {}",
                operation.method,
                operation.path
            );
            walk.check(&operation, &call, &answer);
        }
    }
    let audited = walk.manager.audit(&folder.token("acme"));
    assert!(audited.contains(&format!("token.revoke done {id} ")), "{audited:?}");
}

#[test]
fn another_tenants_token_sees_nothing_of_a_cluster_in_any_call() {
    let folder = Folder::new("walk-foreign");
    let (token, foreign) = (folder.token("acme"), folder.token("rival"));
    let walk = Walk::start(&folder, &token);
    let before = walk.manager.get(&token, &format!("/api/v1/clusters/{CLUSTER}")).expect(200);
    for operation in walk.operations() {
        let call = walk.valid(&operation);
        let answer = walk.send(&foreign, &operation, &call);
        walk.check(&operation, &call, &answer);
        if operation.path.contains("{cluster_id}") {
            assert_eq!(answer.status, 404, "{} {}", operation.method, operation.path);
        }
        if operation.id != "audit" {
            // Its own refused calls are in its audit, by their paths.
            assert!(!answer.body.to_string().contains(CLUSTER), "{} {}", operation.method, operation.path);
        }
    }
    for entry in walk.manager.audit(&foreign) {
        assert!(!entry.contains(CLUSTER) || entry.ends_with(" 404"), "{entry}");
    }
    let after = walk.manager.get(&token, &format!("/api/v1/clusters/{CLUSTER}")).expect(200);
    let unchanging = |cluster: &Value| -> Map<String, Value> {
        cluster.as_object().unwrap().clone().into_iter().filter(|(name, _)| name != "agent").collect()
    };
    assert_eq!(unchanging(&before), unchanging(&after));
}

#[test]
fn lists_are_read_page_by_page() {
    let folder = Folder::new("pages");
    let token = folder.token("acme");
    let manager = folder.serve();
    for number in 0..5 {
        let body = json!({ "cluster_id": format!("c{number}"), "namespace": "navin" });
        manager.post(&token, "/api/v1/clusters", &body).expect(201);
        manager.queue(&token, "c0");
    }
    for (path, name, key, count) in [
        ("/api/v1/clusters", "clusters", "cluster_id", 5),
        ("/api/v1/clusters/c0/kubernetes/commands", "commands", "command_id", 5),
        ("/api/v1/audit", "entries", "audit_id", 11),
    ] {
        let whole = manager.get(&token, path).expect(200);
        let keys = |page: &Value| -> Vec<String> {
            page[name].as_array().unwrap().iter().map(|row| row[key].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!((keys(&whole).len(), &whole["continue"]), (count, &json!(null)), "{path}");
        let (mut found, mut next) = (Vec::new(), String::new());
        loop {
            let page = manager.get(&token, &format!("{path}?limit=2{next}")).expect(200);
            found.extend(keys(&page));
            match page["continue"].as_str() {
                Some(text) => next = format!("&continue={text}"),
                None => break,
            }
        }
        assert_eq!(found, keys(&whole), "{path}");
    }
}

#[test]
fn metrics_are_what_the_agents_report() {
    let folder = Folder::new("metrics");
    let token = folder.token("acme");
    let walk = Walk::start(&folder, &token);
    let metrics = walk.manager.get(&token, "/metrics").expect(200);
    for line in [
        "navin_agent_online{cluster=\"walked-cluster\"} 1",
        "navin_commands{cluster=\"walked-cluster\",status=\"succeeded\"} 1",
        "navin_receipts_total{cluster=\"walked-cluster\"} 1",
        "navin_report_age_seconds{cluster=\"walked-cluster\"} ",
        "navin_certificate_days_left{cluster=\"walked-cluster\"} 36",
        "navin_agent_executed_total{cluster=\"walked-cluster\"} 3",
        "navin_agent_refused_total{cluster=\"walked-cluster\",reason=\"expired\"} 1",
        "navin_agent_drift_repaired_total{cluster=\"walked-cluster\"} 2",
        "navin_agent_offline_periods_total{cluster=\"walked-cluster\"} 1",
    ] {
        assert!(metrics.as_str().unwrap().contains(&format!("\n{line}")), "{line}: {metrics}");
    }
}
