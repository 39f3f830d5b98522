//! What is restored, what is removed and what is left alone.

use super::*;
use crate::rules::envelope::Verified;
use crate::rules::messages::{Command, Receipt, Source};
use crate::rules::names::{CommandId, Sequence};
use crate::rules::state::{Effect, Mark};
use crate::rules::vectors::{apply, delete, open, stamp};
use serde_json::json;

fn name() -> ComponentName {
    ComponentName::parse("ingress").unwrap()
}

fn wanted() -> Wanted {
    let author = Author {
        command_id: CommandId::parse("c5cefdd8-0273-45c9-821e-000000000005").unwrap(),
        sequence: Sequence::new(5).unwrap(),
    };
    Wanted { spec: json!({ "replicas": 2 }).as_object().unwrap().clone(), author }
}

type End = fn(&Verified<Command>) -> Effect;

/// A state in which each of `ended` was accepted and ended so.
fn state(ended: &[(Value, End)]) -> State {
    let mut state = State::new(1, "a");
    for (payload, effect) in ended {
        let command = open(payload);
        state.accept(&command, Source::Gateway).unwrap();
        let receipt = Receipt::succeeded(&stamp(Source::Gateway), command.value(), json!({}));
        state.finish(&command.value().nonce, receipt, effect(&command)).unwrap();
    }
    state
}

fn applied(command: &Verified<Command>) -> Effect {
    let (envelope, sequence) = (command.envelope().clone(), command.value().sequence.get());
    Effect::Applied(name(), Desired { envelope, sequence, uid: "u1".into(), generation: 1 })
}

fn deleted(command: &Verified<Command>) -> Effect {
    Effect::Deleted(name(), Mark::of(command.value(), 604_800))
}

fn failed_marked(command: &Verified<Command>) -> Effect {
    Effect::FailedMarked(name(), Mark::of(command.value(), 604_800))
}

fn live(spec: &Value, created: Option<&str>) -> Object {
    let mut object = Object(json!({
        "metadata": { "name": "ingress", "uid": "u1", "resourceVersion": "9", "generation": 3 }, "spec": spec,
    }));
    if let Some(created) = created {
        object.set_metadata_entry("annotations", component::CREATED, created);
    }
    object
}

fn terminating(mut object: Object) -> Object {
    object.0["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z");
    object
}

fn decided(live: Option<&Object>, state: &State, wanted: Option<&Wanted>, generation: i64) -> Upkeep {
    let reference = Reference { uid: "u1".into(), generation };
    decide(&name(), live, state, wanted, Some(&reference), ("navin", false))
}

#[test]
fn what_is_missing_is_made_and_what_differs_is_replaced() {
    let state = state(&[(apply("ingress", 5, &json!({ "replicas": 2 })), applied)]);
    let Upkeep::Restore(Write::Create(object)) = decided(None, &state, Some(&wanted()), 1) else {
        panic!("a create")
    };
    assert_eq!(object.0["spec"], json!({ "replicas": 2 }));
    assert_eq!(component::created_by(&object), Some(5));

    let changed = live(&json!({ "replicas": 9, "added": true }), Some("5"));
    let Upkeep::Restore(Write::Replace(object)) = decided(Some(&changed), &state, Some(&wanted()), 1) else {
        panic!("a replace")
    };
    assert_eq!(object.0["spec"], json!({ "replicas": 2 }));
    assert_eq!((object.uid(), object.resource_version()), (Some("u1"), Some("9")));
}

#[test]
fn what_our_last_write_became_is_no_drift() {
    let state = state(&[(apply("ingress", 5, &json!({ "replicas": 2 })), applied)]);
    let defaulted = live(&json!({ "replicas": 2, "mode": "auto" }), Some("5"));
    assert_eq!(decided(Some(&defaulted), &state, Some(&wanted()), 3), Upkeep::InSync);
    assert!(matches!(decided(Some(&defaulted), &state, Some(&wanted()), 2), Upkeep::Restore(_)));
    let same = live(&json!({ "replicas": 2 }), None);
    assert_eq!(decided(Some(&same), &state, Some(&wanted()), 1), Upkeep::InSync);
}

