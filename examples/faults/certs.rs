//! Certificates as they should be, and as they should not.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fs;
use std::path::Path;

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Expired,
    NotYetValid,
    /// It is for another host.
    OtherName,
    /// Its issuer has the right name and another key.
    OtherIssuer,
    /// Its issuer is one that the machine trusts.
    PublicIssuer,
}

/// Who signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    /// A new one.
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// The manager's own, from its `tls` folder.
    pub(crate) fn of_manager(folder: &Path) -> Self {
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file of the manager");
        let (pem, key) = (read("ca.crt"), KeyPair::from_pem(&read("ca.key")).expect("the manager's key"));
        Self { issuer: Issuer::from_ca_cert_pem(&pem, key).expect("the manager's certificate"), pem }
    }

    /// One for the names of both peers, with a flaw of its own where there is one. The issuer is the caller's choice.
    pub(crate) fn certificate(&self, flaw: Option<Flaw>) -> Shown {
        let names: &[&str] =
            if flaw == Some(Flaw::OtherName) { &["other.example"] } else { &["kube.test", "gateway.test"] };
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        match flaw {
            Some(Flaw::Expired) => params.not_after = date_time_ymd(2025, 1, 1),
            Some(Flaw::NotYetValid) => params.not_before = date_time_ymd(2090, 1, 1),
            _ => {}
        }
        let key = KeyPair::generate().expect("a key");
        let chain = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        Shown { chain, key: key.serialize_pem() }
    }
}

/// The beginning of a handshake in TLS 1.1 (RFC 4346): a ServerHello with nothing before or after it.
pub(crate) fn hello_of_tls_1_1() -> Vec<u8> {
    // Record: handshake, 3.2, 42 bytes. Handshake: ServerHello, 38 bytes: 3.2, random, no session, a suite of
    // TLS 1.1 (ECDHE_RSA_WITH_AES_128_CBC_SHA), no compression.
    let mut bytes = vec![0x16, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
    bytes.extend([0x5a; 32]);
    bytes.extend([0, 0xc0, 0x13, 0]);
    bytes
}

/// The beginning of a handshake that could be one of TLS 1.2, if more came.
pub(crate) fn half_a_hello() -> Vec<u8> {
    let mut bytes = vec![0x16, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3];
    bytes.extend([0x5a; 64]);
    bytes
}
