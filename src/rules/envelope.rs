//! The signed envelope: the one place where trust begins. CONTRACT section 2.
//!
//! [`Verified`] is made at one site, in `open`, after these checks in this order: strict JSON, the
//! form of the envelope and of its payload, a key of the ring, a signature over the canonical
//! payload that two independent verifiers accept.

use super::form::{FormError, Members, expected};
use super::json::derived::Raw;
use super::json::{self, JsonError, MAX_ENVELOPE_BYTES};
use super::messages::{Command, Reason, Refusal};
use super::names::{CommandId, KeyId, Nonce};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::fmt;

mod keys;
#[cfg(test)]
mod tests;

pub use keys::{KeyRing, KeyRingError};

/// Largest envelope that is read back from the state, in bytes: the state itself is smaller. The
/// canonical form may be longer than the wire's, which wrote `9E14` for a number of 15 digits.
const MAX_STORED_BYTES: usize = 1024 * 1024;

/// What was signed by the manager, in the right form. Nothing else makes one.
#[derive(Clone, PartialEq)]
pub struct Verified<T> {
    value: T,
    envelope: Raw,
}

impl<T> Verified<T> {
    /// What was signed.
    #[must_use]
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The envelope, to be stored and verified again. Its payload is what was signed, byte by byte.
    #[must_use]
    pub fn envelope(&self) -> &Raw {
        &self.envelope
    }

    /// What was signed, without the proof.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }
}

impl Verified<Command> {
    /// Drops what the operation has taken over; the envelope has it still.
    pub(super) fn forget_arguments(&mut self) {
        self.value.arguments.clear();
    }
}

/// Without the envelope, which may hold anything.
impl<T: fmt::Debug> fmt::Debug for Verified<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Verified").field(&self.value).finish()
    }
}

/// Why an envelope is not trusted, in the order of checks. CONTRACT section 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not strict JSON.
    Json(JsonError),
    /// Not of the form of the envelope or its payload.
    Form(FormError),
    /// Signed by a key that is not in the ring.
    UnknownKey,
    /// The signature does not verify.
    Signature,
}

impl Fault {
    /// The reason code of it.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::Json(_) | Self::Form(_) => Reason::InvalidEnvelope,
            Self::UnknownKey => Reason::UnknownKey,
            Self::Signature => Reason::InvalidSignature,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not strict JSON: {error}"),
            Self::Form(error) => error.fmt(f),
            Self::UnknownKey => f.write_str("key_id: not a trusted key of the manager"),
            Self::Signature => f.write_str("signature: does not verify"),
        }
    }
}

/// Opens a command as it came over the wire. `max_validity_s` is the configuration's.
///
/// # Errors
/// `invalid_envelope`, `unknown_key` or `invalid_signature`, in that order.
pub fn open_command(bytes: &[u8], ring: &KeyRing, max_validity_s: u64) -> Result<Verified<Command>, Refusal> {
    let read = |payload: &Value| Command::from_payload(payload, Some(max_validity_s));
    refuse(open(bytes, MAX_ENVELOPE_BYTES, ring, read))
}

/// Opens a command that was accepted before, from the state. Its window was judged at acceptance,
/// with the `max_validity_s` of then.
///
/// # Errors
/// As [`open_command`].
pub fn reopen_command(envelope: &Raw, ring: &KeyRing) -> Result<Verified<Command>, Refusal> {
    let bytes = envelope.text().as_bytes();
    refuse(open(bytes, MAX_STORED_BYTES, ring, |payload| Command::from_payload(payload, None)))
}

fn refuse(opened: Result<Verified<Command>, Rejected>) -> Result<Verified<Command>, Refusal> {
    opened.map_err(|Rejected { fault, ids }| Refusal {
        reason: fault.reason(),
        message: fault.to_string(),
        ids,
    })
}

/// A fault, and whom to answer about it.
pub(super) struct Rejected {
    pub(super) fault: Fault,
    ids: Option<(CommandId, Nonce)>,
}

/// The one path from bytes to trust, for commands and configurations alike.
pub(super) fn open<T>(
    bytes: &[u8],
    max_bytes: usize,
    ring: &KeyRing,
    read: impl Fn(&Value) -> Result<T, FormError>,
) -> Result<Verified<T>, Rejected> {
    let document =
        json::parse(bytes, max_bytes).map_err(|error| Rejected { fault: Fault::Json(error), ids: None })?;
    let reject = |fault| Rejected { fault, ids: readable_ids(&document) };
    let parts = Parts::of(&document).map_err(|error| reject(Fault::Form(error)))?;
    let value = read(parts.payload).map_err(|error| reject(Fault::Form(error)))?;
    let key = ring.get(&parts.key_id).ok_or_else(|| reject(Fault::UnknownKey))?;
    let signed = json::canonical(parts.payload);
    if !keys::verifies(key, signed.as_bytes(), &parts.signature) {
        return Err(reject(Fault::Signature));
    }
    let (key_id, signature) = (parts.key_id.as_str(), STANDARD.encode(&parts.signature));
    let envelope = format!(r#"{{"key_id":"{key_id}","payload":{signed},"signature":"{signature}"}}"#);
    let envelope = Raw::new(envelope).ok_or_else(|| reject(Fault::Json(JsonError::Syntax)))?;
    Ok(Verified { value, envelope })
}

/// The parts of an envelope, in the right form.
struct Parts<'v> {
    payload: &'v Value,
    key_id: KeyId,
    signature: Vec<u8>,
}

impl<'v> Parts<'v> {
    fn of(document: &'v Value) -> Result<Self, FormError> {
        let mut members = Members::of("envelope", document)?;
        let payload = members.value("payload")?;
        let key_id = members.parsed("key_id", KeyId::parse, "64 lower-case hexadecimal digits")?;
        // The engine refuses a missing padding, and bits that no byte holds.
        let signature = STANDARD.decode(members.text("signature")?).ok();
        members.end()?;
        match signature {
            Some(signature) if signature.len() == keys::SIGNATURE_BYTES => {
                Ok(Self { payload, key_id, signature })
            }
            Some(_) | None => Err(expected("signature", "64 bytes in standard base64")),
        }
    }
}

/// Whom a receipt would be for, whatever else is wrong.
fn readable_ids(document: &Value) -> Option<(CommandId, Nonce)> {
    let payload = document.get("payload")?;
    let command_id = CommandId::parse(payload.get("command_id")?.as_str()?)?;
    let nonce = Nonce::parse(payload.get("nonce")?.as_str()?)?;
    Some((command_id, nonce))
}
