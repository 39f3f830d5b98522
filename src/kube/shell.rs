//! What is read of an object that nests deeper, or takes more memory, than we read: all but what may nest.

use crate::rules::json::parse_object;
use crate::rules::kubernetes::Object;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The object with `spec: null`, which is nobody's that was signed: see [`Object::is_shell`]. Of its metadata all is kept
/// but `managedFields`.
pub(super) fn read(bytes: &[u8]) -> Option<Object> {
    let read = |text: &RawValue| parse_object(text.get().as_bytes(), bytes.len()).ok();
    let object: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(bytes).ok()?;
    let metadata: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(object.get("metadata")?.get()).ok()?;
    let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
    let metadata: Map<String, Value> =
        kept.map(|(name, text)| Some((name.clone(), read(text)?))).collect::<Option<_>>()?;
    let named = ["name", "uid", "resourceVersion"]
        .iter()
        .all(|name| metadata.get(*name).is_some_and(Value::is_string));
    let (version, kind) = (read(object.get("apiVersion")?)?, read(object.get("kind")?)?);
    let shell = json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": null });
    named.then_some(Object(shell))
}

#[cfg(test)]
mod tests {
    use super::super::{Kube, KubeError, components, lease, state};
    use super::*;
    use crate::http::{Http, HttpError, Request, Response};
    use crate::rules::component::same_spec;
    use crate::rules::names::ComponentName;
    use std::io::Cursor;
    use std::sync::Arc;
    use std::time::Duration;

    /// An API server that holds this.
    struct Holding(String);

    impl Http for Holding {
        fn send(&self, _: &Request) -> Result<Response, HttpError> {
            let body = Box::new(Cursor::new(self.0.clone().into_bytes()));
            Ok(Response { status: 200, retry_after: None, date: None, body })
        }
    }

    #[test]
    fn an_object_that_takes_too_much_memory_keeps_its_metadata_and_is_restored() {
        let heavy = vec![r#"{"a":0}"#; 175_000].join(",");
        let text = format!(
            r#"{{"apiVersion":"platform.navin.ai/v1","kind":"ManagedComponent",
            "metadata":{{"name":"ingress","uid":"u1","resourceVersion":"7"}},"spec":{{"a":[{heavy}]}}}}"#
        );
        assert!(text.len() < 1_500_000, "what etcd takes");
        let kube = Kube::new(Arc::new(Holding(text)), "navin", Duration::from_secs(5));
        let live = components::get(&kube, &ComponentName::parse("ingress").unwrap()).unwrap().unwrap();
        assert!(live.is_shell() && live.resource_version() == Some("7"));
        assert!(!same_spec(&live, &Map::new()));
    }

    #[test]
    fn a_state_or_a_lease_that_cannot_be_read_whole_is_not_taken_for_none() {
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        let kube = |more: &str| {
            let metadata = format!(r#"{{"name":"n","uid":"u1","resourceVersion":"7"{more}}}"#);
            let text = format!(r#"{{"apiVersion":"v1","kind":"K","metadata":{metadata}}}"#);
            Kube::new(Arc::new(Holding(text)), "navin", Duration::from_secs(5))
        };
        let whole = kube("");
        assert!(lease::get(&whole).unwrap().is_some() && state::get(&whole).unwrap().is_some());
        let kube = kube(&format!(r#","managedFields":{deep}"#));
        assert!(components::get(&kube, &ComponentName::parse("n").unwrap()).unwrap().is_some());
        for got in [lease::get(&kube), state::get(&kube)] {
            assert!(matches!(got, Err(KubeError::Unanswered { .. })), "{got:?}");
        }
    }

    #[test]
    fn an_object_that_no_write_could_name_is_not_read() {
        for metadata in [r#"{"name":"n","uid":"u1"}"#, r#"{"name":"n","resourceVersion":"7"}"#] {
            let kube = Kube::new(
                Arc::new(Holding(format!(r#"{{"metadata":{metadata},"spec":{{}}}}"#))),
                "navin",
                Duration::from_secs(5),
            );
            let got = components::get(&kube, &ComponentName::parse("n").unwrap());
            assert!(matches!(got, Err(KubeError::Unanswered { .. })), "{got:?}");
        }
    }

    #[test]
    fn an_object_that_nests_too_deep_keeps_its_metadata_and_loses_what_nests() {
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        let text = format!(
            r#"{{"apiVersion":"platform.navin.ai/v1","kind":"ManagedComponent","metadata":{{"name":"ingress",
            "uid":"u1","resourceVersion":"7","generation":3,"finalizers":["a/b"],"labels":{{"c":"d"}},
            "ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"u2"}}],
            "ofATimeToCome":{{"e":[1]}},
            "managedFields":[{{"fieldsV1":{deep}}}]}},"spec":{{"a":{deep}}},"status":{deep}}}"#
        );
        let object = read(text.as_bytes()).unwrap();
        assert_eq!(
            object.0,
            json!({
                "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
                "metadata": {
                    "name": "ingress", "uid": "u1", "resourceVersion": "7", "generation": 3,
                    "finalizers": ["a/b"], "labels": { "c": "d" },
                    "ownerReferences": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u2" }],
                    "ofATimeToCome": { "e": [1] },
                },
                "spec": null,
            })
        );
        assert!(object.is_shell());
        assert!(read(b"{\"spec\":1}").is_none());
        assert!(
            read(text.replace("\"u1\"", "null").as_bytes()).is_none(),
            "what cannot be named cannot be written"
        );
    }
}
