//! The API server's answers: an object, a Status, lists page by page, what the doctor asks.
//!
//! - An answer means the same in whatever pieces it arrives; one that breaks off is an error.
//! - What is no 2xx is the error that its status says, with at most 600 characters of the server's.
//! - An object is one; of one that nests too deep or weighs too much its shell is left. To set a label sets it.
//! - A list holds the objects of all of its pages, in order, as another reader sees them; each page is asked for
//!   with the token of the one before.
//! - Each kind of an inventory says its state, is sorted, and is empty where it could not be read.

use crate::answers::{Answer, Arrival, Server, cuts};
use navin_cluster_agent::clock::SystemClock;
use navin_cluster_agent::kube::watch::{Sighting, Status};
use navin_cluster_agent::kube::{
    Kube, KubeError, Object, components, inventory, lease, review, state, watch,
};
use navin_cluster_agent::rules::election::LeaseRecord;
use navin_cluster_agent::rules::json::{parse_foreign, parse_object};
use navin_cluster_agent::rules::names::ComponentName;
use navin_cluster_agent::rules::report::Carrier;
use navin_cluster_agent::rules::state::State;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Larger than any body here.
const ANY_SIZE: usize = 64 * 1024 * 1024;

/// Checks bytes as answers to each call.
pub fn check(bytes: &[u8]) {
    let answers = Answer::all(bytes);
    let whole = Arrival::InPieces(usize::MAX);
    one(&answers[0], whole);
    assert_eq!(get(&answers[0], whole), get(&answers[0], Arrival::InPieces(1)), "it depends on the pieces");
    pages(&answers);
    kinds(&answers, whole);
    for cut in cuts(&answers[0].body) {
        broken(&answers, cut);
    }
}

/// A client of a server with these answers.
#[must_use]
pub fn client(answers: &[Answer], arrival: Arrival) -> (Kube, Arc<Server>) {
    let server = Server::new(answers, arrival);
    (Kube::new(Arc::<Server>::clone(&server), "navin", Duration::from_secs(5)), server)
}

fn get(answer: &Answer, arrival: Arrival) -> Result<Object, KubeError> {
    client(std::slice::from_ref(answer), arrival).0.get("/api/v1/namespaces/navin/configmaps/a")
}

fn one(answer: &Answer, arrival: Arrival) {
    let (kube, _) = client(std::slice::from_ref(answer), arrival);
    let got = get(answer, arrival);
    match &got {
        Ok(object) => {
            assert!(answer.succeeds());
            holds(object, &answer.body);
        }
        Err(error) => is_of(error, answer),
    }
    let named = |object: &Object| object.uid().is_some() && object.resource_version().is_some();
    let whole = got.clone().ok().filter(|object| named(object) && !object.is_shell());
    assert_eq!(lease::get(&kube).ok().flatten(), whole);
    assert_eq!(state::get(&kube).ok().flatten(), whole);
    assert_eq!(inventory::cluster_uid(&kube).as_deref(), got.as_ref().ok().and_then(Object::uid));
    let name = ComponentName::parse("ingress").expect("a name");
    let component = components::get(&kube, &name);
    assert_eq!(
        component.as_ref().ok().map(Option::is_none),
        match &got {
            Ok(object) => named(object).then_some(false),
            Err(KubeError::NotFound(_)) => Some(true),
            Err(_) => None,
        }
    );
    if let Ok((version, date)) = review::version(&kube) {
        assert!(answer.succeeds() && date == answer.date);
        assert!(
            parse_foreign(&answer.body, ANY_SIZE).is_ok_and(|body| body["gitVersion"] == version.as_str())
        );
    }
    let allowed = review::allowed(&kube, &review::Right::Path("/version"));
    assert!(allowed != Ok(true) || got.is_ok_and(|object| object.0["status"]["allowed"] == true));
    assert!(review::components_served(&kube).is_err() || answer.succeeds() || answer.status == 404);
}

/// What can be asked of an object.
fn holds(object: &Object, body: &[u8]) {
    assert!(object.0.is_object());
    match parse_object(body, ANY_SIZE) {
        Ok(Value::Object(members)) => assert_eq!(object.0, Value::Object(members)),
        Ok(_) | Err(_) => assert!(object.is_shell() && object.uid().is_some() && object.name().is_some()),
    }
    for text in [object.name(), object.uid(), object.resource_version()].into_iter().flatten() {
        assert!(object.0["metadata"].as_object().is_some_and(|all| all.values().any(|value| value == text)));
    }
    let (_, _, finalizers) = (object.generation(), object.terminating(), object.finalizers());
    assert!(finalizers.len() <= body.len());
    let record = LeaseRecord::read(&object.0);
    assert!(i32::try_from(record.transitions).is_ok());
    if let Some(Ok(state)) = state::text(object).map(State::from_json) {
        assert_eq!(State::from_json(&state.to_json()), Ok(state));
    }
    let mut changed = object.clone();
    changed.set_metadata_entry("labels", "platform.navin.ai/settled", "1");
    let possible = object.0.get("metadata").is_none_or(Value::is_object);
    assert_eq!(changed.label("platform.navin.ai/settled"), possible.then_some("1"));
    changed.remove_metadata_entry("labels", "platform.navin.ai/settled");
    assert_eq!(changed.label("platform.navin.ai/settled"), None);
}

