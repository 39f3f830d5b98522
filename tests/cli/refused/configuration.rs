//! What the signed configuration must be: its envelope, and each of its members.

use super::{Bench, changed};
use crate::identity::{Identity, public_pem};
use serde_json::{Map, Value, json};

/// The members of a configuration, and whether one has a default.
const MEMBERS: [(&str, bool); 12] = [
    ("type", false),
    ("tenant_id", false),
    ("cluster_id", false),
    ("identity_id", false),
    ("gateway_url", false),
    ("namespace", false),
    ("lease_duration_s", true),
    ("offline_after_s", true),
    ("poll_wait_s", true),
    ("report_interval_s", true),
    ("max_validity_s", true),
    ("issued_at", false),
];

/// An identity with another configuration, properly signed.
fn configured(change: impl FnOnce(&mut Map<String, Value>)) -> Identity {
    changed(|identity| identity.configure(change))
}

/// A configuration with one member set.
fn with(name: &str, value: Value) -> Identity {
    configured(|payload| {
        payload.insert(name.to_owned(), value);
    })
}

#[test]
fn a_configuration_that_was_modified_or_signed_by_another_is_refused() {
    let mut bench = Bench::new("refused-signature");
    let does_not_verify = "signature: does not verify";
    for (member, value) in [
        ("tenant_id", json!("other")),
        ("namespace", json!("default")),
        ("gateway_url", json!("https://evil.example")),
        ("max_validity_s", json!(604_801)),
        ("issued_at", json!("2036-11-30T11:59:00Z")),
    ] {
        let identity = changed(|identity| identity.tamper(|envelope| envelope["payload"][member] = value));
        bench.refuses(member, &identity, "config.json", does_not_verify);
    }
    // What has a default is signed as well.
    let without = changed(|identity| {
        identity.tamper(|envelope| {
            envelope["payload"].as_object_mut().unwrap().remove("lease_duration_s");
        });
    });
    bench.refuses("a default left out", &without, "config.json", does_not_verify);

    let stranger = changed(Identity::sign_as_stranger);
    bench.refuses("a stranger", &stranger, "config.json", "key_id: not a trusted key of the manager");
    let posing = changed(|identity| {
        let trusted: Value = serde_json::from_slice(identity.bytes("config.json")).unwrap();
        identity.sign_as_stranger();
        identity.tamper(|envelope| envelope["key_id"] = trusted["key_id"].clone());
    });
    bench.refuses("a stranger by a trusted name", &posing, "config.json", does_not_verify);
    let others = changed(|identity| identity.put("manager.pem", public_pem(3)));
    bench.refuses("another manager", &others, "config.json", "key_id: not a trusted key of the manager");
}

#[test]
fn a_configuration_in_an_envelope_of_another_form_is_refused() {
    let mut bench = Bench::new("refused-envelope");
    for member in ["payload", "key_id", "signature"] {
        let identity = changed(|identity| {
            identity.tamper(|envelope| drop(envelope.as_object_mut().unwrap().remove(member)));
        });
        bench.refuses(member, &identity, "config.json", &format!("{member}: missing"));
        let identity = changed(|identity| identity.tamper(|envelope| envelope[member] = Value::Null));
        bench.refuses(member, &identity, "config.json", &format!("{member}: expected "));
    }
    let more = changed(|identity| identity.tamper(|envelope| envelope["more"] = json!(1)));
    bench.refuses("unknown member", &more, "config.json", "envelope: unknown member");
    for (what, change) in [
        ("a byte order mark", &(|text: &str| format!("\u{feff}{text}")) as &dyn Fn(&str) -> String),
        ("something after it", &|text| format!("{text}{{}}")),
        ("a comment", &|text| format!("// configuration\n{text}")),
        ("more than 256 KiB", &|text| text.to_owned() + &" ".repeat(256 * 1024)),
        ("a member twice", &|text| text.replacen('{', "{\"key_id\":\"\",", 1)),
    ] {
        let identity = changed(|identity| identity.put("config.json", change(&identity.text("config.json"))));
        bench.refuses(what, &identity, "config.json", "not strict JSON: ");
    }
    let command = with("type", json!("navin.command/v1"));
    bench.refuses("a command", &command, "config.json", "payload.type: expected navin.agent-config/v1");
}

