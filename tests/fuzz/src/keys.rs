//! Whom the agent trusts here: the keys of `tests/vectors/envelopes.json`, of which only what the vectors hold was
//! ever signed, and a key of our own, which signs whatever a check brings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_compact::{KeyPair, Noise, Seed};
use navin_cluster_agent::rules::config::Configuration;
use navin_cluster_agent::rules::envelope::KeyRing;
use navin_cluster_agent::rules::verdict::Trust;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// What stands before the key in the DER of an Ed25519 SPKI. RFC 8410 section 4.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The vectors: envelopes with their verdicts.
static VECTORS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../vectors/envelopes.json")).expect("the vectors are JSON")
});

/// The key that signs here.
static KEY: LazyLock<KeyPair> = LazyLock::new(|| KeyPair::from_seed(Seed::new([7; 32])));

/// The keys of the vectors, and their configuration.
pub static VECTORS_TRUST: LazyLock<Trust> = LazyLock::new(|| {
    let pem = VECTORS["manager_pem"].as_str().expect("a key ring");
    trust(pem, &VECTORS["config"])
});

/// Our own key, and the configuration of the vectors signed with it.
pub static OWN_TRUST: LazyLock<Trust> =
    LazyLock::new(|| trust(&pem(KEY.pk.as_ref()), &sign(&VECTORS["config"]["payload"])));

/// The canonical form of all that the keys of the vectors have signed.
static SIGNED: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let unsigned = ["invalid_envelope", "unknown_key", "invalid_signature"];
    let cases = VECTORS["cases"].as_array().expect("cases").iter();
    let signed = cases.filter(|case| !unsigned.iter().any(|reason| case["expect"]["reason"] == **reason));
    let wires = signed.map(wire).map(|wire| serde_json::from_slice(&wire).expect("a signed case is JSON"));
    wires.chain([VECTORS["config"].clone()]).map(|envelope| form(&envelope)).collect()
});

/// The bytes of every case.
pub fn wires() -> impl Iterator<Item = Vec<u8>> {
    VECTORS["cases"].as_array().expect("cases").iter().map(wire)
}

/// Whether the keys of the vectors have signed this envelope.
#[must_use]
pub fn was_signed(envelope: &Value) -> bool {
    SIGNED.contains(&form(envelope))
}

/// Signs a payload with our own key.
#[must_use]
pub fn sign(payload: &Value) -> Value {
    let signature = KEY.sk.sign(form(payload).as_bytes(), None::<Noise>);
    json!({
        "payload": payload,
        "key_id": hex(KEY.pk.as_ref()),
        "signature": STANDARD.encode(signature.as_ref()),
    })
}

/// A public key as a block of `manager.pem`.
#[must_use]
pub fn pem(key: &[u8]) -> String {
    let body = STANDARD.encode([&SPKI_PREFIX, key].concat());
    format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
}

fn wire(case: &Value) -> Vec<u8> {
    STANDARD.decode(case["wire_b64"].as_str().expect("a wire")).expect("base64")
}

fn form(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).expect("a value has a canonical form")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn trust(pem: &str, config: &Value) -> Trust {
    let ring = KeyRing::from_pem(pem).expect("a key ring");
    let config = Configuration::open(config.to_string().as_bytes(), &ring).expect("a configuration");
    Trust { ring, config: config.into_value() }
}
