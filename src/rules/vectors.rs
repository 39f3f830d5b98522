//! The test vectors of `tests/vectors`, for the unit tests of this module.

use super::config::Configuration;
use super::envelope::{KeyRing, Verified, open_command};
use super::messages::{Command, Source, Stamp};
use super::names::parse_time;
use super::verdict::Trust;
use serde_json::Value;

pub(crate) fn load(file: &str) -> Value {
    let path = format!("{}/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn base64(text: &Value) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap()
}

/// The public key of [`sign`] as PEM.
pub(crate) fn test_pem() -> String {
    use base64::Engine;
    let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    der.extend_from_slice(test_key().pk.as_ref());
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
}

/// Signs a payload as the manager does.
pub(crate) fn sign(payload: &Value) -> Value {
    use base64::Engine;
    let key = test_key();
    let signature = key.sk.sign(super::json::canonical(payload), None);
    let key_id: String = key.pk.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let signature = base64::engine::general_purpose::STANDARD.encode(signature.as_ref());
    serde_json::json!({"payload": payload, "key_id": key_id, "signature": signature})
}

/// A signed configuration with the gateway at this address.
pub(crate) fn configuration(gateway_url: &str) -> Value {
    sign(&serde_json::json!({
        "type": "navin.agent-config/v1", "tenant_id": "acme", "cluster_id": "prod-eu-1",
        "identity_id": "c5cefdd8-0273-45c9-821e-000000000000", "gateway_url": gateway_url,
        "namespace": "navin-platform", "issued_at": "2026-11-30T11:00:00Z"
    }))
}

/// The trust of an agent that has it.
pub(crate) fn trust() -> Trust {
    let ring = KeyRing::from_pem(&test_pem()).unwrap();
    let config = configuration("https://manager.example").to_string();
    let config = Configuration::open(config.as_bytes(), &ring).unwrap().into_value();
    Trust { ring, config }
}

/// The payload of an apply of `name` with a sequence, which makes its nonce and identifier too.
pub(crate) fn apply(name: &str, sequence: u64, spec: &Value) -> Value {
    serde_json::json!({
        "type": "navin.command/v1", "command_id": format!("c5cefdd8-0273-45c9-821e-{sequence:012}"),
        "tenant_id": "acme", "target": {"kind": "cluster", "id": "prod-eu-1"},
        "operation": "managedcomponent.apply", "arguments": {"name": name, "spec": spec},
        "nonce": format!("nonce-of-the-test-{sequence:06}"), "sequence": sequence,
        "not_before": "2026-11-30T11:59:00Z", "not_after": "2026-11-30T12:09:00Z"
    })
}

/// The payload of a delete, as [`apply`].
pub(crate) fn delete(name: &str, sequence: u64) -> Value {
    let mut payload = apply(name, sequence, &Value::Null);
    payload["operation"] = "managedcomponent.delete".into();
    payload["arguments"] = serde_json::json!({"name": name});
    payload
}

/// The command of a payload, signed and opened.
pub(crate) fn open(payload: &Value) -> Verified<Command> {
    open_command(sign(payload).to_string().as_bytes(), &trust().ring, 604_800).unwrap()
}

/// What a receipt of the agent of [`trust`] says about who gave it, at noon.
pub(crate) fn stamp(source: Source) -> Stamp {
    let config = trust().config;
    Stamp {
        tenant_id: config.tenant_id,
        cluster_id: config.cluster_id,
        replica: "agent-0".into(),
        source,
        executed_at: parse_time("2026-11-30T12:00:00Z").unwrap(),
    }
}

fn test_key() -> ed25519_compact::KeyPair {
    ed25519_compact::KeyPair::from_seed(ed25519_compact::Seed::new([7; 32]))
}
