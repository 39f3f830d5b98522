//! What is read of an object that nests deeper than we read: all but what may nest.

use crate::rules::kubernetes::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shell {
    api_version: String,
    kind: String,
    metadata: Metadata,
}

/// ObjectMeta (Kubernetes API `meta/v1`) but for `managedFields`, which the API server keeps where a PUT leaves
/// them out.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    namespace: Option<String>,
    generate_name: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

/// OwnerReference (Kubernetes API `meta/v1`).
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
    block_owner_deletion: Option<bool>,
}

/// The object with `spec: null`, which is nobody's that was signed: see [`Object::is_shell`].
pub(super) fn read(bytes: &[u8]) -> Option<Object> {
    let shell: Shell = serde_json::from_slice(bytes).ok()?;
    let Ok(Value::Object(mut object)) = serde_json::to_value(shell) else { return None };
    drop_nulls(object.get_mut("metadata")?);
    object.insert("spec".to_owned(), Value::Null);
    Some(Object(Value::Object(object)))
}

fn drop_nulls(value: &mut Value) {
    let present = |members: &mut Map<String, Value>| members.retain(|_, member| !member.is_null());
    if let Some(metadata) = value.as_object_mut() {
        present(metadata);
        let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
        owners.into_iter().flatten().filter_map(Value::as_object_mut).for_each(present);
    }
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
                },
                "spec": null,
            })
        );
        assert!(object.is_shell());
        assert!(read(b"{\"spec\":1}").is_none());
    }
}
