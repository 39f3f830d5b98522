//! A TLS proxy between one agent and one server, which records each call and lets a test break it.
//!
//! It shows the server's own certificate (both servers leave their keys in files here), and to the
//! gateway it shows the agent's, so that neither side is configured otherwise than without it. Each
//! connection of the agent has one of the proxy's own behind it; nothing is ever sent twice.

mod call;
mod door;
mod exchange;
pub(crate) mod message;
mod serve;
pub(crate) mod tls;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::{ClientConfig, ServerConfig};

pub use call::{Call, Exchange, Fate, Gate, Raw, Reply, Server};
pub use door::Door;
pub use wire::Wire;

use crate::cluster::Cluster;
use crate::manager::Manager;
use crate::wait::until;
pub use tls::client_config;
use tls::{client_config_of, server_config, server_config_of};

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
    shown: Mutex<Arc<ServerConfig>>,
    behind: Mutex<Arc<ClientConfig>>,
    door: Mutex<Door>,
    /// How many connections were made so far: the number of the next one.
    accepted: AtomicU64,
    /// Those with a lower number have fallen silent for good.
    silent_below: AtomicU64,
    /// So has one over which nothing went for so long.
    forgets_after: Mutex<Option<Duration>>,
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
        let behind = client_config_of(&ca, identity);
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
            shown: Mutex::new(Arc::new(shown)),
            behind: Mutex::new(Arc::new(behind)),
            door: Mutex::default(),
            accepted: AtomicU64::new(0),
            silent_below: AtomicU64::new(0),
            forgets_after: Mutex::default(),
            closed: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let ours = Arc::clone(&inner);
        let accepting = Some(thread::spawn(move || door::accept(listener, &ours)));
        Self { inner, port, accepting }
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on it shows this certificate, in PEM, to whoever connects.
    pub fn show(&self, chain: &str, key: &str) {
        *lock(&self.inner.shown) = Arc::new(server_config_of(chain, key));
    }

    /// From now on it passes for the agent with this identity, which was issued anew.
    pub fn speak_as(&self, identity: &Path) {
        let ca = std::fs::read_to_string(identity.join("ca.crt")).expect("the identity's ca.crt");
        *lock(&self.inner.behind) = Arc::new(client_config_of(&ca, identity));
    }

    /// From now on this becomes of new connections; those of before go on.
    pub fn door(&self, door: Door) {
        door::set(&self.inner, self.port, door);
    }

    /// Lets every connection that is open now fall silent for good: what is sent over it arrives nowhere, and
    /// nobody is told, as where a firewall has lost it.
    pub fn fall_silent(&self) {
        self.inner.silent_below.store(self.inner.accepted.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// From now on a connection falls silent over which nothing went for `idle`; `None`: no more.
    pub fn forget_after(&self, idle: Option<Duration>) {
        *lock(&self.inner.forgets_after) = idle;
    }

    /// How many connections were made so far.
    pub fn accepted(&self) -> u64 {
        self.inner.accepted.load(Ordering::SeqCst)
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
        self.inner.closed.store(true, Ordering::SeqCst);
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
        lock(&self.open)
    }

    fn closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether a connection has fallen silent, over which nothing went for so long.
    fn is_silent(&self, connection: u64, idle: Duration) -> bool {
        connection < self.silent_below.load(Ordering::SeqCst)
            || lock(&self.forgets_after).is_some_and(|limit| idle >= limit)
    }

    fn register(&self, connection: u64, socket: &TcpStream) -> io::Result<()> {
        self.open().entry(connection).or_default().push(socket.try_clone()?);
        // Between the closing and this: nobody would break it any more.
        if self.closed() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
