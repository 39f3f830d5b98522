//! A TLS proxy between one agent and one server, which records each call and lets a test break it.
//!
//! It shows the server's own certificate (both servers leave their keys in files here), and to the
//! gateway it shows the agent's, so that neither side is configured otherwise than without it. Each
//! connection of the agent has one of the proxy's own behind it; nothing is ever sent twice.

mod call;
mod exchange;
mod message;
mod tls;
mod wire;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};

pub use call::{Call, Exchange, Fate, Gate, Reply, Server};
pub use wire::Wire;

use crate::cluster::Cluster;
use crate::manager::Manager;
use crate::wait::until;
use exchange::{FromAgent, ToAgent, ToServer, exchange, stream};
use message::Message;
use tls::{client_config, server_config};
use wire::Verdict;

/// Most connections at once; an agent has about eight.
const CONNECTIONS: usize = 64;
/// How long the server may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long either side may take to take in what is sent.
const SEND_LIMIT: Duration = Duration::from_secs(30);

/// A proxy; it ends, and breaks all that goes through it, with this value.
pub struct Proxy {
    inner: Arc<Inner>,
    port: u16,
    accepting: Option<JoinHandle<()>>,
}

struct Inner {
    agent: String,
    server: Server,
    wire: Wire,
    address: SocketAddr,
    shown: Arc<ServerConfig>,
    behind: Arc<ClientConfig>,
    closed: AtomicBool,
    /// Both ends of every connection, so that closing ends whatever waits for them.
    open: Mutex<BTreeMap<u64, Vec<TcpStream>>>,
}

impl Proxy {
    /// Between the agent in the pod `agent` and the API server.
    pub fn of_api_server(cluster: &Cluster, agent: &str, wire: &Wire) -> Self {
        let files = cluster.folder().join("certificates");
        let shown = server_config(&files.join("apiserver.crt"), &files.join("apiserver.key"));
        let behind = client_config(cluster.ca_pem(), None);
        Self::start(agent, Server::Api, wire, cluster.url(), shown, behind)
    }

    /// Between the agent in the pod `agent` and the manager's gateway, where it passes for the agent with
    /// this identity.
    pub fn of_gateway(manager: &Manager, identity: &Path, agent: &str, wire: &Wire) -> Self {
        let files = manager.data().join("tls");
        let shown = server_config(&files.join("server.crt"), &files.join("server.key"));
        let ca = std::fs::read_to_string(identity.join("ca.crt")).expect("the identity's ca.crt");
        let own = (identity.join("tls.crt"), identity.join("tls.key"));
        let behind = client_config(&ca, Some((own.0.as_path(), own.1.as_path())));
        Self::start(agent, Server::Gateway, wire, manager.gateway_url(), shown, behind)
    }

