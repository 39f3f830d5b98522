//! A mutating admission webhook: an HTTPS server that changes each component on its way in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navin_test_support::Cluster;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// A webhook for one namespace; it is unregistered and ends with this value.
pub(crate) struct Webhook {
    cluster: &'static Cluster,
    name: String,
    port: u16,
    shared: Arc<Shared>,
}

type Mutation = Box<dyn Fn(&Value) -> Value + Send + Sync>;

struct Shared {
    mutation: Mutation,
    asked: AtomicUsize,
    closed: AtomicBool,
}

impl Webhook {
    /// Registers a webhook that adds what `mutation` makes of a component as a JSON Patch.
    pub(crate) fn start(
        cluster: &'static Cluster,
        namespace: &str,
        mutation: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let files = cluster.folder().join("certificates");
        let file = |name: &str| files.join(name);
        let chain = CertificateDer::from_pem_file(file("apiserver.crt")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(file("apiserver.key")).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows the protocol versions")
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .expect("the key is the certificate's");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let shared = Arc::new(Shared {
            mutation: Box::new(mutation),
            asked: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        });
        let (config, ours) = (Arc::new(config), Arc::clone(&shared));
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if ours.closed.load(Ordering::Relaxed) {
                    return;
                }
                let (config, ours) = (Arc::clone(&config), Arc::clone(&ours));
                // A connection that breaks is for the API server to notice.
                thread::spawn(move || drop(serve(socket, config, &ours)));
            }
        });
        let webhook = Self { cluster, name: format!("mutate.{namespace}.example"), port, shared };
        webhook.register(namespace);
        webhook
    }

    fn register(&self, namespace: &str) {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": { "name": self.name },
            "webhooks": [{
                "name": self.name,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 5,
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{}/mutate", self.port),
                    "caBundle": STANDARD.encode(self.cluster.ca_pem()),
                },
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
                "rules": [{
                    "apiGroups": ["platform.navin.ai"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["managedcomponents"],
                }],
            }],
        });
        let (status, answer) = self.cluster.admin().post(CONFIGURATIONS, &configuration);
        assert_eq!(status, 201, "{answer}");
    }

    /// How often the API server asked.
    pub(crate) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.cluster.admin().delete(&format!("{CONFIGURATIONS}/{}", self.name));
        self.shared.closed.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn serve(socket: TcpStream, config: Arc<ServerConfig>, shared: &Shared) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_mins(1)))?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(session, socket));
    while let Some(review) = read(&mut stream)? {
        shared.asked.fetch_add(1, Ordering::Relaxed);
        let patch = (shared.mutation)(&review["request"]["object"]);
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {
                "uid": review["request"]["uid"],
                "allowed": true,
                "patchType": "JSONPatch",
                "patch": STANDARD.encode(patch.to_string()),
            },
        })
        .to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        stream.get_mut().write_all((head + &answer).as_bytes())?;
        stream.get_mut().flush()?;
    }
    Ok(())
}

/// The body of the next request, as JSON; none where the API server has gone.
fn read(stream: &mut BufReader<StreamOwned<ServerConnection, TcpStream>>) -> io::Result<Option<Value>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    serde_json::from_slice(&body).map(Some).map_err(io::Error::other)
}