#[test]
fn a_member_that_is_missing_unknown_or_of_another_type_is_refused_and_named() {
    let mut bench = Bench::new("refused-members");
    let issued = Identity::issue();
    let names: Vec<&String> = issued.payload().as_object().unwrap().keys().collect();
    assert_eq!(names.len(), MEMBERS.len());
    for (name, has_default) in MEMBERS {
        assert!(issued.payload().get(name).is_some(), "{name}");
        if !has_default {
            let without = configured(|payload| drop(payload.remove(name)));
            bench.refuses("missing", &without, "config.json", &format!("payload.{name}: missing"));
        }
        let wrong = if has_default {
            vec![json!(null), json!("15"), json!(15.5), json!(true), json!([15]), json!({})]
        } else {
            vec![json!(null), json!(1), json!(true), json!(["a"]), json!({})]
        };
        for value in wrong {
            let problem = format!("payload.{name}: expected ");
            bench.refuses(&value.to_string(), &with(name, value.clone()), "config.json", &problem);
        }
    }
    bench.refuses("unknown", &with("proxy", json!("x")), "config.json", "payload: unknown member");
}

#[test]
fn a_number_out_of_its_range_is_refused_and_named() {
    let mut bench = Bench::new("refused-ranges");
    for (name, min, max) in [
        ("lease_duration_s", 3, 300),
        ("offline_after_s", 5, 86_400),
        ("poll_wait_s", 1, 30),
        ("report_interval_s", 10, 86_400),
    ] {
        for number in [min - 1, max + 1, 0, -1, 9_007_199_254_740_991_i64] {
            let problem = format!("payload.{name}: expected {min} to {max}, found {number}");
            bench.refuses(name, &with(name, json!(number)), "config.json", &problem);
        }
    }
    let problem = "payload.max_validity_s: expected 1 to 9007199254740991, found 0";
    bench.refuses("max_validity_s", &with("max_validity_s", json!(0)), "config.json", problem);
    // No JSON of the contract holds a number beyond that, whatever its name.
    let beyond = with("max_validity_s", json!(9_007_199_254_740_992_i64));
    bench.refuses("max_validity_s", &beyond, "config.json", "not strict JSON: number above 2^53-1");
}

#[test]
fn a_text_of_another_form_is_refused_and_its_member_named() {
    let mut bench = Bench::new("refused-forms");
    for (name, texts) in [
        ("tenant_id", &["", "Acme", "a_b", "-a", "a.b"][..]),
        ("cluster_id", &["", "PROD", "a/b", "a-"]),
        ("namespace", &["", "kube_system", "../default"]),
        ("identity_id", &["", "86b31929", "86b31929be9d481e81ae46c379187c17"]),
        ("issued_at", &["", "yesterday", "2026-11-30", "2026-11-30T11:59:00+00:00"]),
        (
            "gateway_url",
            &[
                "",
                "http://manager.example:8462",
                "manager.example:8462",
                "https://",
                "https://manager.example/",
                "https://manager.example:8462/v1",
                "https://user@manager.example",
                "https://user:secret@manager.example",
                "https://manager.example?tenant=acme",
                "https://manager.example#x",
                "https://manager.example:0",
                "https://manager.example:65536",
                "https://manager example",
            ],
        ),
    ] {
        for text in texts {
            let problem = format!("payload.{name}: expected ");
            bench.refuses(text, &with(name, json!(text)), "config.json", &problem);
        }
    }
}

#[test]
fn another_namespace_than_the_pods_own_is_refused() {
    let mut bench = Bench::new("refused-namespace");
    let problem = "payload.namespace: expected the pod's own namespace \"default\", found \"navin-platform\"";
    bench.refuses_in("default", "namespace", &Identity::issue(), "config.json", problem);
}
