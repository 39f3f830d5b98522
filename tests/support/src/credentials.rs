//! Keys, tokens and hashes that a test cluster needs, fresh for each.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};

/// The beginning of a `SubjectPublicKeyInfo` of P-256 (RFC 5480); the point follows.
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A key pair for service account tokens as PEM: private (PKCS #8), public (SPKI).
pub(crate) fn signing_key() -> (String, String) {
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let private = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a new key");
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref(), &random).expect("the key just made");
    let public = [&P256_SPKI, pair.public_key().as_ref()].concat();
    (pem("PRIVATE KEY", private.as_ref()), pem("PUBLIC KEY", &public))
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    let body = STANDARD.encode(der);
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text + &format!("-----END {label}-----\n")
}

/// 128 random bits in hexadecimal.
pub(crate) fn random_token() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect("random bytes");
    hex(&bytes)
}

/// Tells contents apart: 64 bits of SHA-256 in hexadecimal.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref().split_at(8).0)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string");
        text
    })
}
