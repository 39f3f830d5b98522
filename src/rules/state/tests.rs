//! The invariants of the state, by hand; the simulation looks for what is not thought of here.

use super::*;
use crate::rules::envelope::{KeyRing, Verified, open_command};
use crate::rules::messages::{Command, Operation, Reason, Stamp, Status};
use crate::rules::names::{Label, parse_time};
use crate::rules::vectors::{apply, delete, sign, test_pem};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn at(text: &str) -> Timestamp {
    parse_time(text).unwrap()
}

fn name(text: &str) -> ComponentName {
    ComponentName::parse(text).unwrap()
}

fn open(payload: &Value) -> Verified<Command> {
    let ring = KeyRing::from_pem(&test_pem()).unwrap();
    open_command(sign(payload).to_string().as_bytes(), &ring, 604_800).unwrap()
}

fn operation(command: &Verified<Command>) -> Operation {
    Operation::of(command.value()).unwrap()
}

fn fits(state: &State, command: &Verified<Command>) -> bool {
    state.fits(command, &operation(command))
}

fn too_large(state: &State, command: &Verified<Command>) -> bool {
    state.too_large(command, &operation(command))
}

fn receipt(command: &Verified<Command>, text: &str) -> Receipt {
    let stamp = Stamp {
        tenant_id: Label::parse("acme").unwrap(),
        cluster_id: Label::parse("prod-eu-1").unwrap(),
        replica: "agent-0".into(),
        source: Source::Gateway,
        executed_at: at("2026-11-30T12:00:00Z"),
    };
    Receipt::succeeded(&stamp, command.value(), json!({ "name": text }))
}

fn applied(text: &str, command: &Verified<Command>) -> Effect {
    let (envelope, sequence) = (command.envelope().clone(), command.value().sequence.get());
    Effect::Applied(name(text), Desired { envelope, sequence, uid: "u-1".into(), generation: 1 })
}

fn run(state: &mut State, payload: &Value, effect: impl FnOnce(&Verified<Command>) -> Effect) -> Nonce {
    let command = open(payload);
    state.accept(&command, Source::Gateway).unwrap();
    let nonce = command.value().nonce.clone();
    state.finish(&nonce, receipt(&command, "a"), effect(&command)).unwrap();
    nonce
}

#[test]
fn the_first_outcome_of_a_nonce_never_changes() {
    let mut state = State::new(1, "a_1");
    let command = open(&apply("a", 5, &json!({"x": 1})));
    let nonce = &command.value().nonce;
    assert_eq!(state.finish(nonce, receipt(&command, "a"), Effect::None), Err(RecordError::Unknown));
    state.accept(&command, Source::Inbox).unwrap();
    assert_eq!(state.busy(&name("a")), Some(nonce));
    assert_eq!(state.busy(&name("b")), None);
    assert!(!state.acknowledge(nonce));
    assert_eq!(state.accept(&command, Source::Gateway), Err(RecordError::Known));
    state.finish(nonce, receipt(&command, "a"), applied("a", &command)).unwrap();
    let after = state.clone();
    let other = receipt(&command, "other");
    assert_eq!(state.finish(nonce, other.clone(), Effect::None), Err(RecordError::Done));
    assert_eq!(state.refuse(command.value(), other), Err(RecordError::Known));
    assert_eq!(state, after);
    assert_eq!(state.busy(&name("a")), None);
    assert_eq!(state.highest_sequence, 5);
    assert_eq!(state.waiting_receipts().count(), 1);
    assert!(state.acknowledge(nonce));
    assert!(!state.acknowledge(nonce));
    assert_eq!(state.waiting_receipts().count(), 0);
}

#[test]
fn what_writes_no_component_keeps_none_busy_whatever_its_arguments_are_called() {
    let mut state = State::new(1, "a_1");
    let mut payload = delete("a", 5);
    payload["operation"] = "inventory.report".into();
    state.accept(&open(&payload), Source::Gateway).unwrap();
    assert_eq!(state.busy(&name("a")), None);
    state.accept(&open(&delete("a", 6)), Source::Gateway).unwrap();
    let read = State::from_json(&state.to_json()).unwrap();
    assert!(
        state.busy(&name("a")).is_some() && read == state,
        "nor is anything else known once it is read again"
    );
}

