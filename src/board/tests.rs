//! What is kept of what the watch sees.

use super::*;
use crate::clock::HandClock;
use crate::http::{Http, HttpError, Request, Response};
use crate::kube::{Kube, watch};
use crate::rules::messages::Source;
use crate::rules::state::{Desired, Effect};
use crate::rules::vectors::{apply, open, stamp};
use std::io::Cursor;

/// Lists one component that was asked for, one whose command is being executed, and one of somebody else.
struct Api;

impl Http for Api {
    fn send(&self, _: &Request) -> Result<Response, HttpError> {
        let item = |name| json!({ "metadata": { "name": name, "uid": "u" }, "status": { "of": name } });
        let items = ["begun", "foreign", "kept"].map(item);
        let body = json!({ "metadata": { "resourceVersion": "1" }, "items": items }).to_string();
        Ok(Response { status: 200, retry_after: None, date: None, body: Box::new(Cursor::new(body)) })
    }
}

fn state() -> State {
    let mut state = State::new(1, "a_1");
    let (kept, begun) = (open(&apply("kept", 1, &json!({}))), open(&apply("begun", 2, &json!({}))));
    for command in [&kept, &begun] {
        state.accept(command, Source::Gateway).unwrap();
    }
    let receipt = Receipt::succeeded(&stamp(Source::Gateway), kept.value(), Value::Null);
    let desired = Desired { envelope: kept.envelope().clone(), sequence: 1, uid: "u".into(), generation: 1 };
    let applied = Effect::Applied(ComponentName::parse("kept").unwrap(), desired);
    state.finish(&kept.value().nonce, receipt, applied).unwrap();
    state
}

#[test]
fn of_a_component_that_no_command_names_nothing_is_kept() {
    let board = Board::default();
    board.lead(Timestamp::UNIX_EPOCH, Duration::ZERO, Arc::new(state()));
    let kube = Kube::new(Arc::new(Api), "navin-platform", Duration::from_secs(5));
    let (all, _) = watch::list(&kube, &HandClock::default(), |name| board.wants(name)).unwrap();
    let seen: Vec<_> = all.iter().map(|(sighting, _)| &*sighting.name).collect();
    assert_eq!(seen, ["begun", "kept"], "nor is the leader told of it");
    let foreign = Sighting { name: "foreign".into(), ..all[0].0.clone() };
    let names = || board.live().as_ref().unwrap().keys().cloned().collect::<Vec<_>>();
    board.listed(all);
    assert_eq!(names(), ["begun", "kept"]);
    board.stepped_down();
    board.seen(foreign, Status::Here(r#"{"of":"foreign"}"#.into()));
    assert_eq!(names(), ["begun", "kept"]);
    board.gone("begun");
    assert_eq!(names(), ["kept"]);
}

#[test]
fn statuses_that_would_take_too_much_memory_together_are_left_out_and_marked() {
    let mut state = State::new(1, "a_1");
    let names: Vec<String> = (0..300).map(|number| format!("kept-{number}")).collect();
    for (name, sequence) in names.iter().zip(1..) {
        let command = open(&apply(name, sequence, &json!({})));
        state.accept(&command, Source::Gateway).unwrap();
        let receipt = Receipt::succeeded(&stamp(Source::Gateway), command.value(), Value::Null);
        let envelope = command.envelope().clone();
        let desired = Desired { envelope, sequence, uid: "u".into(), generation: 1 };
        let applied = Effect::Applied(ComponentName::parse(name).unwrap(), desired);
        state.finish(&command.value().nonce, receipt, applied).unwrap();
    }
    // The heaviest that is kept.
    let status: Box<str> = format!("[{}]", vec![r#"{"a":0}"#; 85].join(",")).into();
    let board = Board::default();
    board.lead(Timestamp::UNIX_EPOCH, Duration::ZERO, Arc::new(state.clone()));
    let listed = |name: &String| {
        let (uid, created) = ("u".to_owned(), None);
        let sighting = Sighting { name: name.clone(), uid, generation: 1, created, terminating: false };
        (sighting, Status::Here(status.clone()))
    };
    board.listed(names.iter().map(listed).collect());
    let rows = board.components(&board.take(), &state);
    let (told, left_out): (Vec<_>, Vec<_>) =
        rows.as_array().unwrap().iter().partition(|row| row.get("status").is_some());
    let each = weight(&parse_foreign(status.as_bytes(), status.len()).unwrap());
    assert_eq!(told.len(), STATUSES_WEIGHT / each);
    assert_eq!(told.len() + left_out.len(), names.len());
    assert!(left_out.iter().all(|row| row["reason"] == "status_too_large"), "{left_out:?}");
}
