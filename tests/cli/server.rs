//! As much of an API server as makes a leader, and a gateway that refuses everything.

use crate::identity::Identity;
use navin_test_support::{Request, TlsServer};
use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};

/// As much of an API server as makes a leader, and a gateway that refuses everything.
pub(crate) struct Server {
    pub(crate) url: String,
    /// Each request that was answered.
    pub(crate) seen: mpsc::Receiver<Request>,
    _tls: TlsServer,
}

impl Server {
    pub(crate) fn start(identity: &Identity) -> Self {
        let (sender, seen) = mpsc::channel();
        // What the API server holds, by path.
        let objects = Mutex::new(BTreeMap::new());
        let server = TlsServer::start(server_config(identity), move |request| {
            let (status, body) = answer(request, &mut objects.lock().unwrap());
            // Nobody listens any more where the test is at its end.
            sender.send(request.clone()).ok()?;
            Some((status, body.to_string()))
        });
        Self { url: server.url(), seen, _tls: server }
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

fn answer(request: &Request, objects: &mut BTreeMap<String, Value>) -> (u16, Value) {
    let (method, path) = (request.method.as_str(), request.path.split('?').next().unwrap_or_default());
    if path.starts_with("/v1/") {
        return (403, json!({"error": "identity_revoked", "message": "no"}));
    }
    let version = objects.len().to_string();
    match (method, objects.get(path)) {
        ("GET", Some(object)) => (200, object.clone()),
        ("GET", None) if path.ends_with("/managedcomponents") => (200, json!({"items": []})),
        ("POST" | "PUT", _) => {
            let mut object: Value = serde_json::from_slice(&request.body).unwrap();
            let name = object["metadata"]["name"].as_str().unwrap();
            let path = if method == "PUT" { path.to_owned() } else { format!("{path}/{name}") };
            object["metadata"]["uid"] = json!(path);
            object["metadata"]["resourceVersion"] = json!(version);
            objects.insert(path, object.clone());
            (200, object)
        }
        _ => (404, json!({"kind": "Status", "reason": "NotFound", "message": "not there"})),
    }
}
