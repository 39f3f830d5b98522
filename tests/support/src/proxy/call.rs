//! One call through a proxy, what became of it, and what a test may do with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::wait::until;

/// Which server a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// kube-apiserver.
    Api,
    /// The manager's gateway.
    Gateway,
}

/// One request as the proxy read it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its place among all calls of the wire, from 0.
    pub number: usize,
    /// The pod of the agent that sent it.
    pub agent: String,
    /// For whom it is.
    pub server: Server,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The bearer token that it carries.
    pub bearer: Option<String>,
    /// The body; empty where it was too large to be recorded.
    pub body: Arc<[u8]>,
    /// When it was read.
    pub at: Instant,
}

impl Call {
    /// The path without its query.
    pub fn resource(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Whether it is this method on a path that ends so, the query left out.
    pub fn is(&self, method: &str, resource_end: &str) -> bool {
        self.method == method && self.resource().ends_with(resource_end)
    }

    /// Whether it changes something at the API server.
    pub fn mutates(&self) -> bool {
        self.server == Server::Api && self.method != "GET"
    }

    /// The body as JSON, `null` where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What the server answered.
#[derive(Clone, Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// The body; empty where it was too large to be recorded.
    pub body: Arc<[u8]>,
    /// When the proxy had read it.
    pub at: Instant,
}

impl Reply {
    /// The body as JSON, `null` where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A call, and what became of it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request.
    pub call: Call,
    /// When it was passed on to the server, if it was.
    pub forwarded: Option<Instant>,
    /// What the server answered, whether or not the agent was given it.
    pub reply: Option<Reply>,
    /// Whether the agent was given an answer.
    pub given: bool,
}

impl Exchange {
    /// Whether the server did what was asked.
    pub fn took_effect(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| (200..300).contains(&reply.status))
    }
}

/// What is done with a call. The rule is asked twice: before the call is passed on, and, with the
/// server's answer in hand, before that is given to the agent.
#[derive(Clone, Debug)]
pub enum Fate {
    /// Goes on.
    Pass,
    /// The connection breaks: before, and the server never sees the call; after, and the answer is lost.
    Cut,
    /// Goes on after this time.
    Delay(Duration),
    /// Waits for the test.
    Hold(Gate),
    /// The agent is given this instead: before, and the server never sees the call.
    Answer {
        /// HTTP status.
        status: u16,
        /// JSON body.
        body: String,
        /// `Retry-After`, in seconds.
        retry_after_s: Option<u64>,
    },
    /// The agent is given this instead, as a server in between would answer.
    Page {
        /// HTTP status.
        status: u16,
        /// `Content-Type`.
        kind: &'static str,
        /// `Retry-After`, as it stands.
        retry_after: Option<String>,
        /// The body.
        body: String,
    },
    /// The agent is given these bytes instead: before, and the server never sees the call.
    Raw(Raw),
    /// The agent is given what this makes of the server's answer; before the answer, and on a watch, the call
    /// goes on.
    Bent(fn(&[u8]) -> Raw),
}

/// Bytes in place of an answer.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    /// What is sent.
    pub bytes: Vec<u8>,
    /// How many spaces follow.
    pub spaces: u64,
    /// The pause after each byte of `bytes`.
    pub pause: Duration,
    /// The connection goes on after them; else it ends.
    pub keep: bool,
}

impl Fate {
    /// An answer with a Kubernetes Status or a gateway error in it; either side reads what it knows.
    pub fn answer(status: u16, reason: &str) -> Self {
        let body = serde_json::json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "reason": reason, "message": reason, "code": status, "error": reason });
        Self::Answer { status, body: body.to_string(), retry_after_s: None }
    }
}

/// Where a call waits until the test lets it go on or cuts it.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<GateState>>);

#[derive(Debug, Default)]
struct GateState {
    reached: bool,
    verdict: Option<bool>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reach(&self) {
        self.state().reached = true;
    }

    /// Whether what waits here passes; none while it waits.
    pub(super) fn verdict(&self) -> Option<bool> {
        self.state().verdict
    }

    /// Whether a call waits here, or did.
    pub fn is_reached(&self) -> bool {
        self.state().reached
    }

    /// Waits until a call waits here.
    #[track_caller]
    pub fn wait_reached(&self, bound: Duration) {
        until("a call to be held", bound, || self.is_reached().then_some(()));
    }

    /// Lets go on what waits here, and what will come.
    pub fn pass(&self) {
        self.state().verdict = Some(true);
    }

    /// Cuts what waits here, and what will come.
    pub fn cut(&self) {
        self.state().verdict = Some(false);
    }
}
