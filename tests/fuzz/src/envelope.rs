//! The one place where trust begins.
//!
//! - Nothing opens but what was signed: of arbitrary bytes, what the vectors hold, member for member.
//! - A payload that we sign opens exactly where it has the form of a command, as the very payload; and no
//!   configuration opens as a command.
//! - A signed envelope with one bit flipped opens as nothing else.
//! - What may run is ours, in its window, of an operation that we know, and offline of one that only reads.
//! - A nonce that is accepted is under way, one that is done is replayed; each state of it can be read again.
//! - Every refusal has a receipt that can be read again, with a message of at most 1,024 bytes.

use crate::keys::{OWN_TRUST, VECTORS_TRUST, sign, was_signed};
use jiff::Timestamp;
use navin_cluster_agent::rules::config::Configuration;
use navin_cluster_agent::rules::envelope::{Verified, open_command, reopen_command};
use navin_cluster_agent::rules::json::{MAX_ENVELOPE_BYTES, parse};
use navin_cluster_agent::rules::link::Link;
use navin_cluster_agent::rules::messages::{Command, Reason, Receipt, Refusal, Source, Stamp};
use navin_cluster_agent::rules::state::{Effect, State};
use navin_cluster_agent::rules::verdict::{Accepted, Refused, Verdict, Why, judge, reverify};
use serde_json::Value;

/// Now, in the window of the vectors.
pub const NOW: &str = "2026-11-30T12:00:00Z";

/// Checks bytes as an envelope, and as a payload that is signed.
pub fn check(bytes: &[u8]) {
    opens_only_what_was_signed(bytes);
    if let Ok(payload) = parse(bytes, MAX_ENVELOPE_BYTES) {
        signed(&payload, bytes);
    }
}

/// Nothing is verified but what the vectors hold.
pub fn opens_only_what_was_signed(bytes: &[u8]) {
    let trust = &*VECTORS_TRUST;
    match open_command(bytes, &trust.ring, trust.config.max_validity_s) {
        Ok(opened) => assert!(was_signed(&value(&opened)), "a forgery was opened"),
        Err(refusal) => readable(&Refused { refusal, record: None, original: None }),
    }
    if let Ok(opened) = Configuration::open(bytes, &trust.ring) {
        assert!(was_signed(&value(&opened)), "a forged configuration was opened");
    }
}

/// The same payload, signed.
fn signed(payload: &Value, bytes: &[u8]) {
    let trust = &*OWN_TRUST;
    let envelope = sign(payload);
    let wire = envelope.to_string().into_bytes();
    let command = Command::from_payload(payload, Some(trust.config.max_validity_s)).ok();
    let opened = open_command(&wire, &trust.ring, trust.config.max_validity_s).ok();
    // The envelope nests by one more than the payload, and is longer.
    let taken = parse(&wire, MAX_ENVELOPE_BYTES).is_ok();
    assert_eq!(opened.as_ref().map(Verified::value), command.as_ref().filter(|_| taken));
    let Some(opened) = opened else {
        assert!(!matches!(judged(&wire, &State::new(1, "a"), Link::Online), Verdict::Run(_)));
        return;
    };
    assert_eq!(value(&opened), envelope, "opened as something else");
    assert!(Configuration::open(&wire, &trust.ring).is_err(), "a command opened as a configuration");
    assert!(reopen_command(opened.envelope(), &trust.ring).is_ok_and(|again| again == opened));
    flipped(&wire, &envelope, bytes);
    for link in [Link::Online, Link::Offline, Link::Connecting] {
        match judged(&wire, &State::new(1, "a"), link) {
            Verdict::Run(accepted) => runs(&wire, payload, &accepted, link),
            Verdict::Refuse(refused) => readable(&refused),
            Verdict::Later(Why::Connecting) => assert_eq!(link, Link::Connecting),
            verdict @ (Verdict::UnderWay(_) | Verdict::Later(Why::NameBusy | Why::Full)) => {
                panic!("{verdict:?} in an empty state")
            }
        }
    }
}

