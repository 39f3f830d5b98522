//! No level of the log shows a token or a key, neither the agent's own lines nor its libraries'.

use crate::agent::{Run, SOON};
use crate::identity::Identity;
use navin_test_support::{Process, RunFolder, until};
use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Any 16 bytes of the token hold this whole: a library may show it cut into rows.
const CANARY: &str = "CaNaRy7x";
/// As much as a user can ask for, of every crate by name too: what is asked by name is more specific.
const LOUDEST: &str = "trace,ureq=trace,ureq_proto=trace,ureq_proto::util=trace,rustls=trace,\
                       navin_cluster_agent=trace";

struct Bench {
    folder: RunFolder,
    secrets: Vec<String>,
}

impl Bench {
    fn new(name: &str, identity: &Identity) -> Self {
        let folder = RunFolder::new(name);
        identity.write(&folder.path().join("identity"));
        fs::write(folder.path().join("token"), CANARY.repeat(8)).unwrap();
        fs::write(folder.path().join("kube-ca.crt"), identity.bytes("ca.crt")).unwrap();
        let key = identity.text("tls.key");
        let lines = key.lines().filter(|line| !line.starts_with("-----"));
        let mut secrets: Vec<String> = lines.map(|line| line[..16].to_owned()).collect();
        assert!(secrets.len() >= 3, "the key has lines");
        secrets.push(CANARY.to_owned());
        Self { folder, secrets }
    }

    fn start(&self, log: &str, kube_api: Option<&str>) -> Process {
        let mut run = Run::new("agent", self.folder.path(), &self.folder.path().join("identity"));
        if let Some(url) = kube_api {
            let index = run.args.iter().position(|argument| argument == "--kube-api").unwrap();
            run.args[index + 1] = url.into();
        }
        run.env("RUST_LOG", log);
        run.start()
    }

    /// That nothing secret has been said up to the end.
    fn assert_silent(&self, process: &Process) {
        process.terminate();
        assert_eq!(process.wait_exit(SOON), Some(0), "{}", process.stderr_tail());
        let text = process.stderr_text() + &process.stdout_text();
        for secret in &self.secrets {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} is in the log");
        }
    }
}

#[test]
fn not_while_nobody_answers() {
    let runs = [("secrets-closed", "trace"), ("secrets-closed-loudest", LOUDEST)].map(|(name, log)| {
        let bench = Bench::new(name, &Identity::issue());
        let process = bench.start(log, None);
        (bench, process)
    });
    for (bench, process) in &runs {
        until("a failed attempt, and another", SOON, || {
            let text = process.stderr_text();
            let failed = text.lines().filter(|line| line.contains("no connection")).count();
            (failed >= 2).then_some(())
        });
        bench.assert_silent(process);
    }
}

#[test]
fn not_while_requests_are_answered() {
    for (name, log) in [("secrets-open", "trace"), ("secrets-open-loudest", LOUDEST)] {
        let mut identity = Identity::issue();
        let server = Server::start(&identity);
        identity.configure(|payload| drop(payload.insert("gateway_url".into(), json!(server.url))));
        let bench = Bench::new(name, &identity);
        let process = bench.start(log, Some(&server.url));
        // The token has really been sent, and the client's certificate shown: there was something to hide.
        let (mut token, mut certificate) = (false, false);
        until("a request with the token, and one with the certificate", SOON, || {
            for seen in server.seen.try_iter() {
                token |= seen.head.contains(&CANARY.to_lowercase());
                certificate |= seen.certified;
            }
            (token && certificate).then_some(())
        });
        bench.assert_silent(&process);
    }
}

/// A request that came.
struct Seen {
    head: String,
    certified: bool,
}

/// What the API server holds, by path.
type Objects = Arc<Mutex<BTreeMap<String, Value>>>;

/// As much of an API server as makes a leader, and a gateway that refuses everything.
struct Server {
    url: String,
    seen: mpsc::Receiver<Seen>,
}

impl Server {
    fn start(identity: &Identity) -> Self {
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
