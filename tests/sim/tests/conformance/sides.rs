//! The same calls to a real kube-apiserver and to the model, and their answers in comparable form.

use navin_sim::api::{Api as Model, Schema};
use navin_sim::identity::NAMESPACE;
use navin_test_support::{Api, Cluster};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One of the two servers, and its objects as they were last answered.
#[derive(Default)]
pub(crate) struct Side {
    seen: BTreeMap<String, Value>,
}

impl Side {
    /// The object as it was last answered, to be sent back changed.
    pub(crate) fn read(&self, name: &str) -> Value {
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
pub(crate) struct Both {
    pub(crate) real: Api,
    pub(crate) namespace: String,
    pub(crate) model: Model,
    pub(crate) sides: [Side; 2],
}

impl Both {
    pub(crate) fn new(page: usize) -> Self {
        let cluster = Cluster::shared();
        let namespace = cluster.namespace("sim").name;
        let model = Model::new(Schema::default(), page);
        Self { real: cluster.admin(), namespace, model, sides: Default::default() }
    }

    /// The same call to both; `body` makes it from what each side has answered before.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, path: &str, body: impl Fn(&Side) -> Value) -> Value {
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
    pub(crate) fn get(&mut self, path: &str) -> Value {
        self.call("GET", path, |_| Value::Null)
    }
}