/// The error that the status says.
fn is_of(error: &KubeError, answer: &Answer) {
    let of = match error {
        KubeError::NotFound(_) => answer.status == 404,
        KubeError::Conflict(_) => answer.status == 409,
        KubeError::Gone(_) => answer.status == 410,
        KubeError::Refused { status, .. } => {
            *status == answer.status && [400, 403, 405, 413, 422].contains(status)
        }
        // A 2xx that is no object says nothing of what became of the request.
        KubeError::Unanswered { .. } => answer.status >= 500 || answer.succeeds(),
        KubeError::Unavailable { .. } => true,
    };
    assert!(of, "{error:?} of {}", answer.status);
    assert!(error.to_string().chars().count() <= 600 + " (422)".len());
}

/// A list, all of whose pages are here.
fn pages(answers: &[Answer]) {
    let (kube, server) = client(answers, Arrival::InPieces(usize::MAX));
    let any = |_: &str| true;
    let listed = watch::list(&kube, &SystemClock::default(), any);
    assert_eq!(
        listed,
        watch::list(&client(answers, Arrival::InPieces(1)).0, &SystemClock::default(), any),
        "it depends on the pieces"
    );
    let Ok((items, _)) = listed else { return };
    let asked = server.requests();
    let used: Vec<&Answer> = answers.iter().cycle().take(asked.len()).collect();
    if used.iter().any(|answer| answer.status == 410) {
        return;
    }
    let bodies = used.iter().map(|answer| parse_foreign(&answer.body, ANY_SIZE).ok());
    let Some(bodies) = bodies.collect::<Option<Vec<Value>>>() else { return };
    for (path, before) in asked.iter().skip(1).zip(&bodies) {
        let token = before["metadata"]["continue"].as_str().expect("a page after it was asked for");
        assert!(path.ends_with(&format!("&continue={token}")), "{path:?} after {token:?}");
    }
    let rows: Vec<&Value> = bodies.iter().filter_map(|body| body["items"].as_array()).flatten().collect();
    assert_eq!(rows.len(), items.len(), "objects were lost, or made");
    for ((Sighting { name, uid, generation, .. }, status), row) in items.iter().zip(rows) {
        let text = |member: &str| row["metadata"][member].as_str().unwrap_or_default();
        assert_eq!((name.as_str(), uid.as_str()), (text("name"), text("uid")));
        assert_eq!(*generation, row["metadata"]["generation"].as_i64().unwrap_or_default());
        match status {
            Status::Here(status) => {
                assert_eq!(parse_foreign(status.as_bytes(), status.len()).as_ref(), Ok(&row["status"]));
            }
            Status::Absent => assert!(row["status"].is_null()),
            Status::TooLarge => {}
        }
    }
}

/// An inventory of these answers.
fn kinds(answers: &[Answer], arrival: Arrival) {
    let read = inventory::read(&client(answers, arrival).0, &SystemClock::default());
    let counts = read.counts();
    let inventory = serde_json::to_value(&read).expect("it can be written");
    for (kind, ..) in inventory::KINDS {
        let (state, items) = (inventory[kind]["state"].as_str(), inventory[kind]["items"].as_array());
        let (state, items) = (state.expect("a state"), items.expect("items"));
        assert!(["ok", "forbidden", "absent", "incomplete", "too_large"].contains(&state), "{state}");
        assert_eq!(counts[kind].as_u64().is_some(), state == "ok", "{kind}");
        assert!(state == "ok" || items.is_empty(), "{kind} could not be read, and is shown");
        let names = items.iter().map(|item| item["name"].as_str().unwrap_or_default());
        assert!(names.is_sorted(), "{kind} is not sorted");
    }
    let mut report = Carrier::new(json!({ "components": [] }), Some(read));
    report.fit(600);
    let text = report.to_json();
    let nodes = serde_json::from_slice::<Value>(&text).expect("JSON")["inventory"]["nodes"]["items"].take();
    assert!(text.len() <= 600 || nodes == json!([]));
}

/// Bodies that break off.
fn broken(answers: &[Answer], cut: usize) {
    let arrival = Arrival::Broken(cut);
    let cut_short: Vec<Answer> =
        answers.iter().filter(|answer| answer.body.len() > cut || !answer.succeeds()).cloned().collect();
    if cut_short.is_empty() {
        return;
    }
    match get(&cut_short[0], arrival) {
        Err(error) => is_of(&error, &cut_short[0]),
        Ok(object) => panic!("{object:?} of a body that broke off"),
    }
    assert!(
        watch::list(&client(&cut_short, arrival).0, &SystemClock::default(), |_| true).is_err(),
        "a list that broke off was taken"
    );
}
