//! What the vectors of envelopes do not show.

use super::*;
use crate::rules::names::parse_time;
use crate::rules::vectors;
use serde_json::json;

fn stamp() -> Stamp {
    let executed_at = parse_time("2026-11-30T12:00:00.75Z").unwrap();
    Stamp { executed_at, ..vectors::stamp(Source::Inbox) }
}

fn payload() -> Value {
    json!({
        "type": "navin.command/v1", "command_id": "c5cefdd8-0273-45c9-821e-7a607108e022",
        "tenant_id": "acme", "target": {"kind": "cluster", "id": "prod-eu-1"},
        "operation": "managedcomponent.apply", "arguments": {"name": "a", "spec": {}},
        "nonce": "qJfFJSYuanwHvL7oQfdFxQ", "sequence": 1,
        "not_before": "2026-11-30T11:59:00Z", "not_after": "2026-11-30T12:09:00Z"
    })
}

#[test]
fn each_member_of_a_payload_must_be_there_and_of_its_type() {
    assert!(Command::from_payload(&payload(), Some(600)).is_ok());
    for name in payload().as_object().unwrap().keys() {
        let mut without = payload();
        without.as_object_mut().unwrap().remove(name);
        let error = Command::from_payload(&without, Some(600)).unwrap_err();
        assert_eq!(error.to_string(), format!("payload.{name}: missing"));
        for other in [json!(null), json!(0.5), json!([]), json!(true), json!({"x": 1}), json!("")] {
            if (name == "arguments" && other.is_object()) || (name == "operation" && other.is_string()) {
                continue;
            }
            let mut changed = payload();
            changed[name] = other;
            assert!(Command::from_payload(&changed, Some(600)).is_err(), "{changed}");
        }
    }
    assert!(Command::from_payload(&json!([payload()]), Some(600)).is_err());
}

#[test]
fn a_window_may_be_as_long_as_the_configuration_says_and_no_longer() {
    assert!(Command::from_payload(&payload(), Some(600)).is_ok());
    assert!(Command::from_payload(&payload(), Some(599)).is_err());
    assert!(Command::from_payload(&payload(), None).is_ok());
    let mut instant = payload();
    instant["not_after"] = instant["not_before"].clone();
    assert!(Command::from_payload(&instant, Some(1)).is_ok());
}

#[test]
fn a_receipt_has_the_members_of_the_contract_and_comes_back_the_same() {
    let command = Command::from_payload(&payload(), None).unwrap();
    let receipt = Receipt::succeeded(&stamp(), &command, json!({"name": "a"})).with_message("");
    let text = serde_json::to_string(&receipt).unwrap();
    assert_eq!(
        text,
        r#"{"type":"navin.receipt/v1","command_id":"c5cefdd8-0273-45c9-821e-7a607108e022","nonce":"qJfFJSYuanwHvL7oQfdFxQ","tenant_id":"acme","cluster_id":"prod-eu-1","status":"succeeded","result":{"name":"a"},"recorded":true,"executed_at":"2026-11-30T12:00:00Z","replica":"agent-0","source":"inbox"}"#
    );
    let refusal = Refusal::of(&command, Reason::NonceReplayed, "seen");
    let replayed = Receipt::refused(&stamp(), &refusal, false, Some(receipt.clone()));
    let text = serde_json::to_string(&replayed).unwrap();
    assert_eq!(serde_json::from_str::<Receipt>(&text).unwrap(), replayed);
    assert!(text.contains(r#""reason":"nonce_replayed""#));
}

#[test]
fn a_message_is_cut_at_a_characters_end_and_has_no_control_characters() {
    let command = Command::from_payload(&payload(), None).unwrap();
    let text = format!("a\n{}", "€".repeat(1000));
    let message = Receipt::failed(&stamp(), &command, Reason::KubernetesRefused, &text).message.unwrap();
    assert!(message.starts_with("a €"));
    assert_eq!(message.len(), 1022);
}

#[test]
fn every_reason_is_written_as_its_code() {
    let code = serde_json::to_value(Reason::KubernetesUnavailable).unwrap();
    assert_eq!(code, Reason::KubernetesUnavailable.as_str());
}

#[test]
fn debug_output_never_shows_arguments() {
    let mut secret = payload();
    secret["arguments"]["spec"] = json!({"password": "canary"});
    let command = Command::from_payload(&secret, None).unwrap();
    let operation = Operation::of(&command).unwrap();
    assert!(!format!("{command:?}{operation:?}").contains("canary"));
}
