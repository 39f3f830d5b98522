//! Connections by hand: to send a part of something, or nothing.

use crate::support::LIMIT;
use navin_test_support::client_config;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
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
    let text = |name: &str| Some(issued?[name].as_str().unwrap());
    let config = client_config(ca, text("tls_crt").zip(text("tls_key")));
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
