//! As much of an API server as makes a leader, and a gateway that refuses everything.

use crate::identity::Identity;
use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// A request that came.
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) certified: bool,
}

/// What the API server holds, by path.
type Objects = Arc<Mutex<BTreeMap<String, Value>>>;

/// As much of an API server as makes a leader, and a gateway that refuses everything.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) seen: mpsc::Receiver<Seen>,
}

impl Server {
    pub(crate) fn start(identity: &Identity) -> Self {
        let config = Arc::new(server_config(identity));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (sender, seen) = mpsc::channel();
        let objects = Objects::default();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, config) = (stream.unwrap(), Arc::clone(&config));
                let (sender, objects) = (sender.clone(), Arc::clone(&objects));
                // A client that goes away is no failure of the server's.
                thread::spawn(move || serve(stream, config, &sender, &objects).unwrap_or_default());
            }
        });
        Self { url, seen }
    }
}

fn server_config(identity: &Identity) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(identity.bytes("ca.crt")).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = identity.certify_server(&key).der().clone();
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap()
}

/// Answers one request; the client opens a connection for each.
fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    seen: &mpsc::Sender<Seen>,
    objects: &Objects,
) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |text| text.parse().unwrap())];
    stream.read_exact(&mut body)?;
    let mut words = head.split([' ', '?']);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, answer) = answer(method, path, &body, &mut objects.lock().unwrap());
    let answer = answer.to_string();
    let length = answer.len();
    write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}")?;
    stream.conn.send_close_notify();
    stream.flush()?;
    let certified = stream.conn.peer_certificates().is_some_and(|chain| !chain.is_empty());
    seen.send(Seen { head, certified }).map_err(io::Error::other)
}

fn answer(method: &str, path: &str, body: &[u8], objects: &mut BTreeMap<String, Value>) -> (u16, Value) {
    if path.starts_with("/v1/") {
        return (403, json!({"error": "identity_revoked", "message": "no"}));
    }
    let version = objects.len().to_string();
    match (method, objects.get(path)) {
        ("get", Some(object)) => (200, object.clone()),
        ("get", None) if path.ends_with("/managedcomponents") => (200, json!({"items": []})),
        ("post" | "put", _) => {
            let mut object: Value = serde_json::from_slice(body).unwrap();
            let name = object["metadata"]["name"].as_str().unwrap();
            let path = if method == "put" { path.to_owned() } else { format!("{path}/{name}") };
            object["metadata"]["uid"] = json!(path);
            object["metadata"]["resourceVersion"] = json!(version);
            objects.insert(path, object.clone());
            (200, object)
        }
        _ => (404, json!({"kind": "Status", "reason": "NotFound", "message": "not there"})),
    }
}
