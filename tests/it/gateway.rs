//! A gateway that delivers what a scenario wants and keeps what the agent sends: the wire of CONTRACT
//! section 4 without a manager behind it.

use crate::lab::{BOUND, POD};
use crate::signer::Signer;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use navin_test_support::{Agent, World, until};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
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
    port: u16,
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
        let certificate =
            CertificateDer::from_pem_file(file("server.crt")).expect("the server's certificate");
        let key = PrivateKeyDer::from_pem_file(file("server.key")).expect("the server's key");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows the protocol versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the key is the certificate's");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let shared = Arc::new(Shared::default());
        let (config, ours) = (Arc::new(config), Arc::clone(&shared));
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if ours.closed.load(Ordering::Relaxed) {
                    return;
                }
                let (config, shared) = (Arc::clone(&config), Arc::clone(&ours));
                // A connection that breaks is the agent's to notice, or its end.
                thread::spawn(move || drop(serve(connection, config, &shared)));
            }
        });
        Self { shared, port }
    }

    /// `https://127.0.0.1:<port>`.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
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
        // Wakes the thread that accepts; it ends where nobody can connect any more either.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

type Connection = BufReader<StreamOwned<ServerConnection, TcpStream>>;

fn serve(socket: TcpStream, config: Arc<ServerConfig>, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut connection = BufReader::new(StreamOwned::new(session, socket));
    while let Some((request, body)) = receive(&mut connection)? {
        let Some(answer) = answer(shared, &request, &body) else { return Ok(()) };
        let date = DateTimePrinter::new()
            .timestamp_to_rfc9110_string(&Timestamp::now())
            .map_err(io::Error::other)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        let stream = connection.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(answer.as_bytes())?;
        stream.flush()?;
    }
    Ok(())
}

/// One request, its first line and its body; none at the end of the connection.
fn receive(connection: &mut Connection) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut request = String::new();
    if connection.read_line(&mut request)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok(Some((request, body)))
}

/// What to answer; none where the connection shall break instead.
fn answer(shared: &Shared, request: &str, body: &[u8]) -> Option<String> {
    let sent = || serde_json::from_slice(body).unwrap_or_else(|error| panic!("{request}: {error}"));
    if let Some((_, wait)) = request.split_once("/v1/cluster-agent/commands?wait_s=") {
        let seconds = wait.split(' ').next()?.parse().ok()?;
        return Some(poll(shared, Duration::from_secs(seconds)));
    }
    let mut script = shared.script();
    if request.starts_with("POST /v1/cluster-agent/receipts ") {
        script.receipts.push(sent());
        if let Some(left) = script.unanswered.checked_sub(1) {
            script.unanswered = left;
            return None;
        }
        return Some(json!({ "recorded": true }).to_string());
    }
    assert!(request.starts_with("POST /v1/cluster-agent/report "), "a call of the contract: {request}");
    script.reports.push(sent());
    Some(json!({ "inventory": "kept" }).to_string())
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
