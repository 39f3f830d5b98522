//! The state as it is found in the cluster.
//!
//! - What is read, written and read again is the same state; so it is after all that may be forgotten is.
//! - Its size is the length of its text, or up to two bytes more.
//! - What is not read says whether it is as good as lost, or of a later version.
//! - What stands in it as accepted is verified again: no forgery is.

use crate::answers::Still;
use crate::keys::{VECTORS_TRUST, was_signed};
use navin_cluster_agent::clock::Clock as _;
use navin_cluster_agent::rules::names::Nonce;
use navin_cluster_agent::rules::state::{STATE_VERSION, State, StateError};
use navin_cluster_agent::rules::verdict::reverify;
use serde_json::Value;

/// Checks bytes as the text of the ConfigMap.
pub fn check(bytes: &[u8]) {
    // The API server's JSON is UTF-8; what is not became U+FFFD there.
    let text = String::from_utf8_lossy(bytes);
    match State::from_json(&text) {
        Ok(state) => holds(state),
        Err(StateError::OfVersion(version)) => {
            assert!(version != STATE_VERSION);
            // What is not known in it is not read.
            assert!(serde_json::from_str::<Value>(&text).map_or(true, |state| state["version"] == version));
        }
        Err(error @ StateError::Unreadable(_)) => assert!(!error.to_string().is_empty()),
    }
}

fn holds(mut state: State) {
    fixed(&state);
    let counts = state.counts();
    assert_eq!(counts.accepted, state.accepted().count());
    assert!(counts.receipts_waiting + counts.accepted <= counts.records);
    assert!(state.desired_bytes() <= state.bytes());
    assert!(state.is_full() || state.fits_refusal() || counts.accepted > 0 || state.bytes() > 800_000);
    for (nonce, record, envelope) in state.accepted() {
        assert_eq!(state.record(nonce), Some(record));
        if reverify(envelope, &VECTORS_TRUST, |_| true).is_ok() {
            assert!(
                was_signed(&serde_json::from_str(envelope.text()).expect("JSON")),
                "a forgery was verified again"
            );
        }
    }
    for (name, component) in state.components() {
        assert!(state.busy(name).is_none_or(|nonce| state.record(nonce).is_some()));
        let late = state.is_late_create(name, 0);
        assert!(!late || component.mark.is_some());
        assert!(
            !state.is_late_create(name, u64::MAX)
                || component.mark.is_some_and(|mark| mark.sequence == u64::MAX)
        );
    }
    let waiting: Vec<Nonce> = state.waiting_receipts().map(|(nonce, _)| nonce.clone()).collect();
    for nonce in &waiting {
        assert!(state.acknowledge(nonce) && !state.acknowledge(nonce));
    }
    fixed(&state);
    let (before, floor) = (state.clone(), state.floor);
    assert!(!state.prune(Still.wall(), false) && state == before, "forgotten by a clock that is not trusted");
    state.prune(Still.wall(), true);
    assert!(state.floor >= floor && state.counts().accepted == counts.accepted);
    for (nonce, _, _) in before.accepted() {
        assert!(state.record(nonce).is_some(), "what is accepted was forgotten");
    }
    fixed(&state);
}

/// It can be written and read, and is the same.
fn fixed(state: &State) {
    let text = state.to_json();
    assert_eq!(State::from_json(&text).as_ref(), Ok(state), "{text}");
    let size = state.bytes();
    assert!((text.len()..=text.len() + 2).contains(&size), "{size} bytes of {}", text.len());
}