#[test]
fn the_text_of_a_state_is_read_as_the_same_state_and_its_size_is_known() {
    let mut state = State::new(3, "agent-0_1\"");
    state.unfinished = false;
    state.lost_at = Some(at("2026-11-30T10:00:00.5Z"));
    for sequence in 1..=40 {
        let text = format!("c-{sequence}");
        let spec = json!({"text": "ä\"\\\n", "$serde_json::private::RawValue": "1", "n": [0.1, 1e15]});
        let command = open(&apply(&text, sequence, &spec));
        let nonce = command.value().nonce.clone();
        state.accept(&command, Source::Inbox).unwrap();
        if sequence % 3 > 0 {
            state.finish(&nonce, receipt(&command, &text), applied(&text, &command)).unwrap();
        }
        if sequence % 3 > 1 {
            state.acknowledge(&nonce);
            let forget_after = at("2026-12-07T12:00:00Z");
            let mark = Mark { sequence: sequence + 100, forget_after };
            run(&mut state, &delete(&text, sequence + 100), |_| Effect::Deleted(name(&text), mark));
        }
        let text = state.to_json();
        assert!((text.len()..=text.len() + 2).contains(&state.bytes()));
        assert_eq!(State::from_json(&text).unwrap(), state);
    }
    assert!(state.desired_bytes() > 1000 && state.desired_bytes() < state.bytes());
    let counts = state.counts();
    assert_eq!((counts.records, counts.accepted, counts.receipts_waiting, counts.desired), (53, 13, 27, 14));
}

#[test]
fn an_unreadable_state_is_told_from_one_of_another_version() {
    let good = State::new(1, "a").to_json();
    assert!(State::from_json(&good).is_ok());
    let newer = good.replace("\"version\":1", "\"version\":2");
    assert_eq!(State::from_json(&newer), Err(StateError::OfVersion(2)));
    assert_eq!(
        State::from_json("{\"version\":0}"),
        Err(StateError::OfVersion(0)),
        "nor is one that is not known any more lost"
    );
    for bad in ["", "{}", "[]", "[2]", "null", "{\"version\":1}", "{\"version\":-1}", "{\"version\":\"1\"}"] {
        assert!(matches!(State::from_json(bad), Err(StateError::Unreadable(_))), "{bad}");
    }
    let command = open(&delete("a", 1));
    let mut with_one = State::new(1, "a");
    with_one.accept(&command, Source::Gateway).unwrap();
    let one = serde_json::to_string(with_one.record(&command.value().nonce).unwrap()).unwrap();
    let of = |commands: &str| good.replace("\"commands\":{}", &format!("\"commands\":{{{commands}}}"));
    let nonce = command.value().nonce.as_str();
    let read = State::from_json(&of(&format!("\"{nonce}\":{one}")));
    assert!(
        read.is_ok_and(|read| read.record(&command.value().nonce) == with_one.record(&command.value().nonce))
    );
    for bad in [
        good.replace("\"version\":1", "\"version\":1,\"version\":1"),
        of(&format!("\"{nonce}\":{one},\"{nonce}\":{one}")),
        of(&format!("\"short\":{one}")),
        of(&format!("\"{nonce}\":{{}}")),
        format!("{good}{}", " ".repeat(STATE_LIMIT)),
    ] {
        assert!(matches!(State::from_json(&bad), Err(StateError::Unreadable(_))), "{}", &bad[..99]);
    }
}

