//! The manager's public keys, and the strict verification of a signature. CONTRACT section 2.
//!
//! A signature counts where both verifiers accept it; no ring is empty, or holds a weak key.

use crate::rules::names::{KeyId, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, UnparsedPublicKey};
use std::collections::BTreeMap;
use std::fmt;

/// Length of a signature.
pub(super) const SIGNATURE_BYTES: usize = ed25519_compact::Signature::BYTES;

/// Length of a public key.
const KEY_BYTES: usize = ed25519_compact::PublicKey::BYTES;

/// What stands before the key in the DER of an Ed25519 SPKI. RFC 8410 section 4.
pub(super) const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Longest part of a foreign label that is told.
const LABEL_CHARACTERS: usize = 40;

/// The public keys of the manager that are trusted: all of `manager.pem`. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRing(BTreeMap<KeyId, [u8; KEY_BYTES]>);

/// Why `manager.pem` is refused. CONTRACT section 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyRingError {
    /// There is no block in it.
    Empty,
    /// A block that is not a `PUBLIC KEY`, with its label.
    Label(String),
    /// A block that is cut short, ends twice, or is not base64.
    Malformed,
    /// A `PUBLIC KEY` that is not an Ed25519 SPKI.
    NotEd25519,
    /// A key that no signature of the strict kind can be made for: not a point, or of small order.
    WeakKey,
}

impl fmt::Display for KeyRingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("expected a PUBLIC KEY block, found none"),
            Self::Label(label) => write!(f, "expected PUBLIC KEY blocks only, found {label:?}"),
            Self::Malformed => f.write_str("a PEM block is cut short or not base64"),
            Self::NotEd25519 => f.write_str("a PUBLIC KEY is not an Ed25519 key"),
            Self::WeakKey => f.write_str("a PUBLIC KEY is not a valid Ed25519 point"),
        }
    }
}

impl KeyRing {
    /// Reads one or more `PUBLIC KEY` blocks. Text between the blocks is a comment.
    ///
    /// # Errors
    /// No block, any other block, or a key that is not a good Ed25519 key.
    pub fn from_pem(text: &str) -> Result<Self, KeyRingError> {
        let mut keys = BTreeMap::new();
        let mut block: Option<String> = None;
        for line in text.lines().map(str::trim) {
            block = match (block, boundary(line)) {
                (None, None) => None,
                (None, Some(Boundary::Begin("PUBLIC KEY"))) => Some(String::new()),
                (None, Some(Boundary::Begin(label))) => {
                    return Err(KeyRingError::Label(label.chars().take(LABEL_CHARACTERS).collect()));
                }
                (Some(body), None) => Some(body + line),
                (Some(body), Some(Boundary::End("PUBLIC KEY"))) => {
                    let (id, key) = read_key(&body)?;
                    keys.insert(id, key);
                    None
                }
                (None | Some(_), Some(Boundary::Begin(_) | Boundary::End(_))) => {
                    return Err(KeyRingError::Malformed);
                }
            };
        }
        match (block, keys.is_empty()) {
            (Some(_), _) => Err(KeyRingError::Malformed),
            (None, true) => Err(KeyRingError::Empty),
            (None, false) => Ok(Self(keys)),
        }
    }

    /// The keys by name.
    pub fn ids(&self) -> impl Iterator<Item = &KeyId> {
        self.0.keys()
    }

    pub(super) fn get(&self, id: &KeyId) -> Option<&[u8; KEY_BYTES]> {
        self.0.get(id)
    }
}

enum Boundary<'t> {
    Begin(&'t str),
    End(&'t str),
}

fn boundary(line: &str) -> Option<Boundary<'_>> {
    let inner = line.strip_prefix("-----")?.strip_suffix("-----")?;
    match inner.split_once(' ')? {
        ("BEGIN", label) => Some(Boundary::Begin(label)),
        ("END", label) => Some(Boundary::End(label)),
        _ => None,
    }
}

fn read_key(body: &str) -> Result<(KeyId, [u8; KEY_BYTES]), KeyRingError> {
    let der = STANDARD.decode(body).map_err(|_| KeyRingError::Malformed)?;
    let bytes = der.strip_prefix(&SPKI_PREFIX).ok_or(KeyRingError::NotEd25519)?;
    let key: [u8; KEY_BYTES] = bytes.try_into().map_err(|_| KeyRingError::NotEd25519)?;
    ed25519_compact::PublicKey::new(key).validate().map_err(|_| KeyRingError::WeakKey)?;
    let id = KeyId::parse(&hex(&key)).ok_or(KeyRingError::WeakKey)?;
    Ok((id, key))
}

/// Strict verification: both verifiers accept. compact refuses what is not canonical or of small
/// order, ring what only the cofactored equation accepts. CONTRACT section 2.
pub(super) fn verifies(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let compact = match (
        ed25519_compact::PublicKey::from_slice(key),
        ed25519_compact::Signature::from_slice(signature),
    ) {
        (Ok(key), Ok(signature)) => key.verify(message, &signature).is_ok(),
        (Ok(_) | Err(_), _) => false,
    };
    compact && UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
}