    fn start(
        agent: &str,
        server: Server,
        wire: &Wire,
        url: &str,
        shown: ServerConfig,
        behind: ClientConfig,
    ) -> Self {
        let address = url.trim_start_matches("https://").parse().expect("a loopback address and a port");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let inner = Arc::new(Inner {
            agent: agent.to_owned(),
            server,
            wire: wire.clone(),
            address,
            shown: Arc::new(shown),
            behind: Arc::new(behind),
            closed: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let ours = Arc::clone(&inner);
        let accepting = Some(thread::spawn(move || accept(&listener, &ours)));
        Self { inner, port, accepting }
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Breaks every connection that is open now.
    pub fn reset(&self) {
        for socket in self.inner.open().values().flatten() {
            // One that has ended already is what is wanted.
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.inner.closed.store(true, Ordering::Relaxed);
        self.reset();
        // Wakes the thread that accepts.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
        if !thread::panicking() {
            until("the proxy's connections to end", Duration::from_secs(10), || {
                self.reset();
                self.inner.open().is_empty().then_some(())
            });
        }
    }
}

impl Inner {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<TcpStream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, connection: u64, socket: &TcpStream) -> io::Result<()> {
        self.open().entry(connection).or_default().push(socket.try_clone()?);
        // Between the closing and this: nobody would break it any more.
        if self.closed.load(Ordering::Relaxed) {
            Err(io::ErrorKind::ConnectionAborted.into())
        } else {
            Ok(())
        }
    }
}

fn accept(listener: &TcpListener, inner: &Arc<Inner>) {
    for (socket, number) in listener.incoming().map_while(Result::ok).zip(0_u64..) {
        if inner.closed.load(Ordering::Relaxed) {
            return;
        }
        if inner.open().len() >= CONNECTIONS || inner.register(number, &socket).is_err() {
            continue;
        }
        let inner = Arc::clone(inner);
        thread::spawn(move || {
            // A connection that breaks is for the agent to notice.
            drop(serve(&inner, number, socket));
            inner.open().remove(&number);
        });
    }
}

fn serve(inner: &Inner, connection: u64, socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(SEND_LIMIT))?;
    let session = ServerConnection::new(Arc::clone(&inner.shown)).map_err(io::Error::other)?;
    let mut agent = StreamOwned::new(session, socket);
    let mut server = None;
    while let Some(request) = Message::read(&mut FromAgent(&mut agent))? {
        let mut words = request.first_line.split(' ').map(str::to_owned);
        let call = inner.wire.called(Call {
            number: 0,
            agent: inner.agent.clone(),
            server: inner.server,
            method: words.next().unwrap_or_default(),
            path: words.next().unwrap_or_default(),
            bearer: request.header("authorization").and_then(|v| Some(v.strip_prefix("Bearer ")?.into())),
            body: request.body.into(),
            at: Instant::now(),
        });
        let number = call.number;
        match inner.wire.judge(&call, None, &inner.closed) {
            Verdict::Pass => {}
            Verdict::Cut => return Ok(()),
            Verdict::Answer { status, kind, retry_after, body } => {
                give(inner, &mut agent, number, &own_answer(status, kind, retry_after.as_deref(), &body))?;
                continue;
            }
        }
        let server = match &mut server {
            Some(server) => server,
            None => server.insert(connect(inner, connection)?),
        };
        inner.wire.note(number, |exchange| exchange.forwarded = Some(Instant::now()));
        if call.path.contains("watch=") {
            return stream(server, &request.raw, &mut agent, |first_line| {
                let reply = Reply { status: status(first_line), body: Arc::from([]), at: Instant::now() };
                inner.wire.replied(number, &reply);
                matches!(inner.wire.judge(&call, Some(&reply), &inner.closed), Verdict::Pass)
            });
        }
        // Whoever waits for something to happen goes away when the agent does; a write is seen through.
        let patient = call.method != "GET";
        let answer = exchange(server, &request.raw, &agent.sock, patient)?;
        let reply =
            Reply { status: status(&answer.first_line), body: answer.body.into(), at: Instant::now() };
        inner.wire.replied(number, &reply);
        match inner.wire.judge(&call, Some(&reply), &inner.closed) {
            Verdict::Pass => give(inner, &mut agent, number, &answer.raw)?,
            Verdict::Cut => return Ok(()),
            Verdict::Answer { status, kind, retry_after, body } => {
                give(inner, &mut agent, number, &own_answer(status, kind, retry_after.as_deref(), &body))?;
            }
        }
    }
    Ok(())
}

fn status(first_line: &str) -> u16 {
    first_line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn give(inner: &Inner, agent: &mut ToAgent, number: usize, answer: &[u8]) -> io::Result<()> {
    agent.write_all(answer)?;
    agent.flush()?;
    inner.wire.note(number, |exchange| exchange.given = true);
    Ok(())
}

fn own_answer(status: u16, kind: &str, retry_after: Option<&str>, body: &str) -> Vec<u8> {
    let retry = retry_after.map_or_else(String::new, |when| format!("Retry-After: {when}\r\n"));
    format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: {kind}\r\n{retry}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn connect(inner: &Inner, connection: u64) -> io::Result<ToServer> {
    let socket = TcpStream::connect_timeout(&inner.address, CONNECT_LIMIT)?;
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(SEND_LIMIT))?;
    inner.register(connection, &socket)?;
    let name = ServerName::IpAddress(inner.address.ip().into());
    let session = ClientConnection::new(Arc::clone(&inner.behind), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(session, socket))
}
