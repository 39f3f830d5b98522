//! A gateway that delivers what a scenario wants and keeps what the agent sends: the wire of CONTRACT
//! section 4 without a manager behind it.

use crate::lab::{BOUND, POD};
use crate::signer::Signer;
use navin_test_support::{Agent, Request, TlsServer, World, until};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A world whose agent speaks to a scripted gateway; no agent runs until [`Scripted::agent`].
pub(crate) struct Scripted {
    pub(crate) world: World,
    pub(crate) gateway: ScriptedGateway,
    pub(crate) signer: Signer,
}

impl Scripted {
    /// Sets it up; `overrides` as for [`World::start`].
    pub(crate) fn start(name: &str, overrides: &Value) -> Self {
        Self::over(World::start(name, &json!({})), overrides)
    }

    /// The same over a world that was set up otherwise.
    pub(crate) fn over(world: World, overrides: &Value) -> Self {
        let gateway = ScriptedGateway::start(&world);
        let signer = Signer::of_manager(&world);
        let mut config = Map::from_iter([("gateway_url".to_owned(), json!(gateway.url()))]);
        config.extend(overrides.as_object().cloned().unwrap_or_default());
        world.reissue_identity(&Value::Object(config));
        Self { world, gateway, signer }
    }

    /// Starts a replica and waits until it leads and has written so.
    pub(crate) fn agent(&self) -> Agent {
        let agent = self.world.agent(POD);
        agent.wait_leads(&self.world.namespace, BOUND);
        until("the first takeover", BOUND, || (self.world.namespace.state()?["term"] == 1).then_some(()));
        agent
    }

    /// Signs a payload, delivers it, and waits for its one new receipt.
    #[track_caller]
    pub(crate) fn answer(&self, payload: &Value) -> Value {
        self.answer_to(&self.signer.sign(payload))
    }

    /// Delivers an envelope and waits for its one new receipt.
    #[track_caller]
    pub(crate) fn answer_to(&self, envelope: &Value) -> Value {
        let command_id = envelope["payload"]["command_id"].as_str().expect("a readable command_id");
        let before = self.gateway.receipts_of(command_id).len();
        self.gateway.deliver(&[envelope]);
        until("a receipt", BOUND, || self.gateway.receipts_of(command_id).into_iter().nth(before))
    }
}

/// The gateway; it ends with this value.
pub(crate) struct ScriptedGateway {
    shared: Arc<Shared>,
    server: TlsServer,
}

#[derive(Default)]
struct Shared {
    script: Mutex<Script>,
    changed: Condvar,
    closed: AtomicBool,
}

#[derive(Default)]
struct Script {
    /// Texts of envelopes, to be delivered together where they were given together.
    batches: VecDeque<Vec<String>>,
    receipts: Vec<Value>,
    reports: Vec<Value>,
    /// How many receipts are still to be taken in without an answer.
    unanswered: usize,
    polls: usize,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptedGateway {
    fn start(world: &World) -> Self {
        let file = |name: &str| world.manager.data().join("tls").join(name);
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let server = TlsServer::with_files(&file("server.crt"), &file("server.key"), move |request| {
            Some((200, answer(&ours, request)?))
        });
        Self { shared, server }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Delivers envelopes in one answer to a poll.
    pub(crate) fn deliver(&self, envelopes: &[&Value]) {
        self.deliver_texts(envelopes.iter().map(ToString::to_string).collect());
    }

    /// Delivers envelopes, byte for byte, in one answer to a poll.
    pub(crate) fn deliver_texts(&self, envelopes: Vec<String>) {
        self.shared.script().batches.push_back(envelopes);
        self.shared.changed.notify_all();
    }

    /// Takes in so many receipts, from now on, without answering them.
    pub(crate) fn lose_answers(&self, count: usize) {
        self.shared.script().unanswered = count;
    }

    /// Every receipt that was sent so far.
    pub(crate) fn receipts(&self) -> Vec<Value> {
        self.shared.script().receipts.clone()
    }

    /// Those of one command.
    pub(crate) fn receipts_of(&self, command_id: &str) -> Vec<Value> {
        self.receipts().into_iter().filter(|receipt| receipt["command_id"] == command_id).collect()
    }

    /// Every report that was sent so far.
    pub(crate) fn reports(&self) -> Vec<Value> {
        self.shared.script().reports.clone()
    }

    /// How many polls came so far.
    pub(crate) fn polls(&self) -> usize {
        self.shared.script().polls
    }

    /// Waits until more polls than `before` came: an agent that was started again asks for commands.
    #[track_caller]
    pub(crate) fn wait_poll(&self, before: usize) {
        until("a poll", BOUND, || (self.polls() > before).then_some(()));
    }
}

impl Drop for ScriptedGateway {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
    }
}

/// What to answer; none where the connection shall break instead.
fn answer(shared: &Shared, request: &Request) -> Option<String> {
    let sent =
        || serde_json::from_slice(&request.body).unwrap_or_else(|error| panic!("{request:?}: {error}"));
    if let Some(seconds) = request.path.strip_prefix("/v1/cluster-agent/commands?wait_s=") {
        return Some(poll(shared, Duration::from_secs(seconds.parse().ok()?)));
    }
    let mut script = shared.script();
    match request.path.as_str() {
        "/v1/cluster-agent/receipts" => {
            script.receipts.push(sent());
            if let Some(left) = script.unanswered.checked_sub(1) {
                script.unanswered = left;
                return None;
            }
            Some(json!({ "recorded": true }).to_string())
        }
        "/v1/cluster-agent/report" => {
            script.reports.push(sent());
            Some(json!({ "inventory": "kept" }).to_string())
        }
        _ => panic!("a call of the contract: {request:?}"),
    }
}

/// The long poll. Envelopes go out as the bytes that they are.
fn poll(shared: &Shared, wait: Duration) -> String {
    let started = Instant::now();
    let mut script = shared.script();
    script.polls += 1;
    let number = script.polls;
    // The poll of an agent that was killed is ended by the next one: nothing is delivered to the dead.
    shared.changed.notify_all();
    while script.batches.is_empty() {
        let left = wait.saturating_sub(started.elapsed());
        if left.is_zero() || shared.closed.load(Ordering::Relaxed) {
            break;
        }
        script = shared.changed.wait_timeout(script, left).unwrap_or_else(PoisonError::into_inner).0;
        if script.polls != number {
            return json!({ "commands": [] }).to_string();
        }
    }
    let envelopes = script.batches.pop_front().unwrap_or_default();
    format!("{{\"commands\":[{}]}}", envelopes.join(","))
}
