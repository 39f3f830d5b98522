//! `config.json` and `manager.pem`.
//!
//! - A key ring that is read holds a key for each block, at least one; its keys written anew are the same ring.
//! - A configuration that we sign opens exactly where it has the form; its numbers are in their ranges, and it is
//!   no command.
//! - A gateway's URL that is taken is the same to another parser: https, this host, this port, nothing more.
//! - A time that is taken is a time to another parser.

use crate::envelope::opens_only_what_was_signed;
use crate::keys::{OWN_TRUST, pem, sign};
use jiff::Timestamp;
use navin_cluster_agent::rules::config::{Configuration, GatewayUrl};
use navin_cluster_agent::rules::envelope::{KeyRing, open_command};
use navin_cluster_agent::rules::json::{MAX_ENVELOPE_BYTES, parse};
use navin_cluster_agent::rules::names::{format_time, parse_time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Checks bytes as each of the two files, as the payload of one, and as texts in it.
pub fn check(bytes: &[u8]) {
    opens_only_what_was_signed(bytes);
    if let Ok(text) = str::from_utf8(bytes) {
        key_ring(text);
        url(text);
        time(text);
    }
    if let Ok(payload) = parse(bytes, MAX_ENVELOPE_BYTES) {
        configuration(&payload);
    }
}

fn key_ring(text: &str) {
    let Ok(ring) = KeyRing::from_pem(text) else { return };
    let byte =
        |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal");
    let key = |id: &str| id.as_bytes().chunks(2).map(byte).collect::<Vec<u8>>();
    let again: String = ring.ids().map(|id| pem(&key(id.as_str()))).collect();
    assert_eq!(ring.ids().count(), blocks(text).len(), "as many keys as blocks");
    assert!(!again.is_empty(), "a ring without a key");
    assert_eq!(KeyRing::from_pem(&again), Ok(ring));
}

/// The base64 of the different blocks of a text that is a key ring.
fn blocks(text: &str) -> BTreeSet<String> {
    let (mut blocks, mut block) = (BTreeSet::new(), None::<String>);
    for line in text.lines().map(str::trim) {
        match line {
            "-----BEGIN PUBLIC KEY-----" => block = Some(String::new()),
            "-----END PUBLIC KEY-----" => blocks.extend(block.take()),
            line => block.iter_mut().for_each(|block| block.push_str(line)),
        }
    }
    blocks
}

fn configuration(payload: &Value) {
    let wire = sign(payload).to_string().into_bytes();
    assert!(
        payload["type"] == "navin.command/v1"
            || open_command(&wire, &OWN_TRUST.ring, OWN_TRUST.config.max_validity_s).is_err(),
        "a configuration opened as a command"
    );
    let Ok(config) = Configuration::open(&wire, &OWN_TRUST.ring) else { return };
    let config = config.value();
    assert_eq!(payload["type"], "navin.agent-config/v1");
    for (name, found, default) in [
        ("lease_duration_s", config.lease_duration_s, 15),
        ("offline_after_s", config.offline_after_s, 120),
        ("poll_wait_s", config.poll_wait_s, 30),
        ("report_interval_s", config.report_interval_s, 300),
        ("max_validity_s", config.max_validity_s, 604_800),
    ] {
        let told = payload.get(name).map_or(Some(default), Value::as_u64);
        assert_eq!(Some(found), told, "{name}");
    }
    assert!((3..=300).contains(&config.lease_duration_s) && (1..=30).contains(&config.poll_wait_s));
    assert!((5..=86_400).contains(&config.offline_after_s));
    assert!((10..=86_400).contains(&config.report_interval_s) && config.max_validity_s > 0);
    let poll = config.poll_wait();
    assert!(poll >= Duration::from_secs(1) && poll <= config.offline_after(), "{poll:?}");
    url(config.gateway_url.as_str());
    time(payload["issued_at"].as_str().expect("a time is a text"));
}

fn url(text: &str) {
    let Some(ours) = GatewayUrl::parse(text) else { return };
    let theirs: http::Uri = text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"));
    let host = theirs.host().expect("a host").trim_start_matches('[').trim_end_matches(']');
    assert_eq!((theirs.scheme_str(), host), (Some("https"), ours.host()), "{text:?}");
    assert_eq!(theirs.port_u16().unwrap_or(443), ours.port(), "{text:?}");
    assert_eq!((theirs.path(), theirs.query()), ("/", None), "{text:?}");
    let user = theirs.authority().is_some_and(|authority| authority.as_str().contains('@'));
    assert!(!user && ours.port() > 0 && ours.as_str() == text, "{text:?}");
}

fn time(text: &str) {
    let Some(ours) = parse_time(text) else { return };
    assert_eq!(text.parse::<Timestamp>().ok(), Some(ours), "{text:?}");
    let seconds = format_time(ours);
    let again = parse_time(&seconds).map(Timestamp::as_second);
    assert_eq!(again, Some(ours.as_second() - i64::from(ours.subsec_nanosecond() < 0)), "{text:?}");
}
