//! One command: from the manager's queue to its receipt at the manager.

use crate::Plan;
use crate::audit::Call;
use crate::lab::{BOUND, Lab, component, spec, who};
use crate::operator::Operator;
use crate::raw::Raw;
use crate::table::{Goal, Row, Sample};
use crate::units::milliseconds;
use jiff::Timestamp;
use navin_test_support::until;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// From one command to the next: the acknowledgement of the one before has been written by then.
const PAUSE: Duration = Duration::from_millis(1200);
/// From one look for the receipt to the next.
const LOOK: Duration = Duration::from_micros(200);
const JSON: &str = "application/json";

pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let world = lab.world("command", &json!({}));
    let agent = lab.ours(&world, "command-0");
    agent.wait_leads(&world.namespace, BOUND);
    let mut operator = Operator::of(&world);
    let mut least = Duration::MAX;
    let who = who(&agent);
    let mut once = |number: u32| {
        let id = operator.apply(&format!("one-{number:04}"), &spec(number));
        let (began, since) = (Instant::now(), Timestamp::now());
        // Nobody looks while it cannot be there yet: that would take the processor from what is measured.
        thread::sleep(if least == Duration::MAX { Duration::ZERO } else { least.mul_f64(0.7) });
        operator.wait(&id, LOOK);
        let (took, until) = (began.elapsed(), Timestamp::now());
        least = least.min(took);
        let calls = calls_of_one(lab, &who, since);
        (Took::new(milliseconds(took), since, &calls, until), calls)
    };
    once(0);
    thread::sleep(PAUSE);
    let (_, calls) = once(1);
    let mut bare = Bare::of(lab);
    let (mut ours, mut limit) = (vec![], vec![]);
    for number in 2..plan.times(50) + 2 {
        thread::sleep(PAUSE);
        ours.push(once(number).0);
        let state = lab.admin().get(&world.namespace.state_path()).1;
        limit.push(bare.run(&calls, &state, number));
    }
    let what = calls.iter().map(|call| format!("{} {}", call.verb, call.resource));
    eprintln!("one command costs: {}", what.collect::<Vec<_>>().join(", "));
    let part = |what: &str, part: fn(&Took) -> f64| Row {
        what: format!("one command, {what}, ms"),
        ours: Sample::of(ours.iter().map(part)),
        ..Row::default()
    };
    vec![
        Row {
            limit: Some(("the same API calls", Sample::of(limit))),
            goals: vec![Goal::TimesLimit(1.25)],
            ..part("queued to its receipt at the manager", |took| took.ms)
        },
        part("of that from the queue to its first call of the API server", |took| took.to_first),
        part("of that from its first call to the end of its last", |took| took.calls),
        part("of that inside the API server, by its log", |took| took.inside),
        part("of that from the end of its last call to the receipt", |took| took.after),
    ]
}

/// One command, and its parts by the API server's log, in milliseconds.
struct Took {
    ms: f64,
    to_first: f64,
    calls: f64,
    inside: f64,
    after: f64,
}

impl Took {
    fn new(ms: f64, since: Timestamp, calls: &[Call], until: Timestamp) -> Self {
        let between = |from: Timestamp, to: Timestamp| milliseconds(to.duration_since(from).unsigned_abs());
        let [first, .., last] = calls else { panic!("a command costs more than a call: {calls:?}") };
        Self {
            ms,
            to_first: between(since, first.received),
            calls: between(first.received, last.answered),
            inside: calls.iter().map(|call| between(call.received, call.answered)).sum(),
            after: between(last.answered, until),
        }
    }
}

/// What the agent asked of the API server from the first write of the state to the second, and before the first
/// where it read for it; its renewals left out.
fn calls_of_one(lab: &Lab, who: &str, since: Timestamp) -> Vec<Call> {
    until("both writes of the state in the audit log", BOUND, || {
        let mut calls = lab.audit.of(who, since);
        calls.sort_by_key(|call| call.received);
        let is_state = |call: &Call| call.resource == "configmaps";
        let first = calls.iter().position(is_state)?;
        let second = first + 1 + calls.iter().skip(first + 1).position(is_state)?;
        let ours = |call: &&Call| {
            let renewal = call.resource == "leases" && call.verb != "get";
            !renewal && call.verb != "watch" && call.resource != "events"
        };
        Some(calls[first..=second].iter().filter(ours).cloned().collect())
    })
}

/// The same calls one after the other, in a namespace of their own, with the same rights.
struct Bare {
    raw: Raw,
    namespace: String,
    components: String,
    state: String,
    lease: String,
}

impl Bare {
    fn of(lab: &Lab) -> Self {
        let namespace = lab.cluster.namespace("command-limit");
        let token = lab.cluster.service_account_token(&namespace.name, "navin-cluster-agent");
        let raw = Raw::connect_to(lab.cluster.url(), lab.cluster.ca_pem(), &token);
        let (admin, name) = (lab.admin(), &namespace.name);
        let made = [
            admin.post(
                &format!("/api/v1/namespaces/{name}/configmaps"),
                &json!({ "metadata": { "name": "navin-cluster-agent-state" } }),
            ),
            admin.post(
                &format!("/apis/coordination.k8s.io/v1/namespaces/{name}/leases"),
                &json!({ "metadata": { "name": "navin-cluster-agent" }, "spec": { "holderIdentity": "x" } }),
            ),
        ];
        assert!(made.iter().all(|(status, _)| *status == 201), "{made:?}");
        let (state, lease) = (namespace.state_path(), namespace.lease_path());
        Self { raw, components: namespace.components_path(), namespace: namespace.name, state, lease }
    }

    /// `state` is written as it is now at the agent.
    fn run(&mut self, calls: &[Call], state: &Value, number: u32) -> f64 {
        let components = &self.components;
        let name = format!("one-{number:04}");
        let text = state["data"]["state.json"].as_str().expect("a state");
        let body = |turn: usize| {
            let metadata = json!({ "name": "navin-cluster-agent-state", "namespace": self.namespace });
            // Another text each time: a write of the same would not be one.
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": { "state.json": format!("{text}{}", " ".repeat(turn % 2)) } })
            .to_string()
        };
        let (bodies, object) = ([body(0), body(1)], component(&self.namespace, &name, number, ""));
        let began = Instant::now();
        for (turn, call) in calls.iter().enumerate() {
            let (method, path, body) = match (call.verb.as_str(), call.resource.as_str()) {
                ("get", "leases") => ("GET", self.lease.clone(), ""),
                ("get", "managedcomponents") => ("GET", format!("{components}/{name}"), ""),
                ("create", "managedcomponents") => ("POST", components.clone(), object.as_str()),
                ("update", "configmaps") => {
                    ("PUT", self.state.clone(), bodies[usize::from(turn > 0)].as_str())
                }
                other => panic!("one command costs a call that the bare limit does not know: {other:?}"),
            };
            let path = if method == "GET" { path } else { format!("{path}?timeout=5s&fieldManager=limit") };
            let (status, answer) = self.raw.call(method, &path, JSON, body.as_bytes());
            assert!(status < 300 || status == 404, "{method} {path}: {}", String::from_utf8_lossy(&answer));
        }
        milliseconds(began.elapsed())
    }
}