#[test]
fn a_record_goes_when_acknowledged_and_past_and_the_floor_remembers_it() {
    let mut state = State::new(1, "a");
    let mut payload = apply("a", 1, &json!({}));
    payload["not_after"] = "2026-11-30T12:09:00.25Z".into();
    let nonce = run(&mut state, &payload, |command| applied("a", command));
    let waiting = run(&mut state, &apply("b", 2, &json!({})), |command| applied("b", command));
    let late = at("2026-12-30T00:00:00Z");
    assert!(!state.prune(late, true), "not acknowledged");
    state.acknowledge(&nonce);
    assert!(!state.prune(late, false), "the clock is not trusted");
    assert!(!state.prune(at("2026-11-30T12:09:00.25Z"), true), "the window's last moment");
    assert!(state.prune(late, true));
    assert!(state.record(&nonce).is_none());
    assert!(state.record(&waiting).is_some());
    assert_eq!(state.floor, Some(at("2026-11-30T12:09:00.25Z")));
    assert_eq!(State::from_json(&state.to_json()).unwrap().floor, state.floor, "with its fraction");
    state.acknowledge(&waiting);
    assert!(state.prune(late, true));
    assert_eq!(state.floor, Some(at("2026-11-30T12:09:00.25Z")), "a floor never falls");
    assert!(state.component(&name("a")).is_some(), "what is desired stays");
}

#[test]
fn a_late_create_is_known_by_its_tombstone_or_failed_mark() {
    let forget_after = at("2026-12-07T12:00:00Z");
    let mut state = State::new(1, "a");
    let a = name("a");
    assert!(!state.is_late_create(&a, 1));
    run(&mut state, &apply("a", 3, &json!({})), |command| applied("a", command));
    assert!(!state.is_late_create(&a, 3));
    let mark = |sequence| Mark { sequence, forget_after };
    run(&mut state, &apply("a", 5, &json!({})), |_| Effect::FailedMarked(name("a"), mark(5)));
    assert_eq!(state.component(&a).unwrap().succeeded, 3);
    assert!(!state.is_late_create(&a, 3), "what is desired");
    assert!(state.is_late_create(&a, 5));
    assert!(!state.is_late_create(&a, 6));
    run(&mut state, &delete("a", 7), |_| Effect::Deleted(name("a"), mark(7)));
    assert!(state.is_late_create(&a, 3) && state.is_late_create(&a, 7));
    assert!(!state.is_late_create(&a, 8));
    assert!(!state.prune(forget_after, true));
    run(&mut state, &apply("a", 9, &json!({})), |command| applied("a", command));
    assert!(!state.is_late_create(&a, 7), "repaired, not removed: something is desired");
    run(&mut state, &delete("a", 10), |_| Effect::Deleted(name("a"), mark(10)));
    assert!(state.prune(at("2026-12-07T12:00:01Z"), true));
    assert!(state.component(&a).is_none());
}

#[test]
fn what_does_not_fit_is_not_accepted_and_what_was_accepted_can_always_end() {
    let mut state = State::new(1, "a");
    let spec = json!({"text": "x".repeat(95_000)});
    for sequence in 1..=6 {
        let command = open(&apply(&format!("c-{sequence}"), sequence, &spec));
        assert!(!too_large(&state, &command), "{sequence}");
        assert!(fits(&state, &command));
        state.accept(&command, Source::Gateway).unwrap();
    }
    let seventh = open(&apply("c-7", 7, &json!({"text": "x".repeat(50_000)})));
    assert!(too_large(&state, &seventh), "what is under way counts");
    let again = open(&apply("c-1", 8, &spec));
    for sequence in 1..=6 {
        let text = format!("c-{sequence}");
        let command = open(&apply(&text, sequence, &spec));
        let nonce = command.value().nonce.clone();
        state.finish(&nonce, receipt(&command, &text), applied(&text, &command)).unwrap();
    }
    assert!(!too_large(&state, &again), "it replaces what is desired");
    for sequence in 11..=13 {
        let command = open(&apply(&format!("c-{}", sequence - 10), sequence, &spec));
        assert!(fits(&state, &command));
        state.accept(&command, Source::Gateway).unwrap();
    }
    let fourth = open(&apply("c-4", 14, &spec));
    assert!(!too_large(&state, &fourth));
    assert!(!fits(&state, &fourth), "above 900 KiB");
    assert!(!state.is_full(), "a smaller one fits");
    let smaller = open(&apply("c-5", 15, &json!({"text": "x".repeat(40_000)})));
    assert!(fits(&state, &smaller));
    let mut sequence = 100;
    while fits(&state, &open(&delete("d", sequence))) {
        state.accept(&open(&delete(&format!("d-{sequence}"), sequence)), Source::Gateway).unwrap();
        sequence += 1;
    }
    assert!(state.bytes() < OTHER_LIMIT);
    assert!(state.bytes() + state.counts().accepted * 4096 < STATE_LIMIT);
    assert!(!fits(&state, &open(&apply("e", 9_999, &json!({})))));
    assert_eq!(state.is_full(), state.bytes() >= APPLY_LIMIT);
}

