//! A manager's Ed25519 key, and what is signed with it as the manager would (CONTRACT section 2), or never would.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::credentials::{hex, pem};

/// What stands before the key in the DER of an Ed25519 SPKI (RFC 8410 section 4).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A key that signs.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// That of a seed of this byte alone.
    pub fn of_seed(byte: u8) -> Self {
        Self(Ed25519KeyPair::from_seed_unchecked(&[byte; 32]).expect("a seed is a key"))
    }

    /// A key that no agent was told of.
    pub fn of_nobody() -> Self {
        Self::of_seed(2)
    }

    /// That of a manager, as `signing.key` has it.
    pub fn of_pem(text: &str) -> Self {
        let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
        let der = STANDARD.decode(body).expect("PEM holds base64");
        Self(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).expect("an Ed25519 key"))
    }

    /// Its public half: 32 bytes.
    pub fn public(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    /// The same as `manager.pem` has it.
    pub fn public_pem(&self) -> String {
        pem("PUBLIC KEY", &[&SPKI, self.public()].concat())
    }

    /// The signature of a text.
    pub fn signature(&self, text: &str) -> Vec<u8> {
        self.0.sign(text.as_bytes()).as_ref().to_vec()
    }

    /// The envelope of a payload; its canonical form (RFC 8785) is the caller's, who knows how the agent writes it.
    pub fn envelope(&self, payload: &Value, canonical: &str) -> Value {
        let signature = STANDARD.encode(self.signature(canonical));
        json!({ "payload": payload, "key_id": hex(self.public()), "signature": signature })
    }
}
