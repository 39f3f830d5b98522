//! The contract's order of checks, by the vectors and by hand.

use super::*;
use crate::rules::messages::Source;
use crate::rules::names::{ComponentName, parse_time};
use crate::rules::state::{Desired, Effect};
use crate::rules::vectors::{self, apply, delete, sign, test_pem};
use serde_json::{Value, json};

const NOON: &str = "2026-11-30T12:00:00Z";

fn trust(pem: &str) -> Trust {
    let vectors = vectors::load("envelopes.json");
    let ring = KeyRing::from_pem(vectors["manager_pem"].as_str().unwrap()).unwrap();
    let config = Configuration::open(vectors["config"].to_string().as_bytes(), &ring).unwrap().into_value();
    Trust { ring: KeyRing::from_pem(pem).unwrap(), config }
}

fn judged(payload: &Value, state: &State, link: Link, now: &str) -> Verdict {
    let bytes = sign(payload).to_string().into_bytes();
    judge(&bytes, &trust(&test_pem()), state, link, parse_time(now).unwrap())
}

fn reason(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Run(_) => "run",
        Verdict::Refuse(refused) => refused.refusal.reason.as_str(),
        Verdict::UnderWay(_) => "under way",
        Verdict::Later(Why::NameBusy) => "name busy",
        Verdict::Later(Why::Connecting) => "connecting",
        Verdict::Later(Why::Full) => "full",
    }
}

fn receipt(command: &Command) -> Receipt {
    Receipt::succeeded(&vectors::stamp(Source::Gateway), command, json!({}))
}

/// A state in which an apply of `a` with this sequence has succeeded.
fn with_applied(sequence: u64) -> State {
    let mut state = State::new(1, "a_1");
    let Verdict::Run(accepted) = judged(&apply("a", sequence, &json!({})), &state, Link::Online, NOON) else {
        panic!("accepted")
    };
    state.accept(&accepted.command, Source::Gateway).unwrap();
    let (envelope, uid) = (accepted.command.envelope().clone(), "u".into());
    let desired = Desired { envelope, sequence, uid, generation: 1 };
    let effect = Effect::Applied(ComponentName::parse("a").unwrap(), desired);
    let command = accepted.command.value();
    state.finish(&command.nonce, receipt(command), effect).unwrap();
    state
}

