//! What of an object is the agent's, and what is carried as it was read.

use super::*;
use crate::rules::json::parse_foreign;

fn author() -> Author {
    Author {
        command_id: CommandId::parse("c5cefdd8-0273-45c9-821e-000000000007").unwrap(),
        sequence: Sequence::new(7).unwrap(),
    }
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// An object that others have worked on: what is theirs must come back as it was.
fn live() -> Object {
    Object(json!({
        "apiVersion": "platform.navin.ai/v1",
        "kind": "ManagedComponent",
        "metadata": {
            "name": "ingress", "namespace": "navin", "uid": "u1", "resourceVersion": "41", "generation": 3,
            "creationTimestamp": "2026-11-30T11:00:00Z",
            "labels": {"team": "edge", "app.kubernetes.io/managed-by": "somebody"},
            "annotations": {
                "note": "keep", "platform.navin.ai/command-id": "older", "platform.navin.ai/sequence": "3",
                "platform.navin.ai/created": "2"
            },
            "finalizers": ["example.com/hold"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "o"}],
            "managedFields": [{"manager": "kubectl"}]
        },
        "spec": {"replicas": 1, "added": true},
        "status": {"ready": true}
    }))
}

#[test]
fn a_created_object_has_the_label_and_the_three_annotations_and_nothing_else() {
    let name = ComponentName::parse("ingress").unwrap();
    let object = created("navin", &name, &map(&json!({"replicas": 2})), &author());
    assert_eq!(
        object.0,
        json!({
            "apiVersion": "platform.navin.ai/v1",
            "kind": "ManagedComponent",
            "metadata": {
                "name": "ingress", "namespace": "navin",
                "labels": {"app.kubernetes.io/managed-by": "navin-cluster-agent"},
                "annotations": {
                    "platform.navin.ai/command-id": "c5cefdd8-0273-45c9-821e-000000000007",
                    "platform.navin.ai/sequence": "7",
                    "platform.navin.ai/created": "7"
                }
            },
            "spec": {"replicas": 2}
        })
    );
    assert_eq!(created_by(&object), Some(7));
    assert!(written_by(&object, &author()));
}

#[test]
fn a_replaced_object_keeps_the_metadata_of_others_and_no_member_of_their_spec() {
    let object = replaced(&live(), &map(&json!({"replicas": 2})), &author(), false);
    let mut wanted = live();
    wanted.0["spec"] = json!({"replicas": 2});
    wanted.0["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("navin-cluster-agent");
    wanted.0["metadata"]["annotations"]["platform.navin.ai/command-id"] = json!(author().command_id.as_str());
    wanted.0["metadata"]["annotations"]["platform.navin.ai/sequence"] = json!("7");
    assert_eq!(object, wanted);
    assert_eq!(created_by(&object), Some(2), "only a POST says who created it");
}

#[test]
fn a_bare_replacement_says_in_a_label_whose_it_is_until_the_annotation_can_again() {
    let object = replaced(&live(), &map(&json!({})), &author(), true);
    let mut wanted = live();
    wanted.0["spec"] = json!({});
    wanted.0["metadata"]["labels"]["platform.navin.ai/command-id"] =
        json!("c5cefdd8-0273-45c9-821e-000000000007");
    assert_eq!(object, wanted);
    assert!(written_by(&object, &author()), "though the annotation is an older one's");

    let later = Author {
        command_id: CommandId::parse("c5cefdd8-0273-45c9-821e-000000000009").unwrap(),
        sequence: Sequence::new(9).unwrap(),
    };
    let object = replaced(&object, &map(&json!({})), &later, false);
    assert!(written_by(&object, &later) && !written_by(&object, &author()));
    assert_eq!(object.label(COMMAND_ID), None);
}

#[test]
fn settling_changes_one_label_to_a_new_value_which_is_no_claim_of_authorship() {
    let object = settled(&live(), &author());
    let mut wanted = live();
    wanted.0["metadata"]["labels"]["platform.navin.ai/settled"] =
        json!("c5cefdd8-0273-45c9-821e-000000000007.41");
    assert_eq!(object, wanted);
    assert!(!written_by(&object, &author()));
    assert_eq!(created_by(&object), Some(2));

    let mut later = object.clone();
    later.0["metadata"]["resourceVersion"] = json!("42");
    assert_ne!(settled(&later, &author()), later, "a PUT that changes nothing settles nothing");
}

#[test]
fn metadata_of_an_odd_form_is_replaced_and_never_a_panic() {
    for odd in [json!({}), json!({"metadata": {}}), json!({"metadata": {"annotations": null, "labels": []}})]
    {
        let object = replaced(&Object(odd), &map(&json!({})), &author(), false);
        assert!(written_by(&object, &author()), "{object:?}");
    }
    for hopeless in [json!(null), json!([]), json!("x"), json!({"metadata": 1})] {
        let object = replaced(&Object(hopeless), &map(&json!({})), &author(), false);
        assert!(!written_by(&object, &author()), "{object:?}");
        assert_eq!(created_by(&object), None);
    }
}

#[test]
fn created_by_takes_a_sequence_and_nothing_else() {
    for (text, wanted) in [
        (json!("7"), Some(7)),
        (json!("9007199254740991"), Some(9_007_199_254_740_991)),
        (json!(""), None),
        (json!("-1"), None),
        (json!("7 "), None),
        (json!("seven"), None),
        (json!(7), None),
        (json!("99999999999999999999"), None),
    ] {
        let mut object = live();
        object.0["metadata"]["annotations"]["platform.navin.ai/created"] = text.clone();
        assert_eq!(created_by(&object), wanted, "{text}");
    }
}

#[test]
fn a_spec_is_compared_by_the_values_of_its_numbers() {
    let spec = map(&json!({"a": 1, "b": [0, {"c": 100}], "d": 1.5, "e": "1"}));
    let same = |text: &str| {
        let live = Object(json!({"spec": parse_foreign(text.as_bytes(), 1000).unwrap()}));
        same_spec(&live, &spec)
    };
    assert!(same(r#"{"a": 1, "b": [0, {"c": 100}], "d": 1.5, "e": "1"}"#));
    assert!(same(r#"{"e": "1", "d": 15e-1, "b": [-0.0, {"c": 1.0E+2}], "a": 1.0}"#));
    for other in [
        r#"{"a": 2, "b": [0, {"c": 100}], "d": 1.5, "e": "1"}"#,
        r#"{"a": "1", "b": [0, {"c": 100}], "d": 1.5, "e": "1"}"#,
        r#"{"a": 1, "b": [0, {"c": 100}], "d": 1.5000000000000002, "e": "1"}"#,
        r#"{"a": 1, "b": [{"c": 100}, 0], "d": 1.5, "e": "1"}"#,
        r#"{"a": 1, "b": [0, {"c": 100}], "d": 1.5}"#,
        r#"{"a": 1, "b": [0, {"c": 100}], "d": 1.5, "e": "1", "f": null}"#,
        "{}",
        "null",
    ] {
        assert!(!same(other), "{other}");
    }
    assert!(!same_spec(&Object(json!({})), &Map::new()), "no spec is not an empty one");
    assert!(same_spec(&Object(json!({"spec": {}})), &Map::new()));
}
