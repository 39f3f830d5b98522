//! Authorities, certificates, and a TLS server on loopback that answers `{}`, to see what the client does.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// An issuer of certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    pub(super) pem: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "a root");
        let own = params.self_signed(&key).unwrap();
        Self { issuer: Issuer::new(params, key), der: own.der().clone(), pem: own.pem() }
    }

    /// A certificate with these names, as PEM.
    pub(super) fn certify(&self, key: &KeyPair, names: &[SanType]) -> String {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names.to_vec();
        params.signed_by(key, &self.issuer).unwrap().pem()
    }

    /// One that ends then.
    pub(super) fn certify_until(&self, key: &KeyPair, (year, month, day): (i32, u8, u8)) -> String {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, month, day);
        params.signed_by(key, &self.issuer).unwrap().pem()
    }

    /// A server with these names that asks for no certificate.
    pub(super) fn server(&self, names: &[SanType]) -> ServerConfig {
        self.shown(names, Wanting::with_no_client_auth)
    }

    /// A server on this machine, of TLS 1.3 alone, that wants a certificate of `clients`.
    pub(super) fn server_for(&self, clients: &Self) -> ServerConfig {
        let mut roots = RootCertStore::empty();
        roots.add(clients.der.clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap();
        self.shown(&[ip("127.0.0.1")], |builder| builder.with_client_cert_verifier(verifier))
    }

    fn shown(
        &self,
        names: &[SanType],
        clients: impl FnOnce(Wanting) -> rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>,
    ) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let chain = super::certificates(self.certify(&key, names).as_bytes()).unwrap();
        let chain = chain.iter().map(|c| CertificateDer::from(c.der().to_vec())).collect();
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13]);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        clients(builder.unwrap()).with_single_cert(chain, key).unwrap()
    }
}

type Wanting = rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier>;

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(super) fn ip(text: &str) -> SanType {
    SanType::IpAddress(text.parse().unwrap())
}

pub(super) fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

/// A request that was answered.
pub(super) struct Seen {
    /// Which connection it came over, from 0.
    pub(super) connection: usize,
    pub(super) head: String,
    /// The client's own certificate, in DER.
    pub(super) certificate: Option<Vec<u8>>,
}

/// What a server does before it begins with TLS.
pub(super) type Before = fn(&mut TcpStream, &ServerConfig);

pub(super) struct Server {
    pub(super) port: u16,
    pub(super) seen: Receiver<Seen>,
}

impl Server {
    pub(super) fn start(address: &str, config: ServerConfig) -> Self {
        Self::after(address, config, |_, _| ())
    }

    pub(super) fn after(address: &str, config: ServerConfig, before: Before) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, seen) = channel();
        let config = Arc::new(config);
        thread::spawn(move || {
            for (connection, socket) in listener.incoming().enumerate() {
                let (mut socket, config, sender) = (socket.unwrap(), Arc::clone(&config), sender.clone());
                thread::spawn(move || {
                    before(&mut socket, &config);
                    // A connection that breaks is the client's to notice.
                    drop(serve(socket, config, connection, &sender));
                });
            }
        });
        Self { port, seen }
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The next request that came.
    pub(super) fn next(&self) -> Seen {
        self.seen.recv_timeout(Duration::from_secs(10)).expect("a request")
    }
}

fn serve(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    connection: usize,
    seen: &mpsc::Sender<Seen>,
) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut stream = StreamOwned::new(ServerConnection::new(config).map_err(io::Error::other)?, socket);
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let certificate = stream.conn.peer_certificates().and_then(|chain| Some(chain.first()?.to_vec()));
        seen.send(Seen { connection, head, certificate }).map_err(io::Error::other)?;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")?;
        stream.flush()?;
    }
}