#[test]
fn every_envelope_of_the_vectors_gets_the_verdict_of_the_contract() {
    let vectors = vectors::load("envelopes.json");
    let trust = trust(vectors["manager_pem"].as_str().unwrap());
    let state = State::new(1, "a_1");
    for case in vectors["cases"].as_array().unwrap() {
        let now = parse_time(case["now"].as_str().unwrap()).unwrap();
        let verdict = judge(&vectors::base64(&case["wire_b64"]), &trust, &state, Link::Online, now);
        let wanted = case["expect"]["reason"].as_str().unwrap_or("run");
        assert_eq!(reason(&verdict), wanted, "{}", case["name"]);
        if let Verdict::Run(accepted) = verdict {
            let envelope = accepted.command.envelope();
            if case["canonical_payload_b64"].is_string() {
                let signed = String::from_utf8(vectors::base64(&case["canonical_payload_b64"])).unwrap();
                assert!(envelope.text().contains(&format!(r#""payload":{signed},"#)), "{}", case["name"]);
            }
            assert_eq!(reverify(envelope, &trust, |_| true).as_ref(), Ok(&*accepted));
        }
    }
}

#[test]
fn no_envelope_with_one_bit_flipped_is_accepted() {
    let vectors = vectors::load("envelopes.json");
    let trust = trust(vectors["manager_pem"].as_str().unwrap());
    let state = State::new(1, "a_1");
    let now = parse_time(NOON).unwrap();
    let wire = vectors::base64(&vectors["cases"][0]["wire_b64"]);
    assert_eq!(reason(&judge(&wire, &trust, &state, Link::Online, now)), "run");
    for position in 0..wire.len() {
        for bit in 0..8 {
            let mut flipped = wire.clone();
            flipped[position] ^= 1 << bit;
            let verdict = judge(&flipped, &trust, &state, Link::Online, now);
            let Verdict::Refuse(refused) = verdict else { panic!("{position} {bit}: {verdict:?}") };
            assert!(refused.record.is_none(), "{position} {bit}");
        }
    }
}

#[test]
fn the_window_includes_both_of_its_ends() {
    let state = State::new(1, "a_1");
    for (now, wanted) in [
        ("2026-11-30T11:58:59.999Z", "not_yet_valid"),
        ("2026-11-30T11:59:00Z", "run"),
        ("2026-11-30T12:09:00Z", "run"),
        ("2026-11-30T12:09:00.001Z", "expired"),
    ] {
        assert_eq!(reason(&judged(&apply("a", 1, &json!({})), &state, Link::Online, now)), wanted, "{now}");
    }
}

#[test]
fn a_command_for_another_or_another_time_is_told_what_was_expected_and_what_found() {
    let mut tenant = apply("a", 1, &json!({}));
    let mut cluster = tenant.clone();
    tenant["tenant_id"] = "rival".into();
    cluster["target"]["id"] = "stage".into();
    let here = apply("a", 1, &json!({}));
    for (payload, now, wanted) in [
        (tenant, NOON, "payload.tenant_id: expected \"acme\", found \"rival\""),
        (cluster, NOON, "payload.target.id: expected \"prod-eu-1\", found \"stage\""),
        (
            here.clone(),
            "2026-11-30T12:09:01Z",
            "payload.not_after: expected not before 2026-11-30T12:09:01Z, found 2026-11-30T12:09:00Z",
        ),
        (
            here,
            "2026-11-30T11:58:00Z",
            "payload.not_before: expected not after 2026-11-30T11:58:00Z, found 2026-11-30T11:59:00Z",
        ),
    ] {
        let verdict = judged(&payload, &State::new(1, "a_1"), Link::Online, now);
        let Verdict::Refuse(refused) = verdict else { panic!("{verdict:?}") };
        assert_eq!(refused.refusal.message, wanted);
    }
}

#[test]
fn what_is_not_later_than_the_floor_is_expired_whatever_the_clock_says() {
    let mut state = State::new(1, "a_1");
    for (floor, wanted) in [("2026-11-30T12:08:59Z", "run"), ("2026-11-30T12:09:00Z", "expired")] {
        state.floor = parse_time(floor);
        let verdict = judged(&apply("a", 1, &json!({})), &state, Link::Online, NOON);
        assert_eq!(reason(&verdict), wanted);
    }
    assert_eq!(
        reason(&judged(&apply("a", 1, &json!({})), &state, Link::Online, "2026-11-30T11:00:00Z")),
        "expired"
    );
}

#[test]
fn a_recorded_nonce_is_answered_with_its_receipt_and_one_under_way_not_at_all() {
    let state = with_applied(5);
    let again = apply("a", 5, &json!({}));
    for now in [NOON, "2027-01-01T00:00:00Z"] {
        let Verdict::Refuse(refused) = judged(&again, &state, Link::Offline, now) else { panic!() };
        assert_eq!(refused.refusal.reason, Reason::NonceReplayed);
        assert!(refused.record.is_none());
        assert!(refused.original.unwrap().recorded);
    }
    let mut state = state;
    let Verdict::Run(accepted) = judged(&apply("a", 6, &json!({})), &state, Link::Online, NOON) else {
        panic!()
    };
    state.accept(&accepted.command, Source::Gateway).unwrap();
    assert_eq!(
        judged(&apply("a", 6, &json!({})), &state, Link::Online, NOON),
        Verdict::UnderWay(accepted.command.value().nonce.clone())
    );
    let busy = judged(&delete("a", 7), &state, Link::Online, NOON);
    assert_eq!(busy, Verdict::Later(Why::NameBusy));
    assert_eq!(reason(&judged(&delete("a", 4), &state, Link::Online, NOON)), "superseded");
    assert_eq!(reason(&judged(&delete("b", 4), &state, Link::Online, NOON)), "run");
}

#[test]
fn the_rules_of_the_state_and_the_link_are_asked_in_the_contracts_order() {
    let mut state = with_applied(5);
    state.lost_at = parse_time("2026-11-30T11:59:00Z");
    let report = {
        let mut payload = apply("a", 1, &json!({}));
        payload["operation"] = "inventory.report".into();
        payload["arguments"] = json!({});
        payload
    };
    let later = |mut payload: Value| {
        payload["not_before"] = "2026-11-30T11:59:01Z".into();
        payload
    };
    let mut unknown = delete("a", 1);
    unknown["operation"] = "managedcomponent.restart".into();
    let mut malformed = delete("a", 1);
    malformed["arguments"]["extra"] = true.into();
    for (payload, link, wanted) in [
        (unknown, Link::Offline, "unknown_operation"),
        (malformed, Link::Offline, "invalid_arguments"),
        (delete("a", 4), Link::Offline, "superseded"),
        (apply("a", 9, &json!({})), Link::Offline, "state_lost"),
        (apply("b", 1, &json!({})), Link::Connecting, "state_lost"),
        (later(apply("a", 9, &json!({}))), Link::Offline, "manager_unreachable"),
        (later(apply("a", 9, &json!({}))), Link::Connecting, "connecting"),
        (later(apply("a", 9, &json!({}))), Link::Online, "run"),
        (report.clone(), Link::Offline, "run"),
        (report, Link::Connecting, "run"),
    ] {
        let verdict = judged(&payload, &state, link, NOON);
        assert_eq!(reason(&verdict), wanted, "{payload}");
        if let Verdict::Refuse(refused) = verdict {
            assert!(refused.record.is_some(), "an authentic command in its window gets a record");
            assert!(refused.refusal.ids.is_some());
        }
    }
}

#[test]
fn an_apply_beyond_the_desired_states_limit_is_too_large() {
    // Short on the wire, four times as long in its canonical form.
    let bytes = sign(&apply("a", 9, &json!([]))).to_string();
    let payload = apply("a", 9, &json!({"n": vec![900_000_000_000_000_u64; 42_000]}));
    let long = sign(&payload).to_string();
    let wire = long.replace("900000000000000", "9E14");
    assert!(wire.len() < 256 * 1024 && long.len() > 600 * 1024 && bytes.len() < wire.len());
    let now = parse_time(NOON).unwrap();
    let state = State::new(1, "a_1");
    let verdict = judge(wire.as_bytes(), &trust(&test_pem()), &state, Link::Online, now);
    assert_eq!(reason(&verdict), "too_large");
    let Verdict::Refuse(refused) = verdict else { panic!() };
    assert!(reverify(refused.record.unwrap().envelope(), &trust(&test_pem()), |_| true).is_ok());
}

#[test]
fn an_envelope_of_the_state_is_verified_again_but_for_its_window() {
    let mut trust = trust(&test_pem());
    let raw = |envelope: &Value| Raw::new(envelope.to_string()).unwrap();
    let mut changed = sign(&apply("a", 1, &json!({})));
    let envelope = raw(&changed);
    trust.config.max_validity_s = 1;
    assert!(reverify(&envelope, &trust, |_| true).is_ok());
    let others = reverify(&envelope, &trust, |command| command.sequence.get() == 2);
    assert_eq!(others.unwrap_err().reason, Reason::InvalidEnvelope);
    changed["payload"]["arguments"]["spec"]["x"] = 1.into();
    assert_eq!(reverify(&raw(&changed), &trust, |_| true).unwrap_err().reason, Reason::InvalidSignature);
    trust.config.tenant_id = crate::rules::names::Label::parse("other").unwrap();
    assert_eq!(reverify(&envelope, &trust, |_| true).unwrap_err().reason, Reason::WrongTenant);
}