fn judged(wire: &[u8], state: &State, link: Link) -> Verdict {
    judge(wire, &OWN_TRUST, state, link, now())
}

/// What is kept of what was opened.
fn value<T>(opened: &Verified<T>) -> Value {
    parse(opened.envelope().text().as_bytes(), usize::MAX).expect("strict JSON")
}

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

/// One bit of it, chosen by the bytes themselves, is the other way.
fn flipped(wire: &[u8], envelope: &Value, bytes: &[u8]) {
    let sum = bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let mut changed = wire.to_vec();
    changed[sum / 8 % wire.len()] ^= 1 << (sum % 8);
    if let Ok(opened) = open_command(&changed, &OWN_TRUST.ring, OWN_TRUST.config.max_validity_s) {
        // A hexadecimal digit of an escape, in the other case.
        assert_eq!(&value(&opened), envelope, "a flipped bit was opened");
    }
}

/// What is accepted may be, and its way through the state.
fn runs(wire: &[u8], payload: &Value, accepted: &Accepted, link: Link) {
    let text = |pointer: &str| payload.pointer(pointer).and_then(Value::as_str).expect("a text");
    let time = |pointer: &str| text(pointer).parse::<Timestamp>().expect("a time");
    assert_eq!((text("/type"), text("/tenant_id")), ("navin.command/v1", "acme"));
    assert_eq!((text("/target/kind"), text("/target/id")), ("cluster", "prod-eu-1"));
    assert!((time("/not_before")..=time("/not_after")).contains(&now()), "outside of its window");
    let operation = text("/operation");
    assert!(["managedcomponent.apply", "managedcomponent.delete", "inventory.report"].contains(&operation));
    assert!(operation == "inventory.report" || link == Link::Online, "sensitive, while {link:?}");

    let (command, mut state) = (accepted.command(), State::new(1, "a"));
    assert_eq!(
        reverify(command.envelope(), &OWN_TRUST, |again| again == command.value()).as_ref(),
        Ok(accepted)
    );
    state.accept(command, Source::Gateway).expect("its nonce is new");
    assert_eq!(State::from_json(&state.to_json()).as_ref(), Ok(&state));
    assert_eq!(judged(wire, &state, link), Verdict::UnderWay(command.value().nonce.clone()));
    let receipt = Receipt::failed(&stamp(), command.value(), Reason::KubernetesRefused, "no\u{0}\n");
    state.finish(&command.value().nonce, receipt.clone(), Effect::None).expect("it is accepted");
    assert_eq!(State::from_json(&state.to_json()).as_ref(), Ok(&state));
    match judged(wire, &state, link) {
        Verdict::Refuse(refused) => {
            assert_eq!(refused.refusal.reason, Reason::NonceReplayed);
            assert_eq!(refused.original.as_ref(), Some(&receipt));
            readable(&refused);
        }
        verdict => panic!("{verdict:?} of a nonce that is done"),
    }
}

/// The receipt of a refusal.
fn readable(refused: &Refused) {
    let Refused { refusal, record, original } = refused;
    let receipt = Receipt::refused(&stamp(), refusal, record.is_some(), original.clone());
    let text = serde_json::to_string(&receipt).expect("a receipt can be written");
    assert_eq!(serde_json::from_str::<Receipt>(&text).ok().as_ref(), Some(&receipt), "{text}");
    let message = receipt.message.expect("a refusal has a message");
    assert!(message.len() <= 1024 && !message.contains(char::is_control), "{message:?}");
    let Refusal { reason, ids, .. } = refusal;
    assert!(
        ids.is_some()
            || *reason == Reason::InvalidEnvelope
            || *reason == Reason::UnknownKey
            || *reason == Reason::InvalidSignature,
        "{reason:?} of nobody"
    );
}

/// Who answers here.
#[must_use]
pub fn stamp() -> Stamp {
    let config = &OWN_TRUST.config;
    Stamp {
        tenant_id: config.tenant_id.clone(),
        cluster_id: config.cluster_id.clone(),
        replica: "agent-0".to_owned(),
        source: Source::Inbox,
        executed_at: now(),
    }
}
