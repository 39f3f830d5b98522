//! Connections: TLS, the certificate of the other side, limits, the end.

use super::tls::{Clients, tls_config};
use crate::app::peer::Peer;
use crate::keys::server::ServerKey;
use crate::keys::signing::sha256_hex;
use crate::limits::callers::{Limits, Place};
use crate::limits::newcomers::{Newcomer, Newcomers, Progress};
use crate::process::failure::Failure;
use crate::process::stop::Stop;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a TLS handshake may take, and of that, its first message.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a client may take for the head of a request, or leave a connection idle: longer than
/// the agent does (15 s), so that it is the one to close.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a client may take nothing of what it is sent, in milliseconds. Kept by the system, under TLS,
/// so that whatever comes through counts, and also once all was handed to it.
const UNREAD_LIMIT_MS: u32 = 30_000;

/// Connections of a port that have not sent a request yet: at most as many as it has connections, within
/// these. An empty one takes a few KiB, one in its handshake some 30.
const LEAST_NEWCOMERS: usize = 64;
const MAX_NEWCOMERS: usize = 4096;

/// How long each of them has, though there are too many, before its first message is there.
const NEWCOMERS_HAVE: Duration = Duration::from_secs(2);

/// Most bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Most connections of one client certificate.
const MAX_OF_ONE: usize = 64;

/// How long open requests may still take when the process is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 4096;

/// Pause after a connection that the system did not hand over, such as when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port that is bound.
pub(crate) struct Port {
    listener: TcpListener,
    address: SocketAddr,
    tls: Arc<ServerConfig>,
    max_connections: usize,
    of_one: Arc<Limits>,
}

impl Port {
    /// Binds an address.
    pub(crate) fn bind(
        address: SocketAddr,
        server: &Arc<ServerKey>,
        clients: Clients,
        max_connections: usize,
    ) -> Result<Self, Failure> {
        let tls = Arc::new(tls_config(server, clients)?);
        let listen_error = |error| Failure::Listen { address, error };
        let listener = listen(address).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(Self { listener, address, tls, max_connections, of_one: Limits::new(MAX_OF_ONE) })
    }

    /// The address as a URL.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Serves until `stop`, and then what is under way.
    pub(crate) async fn serve(self, router: Router, stop: Stop) {
        let slots = Arc::new(Semaphore::new(self.max_connections));
        let newcomers = Newcomers::new(newcomers_of(self.max_connections), NEWCOMERS_HAVE);
        let server = Arc::new(Server {
            tls: self.tls,
            router,
            stop: stop.clone(),
            of_one: self.of_one,
            slots: Arc::clone(&slots),
        });
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.wait() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((tcp, from)) => {
                    let newcomer = newcomers.enter(from.ip());
                    drop(tokio::spawn(handshake(tcp, Arc::clone(&server), newcomer)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        let all = u32::try_from(self.max_connections).unwrap_or(u32::MAX);
        if tokio::time::timeout(DRAIN_TIMEOUT, slots.acquire_many(all)).await.is_err() {
            tracing::warn!("requests were cut off at the end");
        }
    }
}

/// Files that a port with so many connections may have open.
pub(crate) fn files_of(max_connections: usize) -> usize {
    max_connections.saturating_add(newcomers_of(max_connections))
}

fn newcomers_of(max_connections: usize) -> usize {
    max_connections.clamp(LEAST_NEWCOMERS, MAX_NEWCOMERS)
}

/// Listens, with room for a fleet that comes back all at once.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As after a restart, while connections of the former process are still in their last wait.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What the connections of a port share.
struct Server {
    tls: Arc<ServerConfig>,
    router: Router,
    stop: Stop,
    of_one: Arc<Limits>,
    slots: Arc<Semaphore>,
}

async fn handshake(
    tcp: TcpStream,
    server: Arc<Server>,
    (newcomer, mut cut): (Newcomer, oneshot::Receiver<()>),
) {
    drop(tcp.set_nodelay(true));
    if let Err(error) = set_tcp_user_timeout(&tcp, UNREAD_LIMIT_MS) {
        return tracing::debug!(%error, "a connection without a limit on what it does not read: closed");
    }
    let accept = async {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), tcp);
        let hello = tokio::time::timeout(HELLO_TIMEOUT, hello).await.map_err(io::Error::from)??;
        newcomer.made(Progress::Hello);
        hello.into_stream(Arc::clone(&server.tls)).await
    };
    let handshake = tokio::select! {
        handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, accept) => handshake,
        _ = &mut cut => return tracing::debug!("a TLS handshake was cut off for others"),
        () = server.stop.wait() => return,
    };
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => return tracing::debug!("a TLS handshake took too long"),
    };
    newcomer.made(Progress::Secured);
    begin(stream, server, newcomer, cut);
}

/// Starts the task of a connection. What goes into it is made here, since a task is as large as all that
/// it ever held.
fn begin(stream: TlsStream<TcpStream>, server: Arc<Server>, newcomer: Newcomer, cut: oneshot::Receiver<()>) {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let fingerprint: Option<Arc<str>> = certificate.map(|der| sha256_hex(der).into());
    let place = fingerprint.as_ref().map(|fingerprint| server.of_one.enter(fingerprint)).transpose();
    let Ok(place) = place else {
        let certificate = fingerprint.as_deref();
        return tracing::warn!(certificate, "too many connections of one client: closed");
    };
    let service = Calls {
        router: TowerToHyperService::new(server.router.clone()),
        peer: Arc::new(Peer::new(fingerprint, newcomer, &server.slots)),
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::spawn(connection_until_end(Box::pin(connection), server, cut, place));
}

/// Serves a connection; gives back what it held.
async fn connection_until_end(
    mut connection: Pin<Box<http1::Connection<TokioIo<TlsStream<TcpStream>>, Calls>>>,
    server: Arc<Server>,
    mut cut: oneshot::Receiver<()>,
    _place: Option<Place>,
) {
    let mut is_new = true;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            left = &mut cut, if is_new => match left {
                Ok(()) => is_new = false,
                Err(_) => return tracing::debug!("a connection without a request was cut off for others"),
            },
            () = server.stop.wait() => {
                connection.as_mut().graceful_shutdown();
                break connection.await;
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// The calls of one connection.
struct Calls {
    router: TowerToHyperService<Router>,
    peer: Arc<Peer>,
}

impl Service<Request<Incoming>> for Calls {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(Arc::clone(&self.peer));
        self.router.call(request)
    }
}
