//! What is read of an object that nests deeper than we read: all but what may nest.

use super::client::OBJECT_BYTES;
use crate::rules::json::parse_foreign;
use crate::rules::kubernetes::Object;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The object with `spec: null`, which is nobody's that was signed: see [`Object::is_shell`]. Of its metadata all is kept
/// but `managedFields`.
pub(super) fn read(bytes: &[u8]) -> Option<Object> {
    let read = |text: &RawValue| parse_foreign(text.get().as_bytes(), OBJECT_BYTES).ok();
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
    use super::*;
    use serde_json::json;

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
