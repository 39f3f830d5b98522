//! What the proxy shows to either side, and how a client of a test's own speaks TLS.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

fn certificates(pem: &str) -> impl Iterator<Item = CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(|certificate| certificate.expect("a certificate"))
}

fn key(pem: &str) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("a key")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Shows this certificate, and asks for none.
pub(crate) fn server_config(chain: &Path, key: &Path) -> ServerConfig {
    server_config_of(&read(chain), &read(key))
}

/// The same of a certificate and a key in PEM.
pub(super) fn server_config_of(chain: &str, key_pem: &str) -> ServerConfig {
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows the protocol versions")
        .with_no_client_auth()
        .with_single_cert(certificates(chain).collect(), key(key_pem))
        .expect("the key is the certificate's")
}

/// Trusts these issuers, and shows a certificate where one is asked for: its chain, and its key; all in PEM.
pub fn client_config(ca: &str, own: Option<(&str, &str)>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca) {
        roots.add(certificate).expect("an issuer");
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows the protocol versions")
        .with_root_certificates(roots);
    match own {
        None => builder.with_no_client_auth(),
        Some((chain, key_pem)) => builder
            .with_client_auth_cert(certificates(chain).collect(), key(key_pem))
            .expect("the key is the certificate's"),
    }
}

/// The same with the identity of an agent, in this folder.
pub(super) fn client_config_of(ca: &str, identity: &Path) -> ClientConfig {
    client_config(ca, Some((&read(&identity.join("tls.crt")), &read(&identity.join("tls.key")))))
}
