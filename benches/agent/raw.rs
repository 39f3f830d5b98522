//! The bare limit: HTTP/1.1 written by hand on one kept TLS connection, with nothing decoded.

use crate::lab::Lab;
use navin_test_support::client_config;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// A connection to the API server as its admin.
pub(crate) struct Raw {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    token: String,
}

impl Raw {
    pub(crate) fn connect(lab: &Lab) -> Self {
        let cluster = lab.cluster;
        Self::connect_to(cluster.url(), cluster.ca_pem(), cluster.admin_token())
    }

    /// `url` is `https://address:port`.
    pub(crate) fn connect_to(url: &str, ca_pem: &str, token: &str) -> Self {
        let config = client_config(ca_pem, None);
        let (_, address) = url.split_once("://").expect("a URL");
        let name = address.split(':').next().expect("a host").to_owned();
        let name = ServerName::try_from(name).expect("a server's name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a TLS connection");
        let tcp = TcpStream::connect(address).expect("the API server");
        tcp.set_nodelay(true).expect("a socket");
        tcp.set_read_timeout(Some(Duration::from_mins(1))).expect("a socket");
        let stream = BufReader::with_capacity(64 << 10, StreamOwned::new(tls, tcp));
        Self { stream, token: token.to_owned() }
    }

    /// One call: the status, and the body as it came.
    pub(crate) fn call(&mut self, method: &str, path: &str, media: &str, body: &[u8]) -> (u16, Vec<u8>) {
        self.send(method, path, media, body);
        let (status, length) = self.head();
        let mut body = Vec::new();
        match length {
            Some(length) => {
                body.resize(length, 0);
                self.stream.read_exact(&mut body).expect("a body");
            }
            None => while self.chunk(&mut body) {},
        }
        (status, body)
    }

    /// Sends a request whose answer is a stream, and reads the answer's head: a watch.
    pub(crate) fn open(&mut self, path: &str) {
        self.send("GET", path, "application/json", b"");
        let (status, length) = self.head();
        assert_eq!((status, length), (200, None), "GET {path}");
    }

    /// Waits for the next answer as long as it takes, and not for a minute at most.
    pub(crate) fn patient(&mut self) {
        self.stream.get_mut().sock.set_read_timeout(None).expect("a socket");
    }

    /// Appends one chunk of a stream; false at its end.
    pub(crate) fn chunk(&mut self, to: &mut Vec<u8>) -> bool {
        let length = usize::from_str_radix(self.line().trim(), 16).expect("a chunk's length");
        let from = to.len();
        to.resize(from + length, 0);
        self.stream.read_exact(&mut to[from..]).expect("a chunk");
        self.line();
        length > 0
    }

    fn send(&mut self, method: &str, path: &str, media: &str, body: &[u8]) {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: kubernetes\r\nAuthorization: Bearer {}\r\nUser-Agent: raw\r\n\
             Accept: application/json\r\n",
            self.token
        );
        if !body.is_empty() {
            write!(request, "Content-Type: {media}\r\nContent-Length: {}\r\n", body.len()).expect("a String");
        }
        request.push_str("\r\n");
        let mut request = request.into_bytes();
        request.extend_from_slice(body);
        io::Write::write_all(self.stream.get_mut(), &request).expect("a request");
        io::Write::flush(self.stream.get_mut()).expect("a request");
    }

    /// The status, and the body's length where it does not come in chunks.
    fn head(&mut self) -> (u16, Option<usize>) {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut length = None;
        loop {
            let line = self.line().to_ascii_lowercase();
            match line.trim().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().ok(),
                Some(_) => {}
                None => return (status, length),
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line
    }
}