#[test]
fn what_is_being_deleted_is_waited_for_and_what_nobody_asked_for_is_left() {
    let kept = state(&[(apply("ingress", 5, &json!({ "replicas": 2 })), applied)]);
    let going = terminating(live(&json!({ "replicas": 2 }), Some("5")));
    assert_eq!(decided(Some(&going), &kept, Some(&wanted()), 3), Upkeep::Wait);

    let gone = state(&[(apply("ingress", 5, &json!({})), applied), (delete("ingress", 6), deleted)]);
    let by_hand = live(&json!({}), None);
    assert_eq!(decided(Some(&by_hand), &gone, None, 3), Upkeep::Leave);
    assert_eq!(decided(None, &gone, None, 3), Upkeep::Leave);
}

#[test]
fn a_create_that_landed_after_a_newer_delete_is_deleted_by_uid_and_version() {
    let gone = state(&[(apply("ingress", 5, &json!({})), applied), (delete("ingress", 6), deleted)]);
    let late = live(&json!({}), Some("5"));
    let delete = Write::Delete { uid: "u1".into(), resource_version: "9".into() };
    assert_eq!(decided(Some(&late), &gone, None, 3), Upkeep::RemoveLate(delete.clone()));
    assert_eq!(decided(Some(&terminating(late)), &gone, None, 3), Upkeep::Wait);
    assert_eq!(decided(Some(&live(&json!({}), Some("7"))), &gone, None, 3), Upkeep::Leave);

    // An apply that failed before its create landed, over an older one that succeeded.
    let kept = state(&[
        (apply("ingress", 5, &json!({ "replicas": 2 })), applied),
        (apply("ingress", 8, &json!({ "replicas": 8 })), failed_marked),
    ]);
    let late = live(&json!({ "replicas": 8 }), Some("8"));
    assert_eq!(decided(Some(&late), &kept, Some(&wanted()), 1), Upkeep::RemoveLate(delete));
    let own = live(&json!({ "replicas": 2 }), Some("5"));
    assert_eq!(decided(Some(&own), &kept, Some(&wanted()), 1), Upkeep::InSync);
}

#[test]
fn a_sighting_asks_for_a_look_where_it_is_not_our_last_write_and_not_older() {
    let kept = state(&[(apply("ingress", 5, &json!({})), applied)]);
    let gone = state(&[(apply("ingress", 5, &json!({})), applied), (delete("ingress", 6), deleted)]);
    let at = |uid: &str, generation| Reference { uid: uid.into(), generation };
    let there = |uid: &str, generation, created| Glimpse::There(at(uid, generation), created);
    for (glimpse, of_kept, of_gone) in [
        (Glimpse::Gone, true, false),
        (Glimpse::Going, true, false),
        (there("u1", 3, Some(5)), false, true),
        (there("u1", 2, None), false, false),
        (there("u1", 4, Some(7)), true, false),
        (there("u2", 1, Some(6)), true, true),
    ] {
        let reference = at("u1", 3);
        assert_eq!(asks_for_a_look(&name(), &glimpse, &kept, Some(&reference)), of_kept, "{glimpse:?}");
        assert_eq!(asks_for_a_look(&name(), &glimpse, &gone, None), of_gone, "{glimpse:?}");
    }
    assert!(asks_for_a_look(&name(), &there("u1", 3, None), &kept, None), "nothing is known to be ours");
}

#[test]
fn five_repairs_in_ten_minutes_make_a_component_contested() {
    let s = Duration::from_secs;
    let mut repairs = Repairs::default();
    for at in [0, 10, 20, 30, 40] {
        assert_eq!(repairs.due(s(at)), s(at));
        assert!(!repairs.contested());
        repairs.made(s(at));
    }
    assert!(repairs.contested());
    assert_eq!(repairs.due(s(41)), s(640), "one every ten minutes");
    repairs.made(s(640));
    assert_eq!(repairs.due(s(641)), s(1_240), "as long as it goes on");
    repairs.made(s(1_240));
    assert_eq!(repairs.due(s(1_840)), s(1_840), "ten minutes in peace, and it is over");
    assert!(!repairs.contested());
}

#[test]
fn repairs_that_are_far_apart_are_not_contested() {
    let mut repairs = Repairs::default();
    for at in (0..20).map(|i| Duration::from_secs(i * 150)) {
        assert_eq!(repairs.due(at), at);
        repairs.made(at);
        assert!(!repairs.contested(), "{at:?}");
    }
}
