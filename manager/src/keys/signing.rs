//! The manager's Ed25519 key, and what is signed with it. CONTRACT section 2.
//!
//! Only the seed is ever used to sign: the public key is derived from it, so no foreign one can be
//! mixed in. Every envelope is opened with the agent's own rules before it leaves this file.

use crate::process::failure::Failure;
use crate::process::files;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use navin_cluster_agent::rules::config::Configuration;
use navin_cluster_agent::rules::envelope::{KeyRing, open_command};
use navin_cluster_agent::rules::json;
use navin_cluster_agent::rules::messages::Operation;
use navin_cluster_agent::rules::names::hex;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::path::Path;

/// What stands before the seed in the DER of an Ed25519 private key. RFC 8410 section 7.
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// What stands before the key in the DER of an Ed25519 public key. RFC 8410 section 4.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The signing key with what the agents know of it.
pub(crate) struct Signer {
    key: Ed25519KeyPair,
    key_id: String,
    keys: KeyRing,
    manager_pem: String,
}

/// Why something was not signed: the agent would refuse it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsignable {
    /// More bytes than an envelope may have.
    #[error("the envelope would be above 256 KiB")]
    TooLarge,
    /// Refused for another reason.
    #[error("{0}")]
    Refused(String),
}

impl Signer {
    /// Opens `signing.key` and `manager.pem`, which are made where they are not there.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        let key_path = folder.join("signing.key");
        let pem_path = folder.join("manager.pem");
        let key_text = match (files::read_text(&key_path)?, files::is_there(&pem_path)?) {
            (Some(text), _) => text,
            (None, true) => return Err(Failure::misfit(&key_path, "missing, while manager.pem is there")),
            (None, false) => make_key(&key_path)?,
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(key_text.as_bytes())
            .map_err(|_| Failure::misfit(&key_path, "not a PRIVATE KEY in PEM"))?;
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
            .map_err(|_| Failure::misfit(&key_path, "not an Ed25519 key in PKCS#8"))?;
        let public = key.public_key().as_ref();
        let manager_pem = if let Some(text) = files::read_text(&pem_path)? {
            text
        } else {
            let text = pem("PUBLIC KEY", &[&SPKI_PREFIX, public].concat());
            files::replace(&pem_path, text.as_bytes(), files::PUBLIC)?;
            text
        };
        let keys = KeyRing::from_pem(&manager_pem)
            .map_err(|error| Failure::misfit(&pem_path, &error.to_string()))?;
        let key_id = hex(public);
        if !keys.ids().any(|id| id.as_str() == key_id) {
            return Err(Failure::misfit(&pem_path, "does not hold the public key of signing.key"));
        }
        Ok(Self { key, key_id, keys, manager_pem })
    }

    /// The public keys that agents trust, as PEM.
    pub(crate) fn manager_pem(&self) -> &str {
        &self.manager_pem
    }

    /// Signs a command; gives back its envelope, and what an agent reads in it. `max_validity_s` is the longest window
    /// that the agent takes.
    pub(crate) fn command(
        &self,
        payload: &Value,
        max_validity_s: u64,
    ) -> Result<(String, Operation), Unsignable> {
        let envelope = self.sign(payload)?;
        let command = open_command(envelope.as_bytes(), &self.keys, max_validity_s)
            .map_err(|refusal| Unsignable::Refused(refusal.message))?;
        match Operation::of(command.value()) {
            Ok(operation) => Ok((envelope, operation)),
            Err(refusal) => Err(Unsignable::Refused(refusal.message)),
        }
    }

    /// Signs a configuration.
    pub(crate) fn configuration(&self, payload: &Value) -> Result<String, Unsignable> {
        let envelope = self.sign(payload)?;
        match Configuration::open(envelope.as_bytes(), &self.keys) {
            Ok(_) => Ok(envelope),
            Err(error) => Err(Unsignable::Refused(error.to_string())),
        }
    }

    fn sign(&self, payload: &Value) -> Result<String, Unsignable> {
        let signature = self.key.sign(json::canonical(payload).as_bytes());
        let envelope = json::canonical(&json!({
            "payload": payload,
            "key_id": self.key_id,
            "signature": STANDARD.encode(signature.as_ref()),
        }));
        if envelope.len() > json::MAX_ENVELOPE_BYTES { Err(Unsignable::TooLarge) } else { Ok(envelope) }
    }
}

fn make_key(path: &Path) -> Result<String, Failure> {
    let seed: [u8; 32] = random()?;
    let text = pem("PRIVATE KEY", &[PKCS8_PREFIX.as_slice(), &seed].concat());
    files::replace(path, text.as_bytes(), files::PRIVATE)?;
    tracing::warn!(file = %path.display(), "made a new signing key: no agent trusts it before an identity is issued and applied");
    Ok(text)
}

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Failure::System("the system gives no random bytes".to_owned())),
    }
}

/// Random bytes of the system as base64url without padding.
pub(crate) fn random_text<const N: usize>() -> Result<String, Failure> {
    Ok(URL_SAFE_NO_PAD.encode(random::<N>()?))
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// One PEM block, lines of 64 characters (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