#[test]
fn what_is_heavy_in_memory_is_accepted_as_far_as_it_may_weigh_together_and_is_not_held_afterwards() {
    let spec = json!({ "list": vec![json!({ "": 0 }); 10_000] });
    let mut state = State::new(1, "a");
    let mut sequence = 0;
    let next = |sequence| open(&apply(&format!("c-{sequence}"), sequence, &spec));
    while fits(&state, &next(sequence + 1)) {
        sequence += 1;
        state.accept(&next(sequence), Source::Gateway).unwrap();
    }
    assert_eq!(sequence, 2, "of 7 MiB each");
    assert!(state.is_heavy());
    assert!(fits(&state, &open(&delete("c-1", 8))), "what brings no spec is never too heavy");
    assert!(state.bytes() < APPLY_LIMIT / 4, "there is room for their texts");
    assert!(fits(&state, &open(&apply("light", 9, &json!({ "x": 1 })))));
    assert_eq!(
        State::from_json(&state.to_json()).unwrap(),
        state,
        "and they weigh the same once they are read"
    );
    let command = next(1);
    let nonce = command.value().nonce.clone();
    state.finish(&nonce, receipt(&command, "c-1"), applied("c-1", &command)).unwrap();
    assert!(fits(&state, &next(3)), "what is desired is held as text");
}

/// All that may stand in a state. A new variant stops the compiler here: an agent that does not know it cannot read the
/// state, so it raises `STATE_VERSION`, and version 1 is still read (ARCHITECTURE, "What stands in the state").
fn stands_in_version_1(receipt: &Receipt) -> (&'static str, &'static str, &'static str) {
    let status = match receipt.status {
        Status::Succeeded | Status::Failed | Status::Refused => receipt.status.as_str(),
    };
    let source = match receipt.source {
        Source::Gateway => "gateway",
        Source::Inbox => "inbox",
    };
    let reason = receipt.reason.map_or("", |reason| match reason {
        Reason::InvalidEnvelope
        | Reason::UnknownKey
        | Reason::InvalidSignature
        | Reason::WrongTenant
        | Reason::WrongTarget
        | Reason::NonceReplayed
        | Reason::Expired
        | Reason::NotYetValid
        | Reason::UnknownOperation
        | Reason::InvalidArguments
        | Reason::Superseded
        | Reason::StateLost
        | Reason::ManagerUnreachable
        | Reason::TooLarge
        | Reason::KubernetesRefused
        | Reason::KubernetesUnavailable => reason.as_str(),
    });
    (status, source, reason)
}

#[test]
fn a_state_of_version_1_is_read_and_written_as_it_ever_was() {
    let kept = include_str!("version_1.json");
    let state = State::from_json(kept).unwrap();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&state.to_json()), value(kept));
    let done = state.commands.values().filter_map(|record| match &record.phase {
        Phase::Done { receipt, .. } => Some(stands_in_version_1(receipt)),
        Phase::Accepted { .. } => None,
    });
    let (mut statuses, mut sources, mut reasons) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (status, source, reason) in done {
        statuses.insert(status);
        sources.insert(source);
        reasons.insert(reason);
    }
    assert_eq!((statuses.len(), sources.len(), reasons.len()), (3, 2, 16 + 1), "all of them");
    assert_eq!(state.accepted().count(), 1);
}
