//! Connections by hand: to send a part of something, or nothing.

use crate::support::LIMIT;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

/// A TLS connection.
pub(crate) type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Where a URL leads.
pub(crate) fn address(url: &str) -> SocketAddr {
    url.trim_start_matches("https://").parse().unwrap()
}

/// A TLS connection whose handshake is done, with an identity as it was issued.
pub(crate) fn tls(url: &str, ca: &str, issued: Option<&Value>) -> Tls {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match issued {
        None => config.with_no_client_auth(),
        Some(issued) => {
            let text = |name: &str| issued[name].as_str().unwrap().as_bytes();
            let certificate = CertificateDer::from_pem_slice(text("tls_crt")).unwrap();
            let key = PrivateKeyDer::from_pem_slice(text("tls_key")).unwrap();
            config.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    let address = address(url);
    let client = ClientConnection::new(Arc::new(config), ServerName::from(address.ip())).unwrap();
    let tcp = TcpStream::connect(address).unwrap();
    tcp.set_nodelay(true).unwrap();
    tcp.set_read_timeout(Some(LIMIT)).unwrap();
    let mut stream = StreamOwned::new(client, tcp);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).unwrap();
    }
    stream
}

/// Whether the other side has closed, as far as can be told.
pub(crate) fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    loop {
        match stream.read(&mut [0; 1024]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}
