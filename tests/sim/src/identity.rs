//! The manager's key and the identity of the one cluster, made once and shared by all runs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_compact::{KeyPair as SigningKey, Noise, Seed};
use navin_cluster_agent::identity::Identity;
use navin_cluster_agent::rules::json::canonical;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The managed namespace.
pub const NAMESPACE: &str = "navin-platform";
/// The tenant of the cluster.
pub const TENANT: &str = "acme";
/// The cluster.
pub const CLUSTER: &str = "prod-eu-1";
/// `max_validity_s` of the configuration.
pub const MAX_VALIDITY_S: i64 = 3_600;

/// The times of a configuration, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// `lease_duration_s`
    pub lease_s: u64,
    /// `offline_after_s`
    pub offline_s: u64,
    /// `report_interval_s`
    pub report_s: u64,
}

/// The configurations that seeds choose from.
pub const SETTINGS: [Settings; 3] = [
    Settings { lease_s: 15, offline_s: 120, report_s: 300 },
    Settings { lease_s: 6, offline_s: 30, report_s: 60 },
    Settings { lease_s: 30, offline_s: 60, report_s: 300 },
];

/// Identities for [`SETTINGS`], loaded by the agent's own code.
static IDENTITIES: LazyLock<Vec<Arc<Identity>>> =
    LazyLock::new(|| SETTINGS.iter().map(|settings| Arc::new(issue(settings))).collect());

/// The identity with the settings of this index.
#[must_use]
pub fn identity(index: usize) -> Arc<Identity> {
    Arc::clone(&IDENTITIES[index])
}

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(Seed::new([number; 32]))
}

static MANAGER: LazyLock<SigningKey> = LazyLock::new(|| key(1));
static NOBODY: LazyLock<SigningKey> = LazyLock::new(|| key(2));

/// Signs as the manager.
#[must_use]
pub fn sign(payload: &Value) -> Value {
    sign_with(&MANAGER, payload)
}

/// Signs with a key that no agent was told of.
#[must_use]
pub fn sign_as_nobody(payload: &Value) -> Value {
    sign_with(&NOBODY, payload)
}

fn sign_with(key: &SigningKey, payload: &Value) -> Value {
    let signature = key.sk.sign(canonical(payload).as_bytes(), None::<Noise>);
    let key_id = key.pk.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    json!({ "payload": payload, "key_id": key_id, "signature": STANDARD.encode(signature.as_ref()) })
}

fn issue(settings: &Settings) -> Identity {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), settings);
    match Identity::load(folder.path()) {
        Ok(identity) => identity,
        Err(error) => panic!("{error}"),
    }
}

fn write(folder: &Path, settings: &Settings) {
    let put = |name: &str, text: String| fs::write(folder.join(name), text).expect("a file of the identity");
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::new(Vec::new()).expect("parameters");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    put("ca.crt", ca.self_signed(&ca_key).expect("a certificate").pem());
    let issuer = Issuer::new(ca, ca_key);
    let client_key = KeyPair::generate().expect("a key");
    let client = CertificateParams::new(vec!["agent".to_owned()]).expect("parameters");
    put("tls.crt", client.signed_by(&client_key, &issuer).expect("a certificate").pem());
    put("tls.key", client_key.serialize_pem());
    let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    der.extend_from_slice(MANAGER.pk.as_ref());
    let body = STANDARD.encode(der);
    put("manager.pem", format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n"));
    let config = json!({
        "type": "navin.agent-config/v1", "tenant_id": TENANT, "cluster_id": CLUSTER,
        "identity_id": "86b31929-be9d-481e-81ae-46c379187c17",
        "gateway_url": "https://manager.example", "namespace": NAMESPACE,
        "lease_duration_s": settings.lease_s, "offline_after_s": settings.offline_s, "poll_wait_s": 30,
        "report_interval_s": settings.report_s, "max_validity_s": MAX_VALIDITY_S,
        "issued_at": "2026-11-30T11:59:00Z",
    });
    put("config.json", sign(&config).to_string());
}
