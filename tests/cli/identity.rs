//! An identity as a manager issues it, made to be changed: what is in its five files is the test's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navin_cluster_agent::rules::json::canonical;
use navin_test_support::SigningKey;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The managed namespace of every identity here.
pub(crate) const NAMESPACE: &str = "navin-platform";

/// What is in the place of one file.
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Folder,
    Fifo,
}

/// The files, and what is needed to issue others.
pub(crate) struct Identity {
    files: BTreeMap<&'static str, Content>,
    payload: Value,
    manager: SigningKey,
    authority: Issuer<'static, KeyPair>,
    key: KeyPair,
}

impl Identity {
    /// A valid one.
    pub(crate) fn issue() -> Self {
        let (authority, root) = authority();
        let mut identity = Self {
            files: BTreeMap::new(),
            payload: json!({
                "type": "navin.agent-config/v1", "tenant_id": "acme", "cluster_id": "prod-eu-1",
                "identity_id": "86b31929-be9d-481e-81ae-46c379187c17",
                "gateway_url": "https://127.0.0.1:1", "namespace": NAMESPACE,
                "lease_duration_s": 15, "offline_after_s": 120, "poll_wait_s": 30, "report_interval_s": 300,
                "max_validity_s": 604_800, "issued_at": "2026-11-30T11:59:00Z"
            }),
            manager: SigningKey::of_seed(1),
            authority,
            key: KeyPair::generate().unwrap(),
        };
        identity.put("ca.crt", root);
        identity.put("manager.pem", identity.manager.public_pem());
        identity.put("tls.key", identity.key.serialize_pem());
        identity.put("tls.crt", identity.certify(&identity.key));
        identity.sign();
        identity
    }

    /// Puts a text into a file.
    pub(crate) fn put(&mut self, name: &'static str, text: impl Into<Vec<u8>>) {
        self.files.insert(name, Content::Bytes(text.into()));
    }

    /// Puts something else into the place of a file.
    pub(crate) fn place(&mut self, name: &'static str, content: Content) {
        self.files.insert(name, content);
    }

    /// Leaves a file out.
    pub(crate) fn remove(&mut self, name: &str) {
        self.files.remove(name).expect("a file of the identity");
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, name: &str) -> &[u8] {
        match &self.files[name] {
            Content::Bytes(bytes) => bytes,
            Content::Folder | Content::Fifo => panic!("{name} is no file"),
        }
    }

    /// The text of a file.
    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name).to_vec()).expect("UTF-8")
    }

    /// Changes the configuration and signs it again.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        change(self.payload.as_object_mut().expect("an object"));
        self.sign();
    }

    /// Changes the signed configuration behind the manager's back.
    pub(crate) fn tamper(&mut self, change: impl FnOnce(&mut Value)) {
        let mut envelope = serde_json::from_slice(self.bytes("config.json")).expect("JSON");
        change(&mut envelope);
        self.put("config.json", envelope.to_string());
    }

    /// The configuration's payload.
    pub(crate) fn payload(&self) -> &Value {
        &self.payload
    }

    /// Signs the configuration with another key than the manager's.
    pub(crate) fn sign_as_stranger(&mut self) {
        self.put("config.json", sign(&self.payload, &SigningKey::of_nobody()));
    }

    /// A certificate of the identity's authority for a key.
    pub(crate) fn certify(&self, key: &KeyPair) -> String {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "86b31929-be9d-481e-81ae-46c379187c17");
        params.signed_by(key, &self.authority).unwrap().pem()
    }

    /// The same for the client's key, with other contents.
    pub(crate) fn certify_as(&self, params: &CertificateParams) -> String {
        params.signed_by(&self.key, &self.authority).unwrap().pem()
    }

    /// A certificate of the identity's authority for a server on this machine.
    pub(crate) fn certify_server(&self, key: &KeyPair) -> rcgen::Certificate {
        let params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        params.signed_by(key, &self.authority).unwrap()
    }

    /// The client's key.
    pub(crate) fn key(&self) -> &KeyPair {
        &self.key
    }

    /// Writes the files into a folder, which is made.
    pub(crate) fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).expect("the identity folder");
        for (name, content) in &self.files {
            let path = folder.join(name);
            match content {
                Content::Bytes(bytes) => fs::write(path, bytes).expect("a file"),
                Content::Folder => fs::create_dir(path).expect("a folder"),
                Content::Fifo => {
                    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
                    assert!(made.success());
                }
            }
        }
    }

    fn sign(&mut self) {
        self.put("config.json", sign(&self.payload, &self.manager));
    }
}

/// A certificate authority, and its certificate as PEM.
pub(crate) fn authority() -> (Issuer<'static, KeyPair>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "test root");
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

/// A manager's key as `manager.pem` has it.
pub(crate) fn public_pem(seed: u8) -> String {
    SigningKey::of_seed(seed).public_pem()
}

/// One PEM block in lines of 64 characters.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("base64")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn sign(payload: &Value, key: &SigningKey) -> String {
    key.envelope(payload, &canonical(payload)).to_string()
}
