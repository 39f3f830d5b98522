//! Connections: TLS, the certificate of the other side, limits, the end.

use crate::failure::Failure;
use crate::keys::Keys;
use crate::limits::Limits;
use crate::signing::sha256_hex;
use crate::stop::Stop;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take for the head of a request, or leave a connection idle.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);

/// Most bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Most connections of one client certificate.
const MAX_OF_ONE: usize = 64;

/// How long open requests may still take when the process is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Pause after a connection that the system did not hand over, such as when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who is at the other end.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// SHA-256 of the client certificate, where there is one.
    pub(crate) fingerprint: Option<String>,
}

/// A port that is bound.
pub(crate) struct Port {
    listener: TcpListener,
    address: SocketAddr,
    tls: TlsAcceptor,
    max_connections: usize,
    of_one: Arc<Limits>,
}

/// Which clients a port lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Any.
    Any,
    /// Those with a certificate of our authority.
    Certified,
}

impl Port {
    /// Binds an address.
    pub(crate) async fn bind(
        address: SocketAddr,
        keys: &Keys,
        clients: Clients,
        max_connections: usize,
    ) -> Result<Self, Failure> {
        let tls = TlsAcceptor::from(Arc::new(tls_config(keys, clients)?));
        let listen_error = |error| Failure::Listen { address, error };
        let listener = TcpListener::bind(address).await.map_err(listen_error)?;
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
        let mut connections = JoinSet::new();
        loop {
            // Above the limit nothing is accepted: the system's queue holds back the rest.
            let slot = tokio::select! {
                biased;
                () = stop.wait() => break,
                slot = Arc::clone(&slots).acquire_owned() => slot,
            };
            let accepted = tokio::select! {
                biased;
                () = stop.wait() => break,
                accepted = self.listener.accept() => accepted,
            };
            let tcp = match accepted {
                Ok((tcp, _)) => tcp,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (tls, router, stop) = (self.tls.clone(), router.clone(), stop.clone());
            let of_one = Arc::clone(&self.of_one);
            connections.spawn(async move {
                connection(tcp, tls, router, stop, &of_one).await;
                drop(slot);
            });
            while connections.try_join_next().is_some() {}
        }
        drop(self.listener);
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
            tracing::warn!("requests were cut off at the end");
        }
    }
}

async fn connection(tcp: TcpStream, tls: TlsAcceptor, router: Router, stop: Stop, of_one: &Arc<Limits>) {
    drop(tcp.set_nodelay(true));
    let handshake = tokio::select! {
        handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(tcp)) => handshake,
        () = stop.wait() => return,
    };
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
        Err(_) => {
            tracing::debug!("a TLS handshake took too long");
            return;
        }
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let peer = Peer { fingerprint: certificate.map(|der| sha256_hex(der)) };
    let place = peer.fingerprint.as_deref().map(|fingerprint| of_one.enter(fingerprint));
    if matches!(place, Some(None)) {
        tracing::warn!(certificate = peer.fingerprint, "too many connections of one client: closed");
        return;
    }
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

fn tls_config(keys: &Keys, clients: Clients) -> Result<ServerConfig, Failure> {
    let tls_error = |error: &dyn std::fmt::Display| Failure::System(format!("TLS: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| tls_error(&error))?;
    let builder = match clients {
        Clients::Any => builder.with_no_client_auth(),
        Clients::Certified => {
            let mut roots = RootCertStore::empty();
            roots.add(keys.authority.der().clone()).map_err(|error| tls_error(&error))?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| tls_error(&error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::clone(&keys.server) as Arc<dyn ResolvesServerCert>);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would keep a client's certificate without verifying it again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}
