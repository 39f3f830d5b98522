//! Agents: each with an identity and one connection of its own, on which it polls and answers.

use crate::ledger::{Delivery, Ledger};
use crate::site::Site;
use crate::wire::{Answer, Broken, Wire};
use hyper::Method;
use rustls::ClientConfig;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The longest pause after a failure; a random one up to it, doubled with each failure from a second.
const PAUSE_MS: u64 = 30_000;
/// The longest poll, in seconds.
const WAIT_S: u64 = 30;
/// Of so many agents one is silent.
const SILENT: usize = 50;

/// What agents share.
pub(crate) struct World {
    pub(crate) site: Site,
    pub(crate) ledger: Ledger,
    /// How many have a poll open, as far as they can know: it was sent, and is not answered.
    pub(crate) polling: AtomicUsize,
    /// How many answers asked for a pause (429, 503).
    pub(crate) put_off: AtomicUsize,
    /// Whether one of each [`SILENT`] agents says nothing to a command's first delivery.
    pub(crate) silence: AtomicBool,
    /// How many connections were opened.
    pub(crate) opened: AtomicUsize,
}

/// One agent.
struct Agent {
    number: usize,
    world: Arc<World>,
    tls: Arc<ClientConfig>,
    wire: Option<Wire>,
    /// Which gateway it calls.
    gateway: usize,
    failures: u32,
}

/// Starts an agent, which goes on until it is aborted.
pub(crate) fn start(number: usize, world: &Arc<World>, tls: Arc<ClientConfig>) -> JoinHandle<()> {
    let gateway = number % world.site.gateways.len();
    let mut agent = Agent { number, world: Arc::clone(world), tls, wire: None, gateway, failures: 0 };
    tokio::spawn(async move {
        // The first poll of each is of another length: afterwards they come evenly.
        let mut wait_s = 1 + random(WAIT_S);
        loop {
            if let Some(commands) = agent.poll(wait_s).await {
                wait_s = WAIT_S;
                agent.answer(&commands).await;
            }
        }
    })
}

impl Agent {
    async fn poll(&mut self, wait_s: u64) -> Option<Vec<Value>> {
        let path = format!("/v1/cluster-agent/commands?wait_s={wait_s}");
        let life = self.world.site.gateways[self.gateway].life();
        let answer = self.call(Method::GET, &path, String::new(), true).await?;
        let delivery = |at| Delivery { at, gateway: self.gateway, life };
        let mut document: Value = serde_json::from_slice(&answer.body).expect("JSON of the gateway");
        let Value::Array(commands) = document["commands"].take() else { panic!("no commands") };
        let now = std::time::Instant::now();
        let keep = |command: &Value| {
            let id = command["payload"]["command_id"].as_str().expect("a command_id");
            let times = self.world.ledger.delivered(id, delivery(now));
            let silent = self.number % SILENT == 1 && self.world.silence.load(Ordering::Relaxed);
            times > 1 || !silent
        };
        Some(commands.into_iter().filter(keep).collect())
    }

    /// Sends each receipt until it is answered.
    async fn answer(&mut self, commands: &[Value]) {
        for command in commands {
            let payload = &command["payload"];
            let receipt = json!({
                "type": "navin.receipt/v1",
                "command_id": payload["command_id"],
                "nonce": payload["nonce"],
                "tenant_id": payload["tenant_id"],
                "cluster_id": payload["target"]["id"],
                "status": "succeeded",
                "recorded": true,
                "executed_at": "2026-11-30T12:00:00Z",
                "replica": "load",
                "source": "gateway",
            });
            let answer = loop {
                let sent = self.call(Method::POST, "/v1/cluster-agent/receipts", receipt.to_string(), false);
                if let Some(answer) = sent.await {
                    break answer;
                }
            };
            let answer: Value = serde_json::from_slice(&answer.body).expect("JSON of the gateway");
            let id = payload["command_id"].as_str().expect("a command_id");
            self.world.ledger.acknowledged(id, answer["recorded"] == true);
        }
    }

    /// One call; where it does not succeed, the pause that it asks for, and nothing.
    async fn call(&mut self, method: Method, path: &str, body: String, is_poll: bool) -> Option<Answer> {
        match self.once(method, path, body, is_poll).await {
            Ok(answer) if answer.status == 200 => {
                self.failures = 0;
                return Some(answer);
            }
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.body);
                assert!(
                    matches!(answer.status, 429 | 503),
                    "agent {}: {} {text}",
                    self.number,
                    answer.status
                );
                self.world.put_off.fetch_add(1, Ordering::Relaxed);
                let asked = answer.retry_after_s.unwrap_or(1).clamp(1, 60);
                tokio::time::sleep(Duration::from_millis(asked * 1000 + random(1000))).await;
            }
            Err(_) => {
                // As a load balancer would: the next one is tried.
                self.wire = None;
                self.gateway = (self.gateway + 1) % self.world.site.gateways.len();
                self.failures += 1;
                let most = (1000 << self.failures.min(5)).min(PAUSE_MS);
                tokio::time::sleep(Duration::from_millis(random(most))).await;
            }
        }
        None
    }

    async fn once(
        &mut self,
        method: Method,
        path: &str,
        body: String,
        is_poll: bool,
    ) -> Result<Answer, Broken> {
        let wire = match &mut self.wire {
            Some(wire) => wire,
            none => {
                let address = self.world.site.gateways[self.gateway].address;
                let wire = Wire::open(address, &self.tls).await?;
                self.world.opened.fetch_add(1, Ordering::Relaxed);
                none.insert(wire)
            }
        };
        let count = |by: usize| self.world.polling.fetch_add(if is_poll { by } else { 0 }, Ordering::Relaxed);
        count(1);
        let answer = wire.send(method, path, None, body).await;
        count(usize::MAX);
        answer
    }
}

/// A random number below `below`.
pub(crate) fn random(below: u64) -> u64 {
    let mut bytes = [0; 8];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes).expect("randomness");
    u64::from_le_bytes(bytes) % below.max(1)
}
