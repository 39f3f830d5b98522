//! Commands as the manager would never sign them, signed with its own key, or another's.

use jiff::{SignedDuration, Timestamp};
use navin_cluster_agent::rules::json::canonical;
use navin_test_support::{SigningKey, World};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// An Ed25519 key, and who is addressed in what it signs.
pub(crate) struct Signer {
    key: SigningKey,
    tenant_id: String,
    cluster_id: String,
}

impl Signer {
    /// The manager's key.
    pub(crate) fn of_manager(world: &World) -> Self {
        let pem = fs::read_to_string(world.manager.data().join("tls/signing.key")).expect("the signing key");
        Self::with(world, SigningKey::of_pem(&pem))
    }

    /// A key that no agent was told of.
    pub(crate) fn of_nobody(world: &World) -> Self {
        Self::with(world, SigningKey::of_nobody())
    }

    fn with(world: &World, key: SigningKey) -> Self {
        Self { key, tenant_id: world.tenant_id().to_owned(), cluster_id: world.cluster_id().to_owned() }
    }

    /// A payload that is good in every respect, to be signed as it is or after a change.
    pub(crate) fn payload(&self, operation: &str, sequence: u64, arguments: &Value) -> Value {
        json!({
            "type": "navin.command/v1",
            "command_id": unique("00000000-0000-4000-8000-", 12),
            "tenant_id": self.tenant_id,
            "target": { "kind": "cluster", "id": self.cluster_id },
            "operation": operation,
            "arguments": arguments,
            "nonce": unique("nonce-", 20),
            "sequence": sequence,
            "not_before": seconds_from_now(-60),
            "not_after": seconds_from_now(900),
        })
    }

    /// The payload of an apply.
    pub(crate) fn apply(&self, name: &str, sequence: u64, spec: &Value) -> Value {
        self.payload("managedcomponent.apply", sequence, &json!({ "name": name, "spec": spec }))
    }

    /// The payload of a delete.
    pub(crate) fn delete(&self, name: &str, sequence: u64) -> Value {
        self.payload("managedcomponent.delete", sequence, &json!({ "name": name }))
    }

    /// The payload of an `inventory.report`.
    pub(crate) fn inventory(&self, sequence: u64) -> Value {
        self.payload("inventory.report", sequence, &json!({}))
    }

    /// The envelope.
    pub(crate) fn sign(&self, payload: &Value) -> Value {
        self.key.envelope(payload, &canonical(payload))
    }
}

/// A time of the contract's form.
pub(crate) fn seconds_from_now(seconds: i64) -> String {
    let time = Timestamp::now().checked_add(SignedDuration::from_secs(seconds)).expect("a time near now");
    format!("{time:.0}")
}

/// `prefix` and a number of this process, padded: unique in the world of a scenario.
fn unique(prefix: &str, digits: usize) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}{:0digits$}", NEXT.fetch_add(1, Ordering::Relaxed))
}
