//! What the proxy shows to either side.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_file_iter(path).expect("a certificate file");
    found.map(|certificate| certificate.expect("a certificate")).collect()
}

/// Shows this certificate, and asks for none.
pub(crate) fn server_config(chain: &Path, key: &Path) -> ServerConfig {
    let key = PrivateKeyDer::from_pem_file(key).expect("the server's key");
    showing(certificates(chain), key)
}

/// The same of a certificate and a key in PEM.
pub(super) fn server_config_of(chain: &str, key: &str) -> ServerConfig {
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
    let chain = chain.map(|certificate| certificate.expect("a certificate")).collect();
    showing(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key"))
}

fn showing(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> ServerConfig {
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows the protocol versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("the key is the certificate's")
}

/// Trusts this issuer, and shows a certificate where one is asked for.
pub(super) fn client_config(ca_pem: &str, own: Option<(&Path, &Path)>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(certificate.expect("a certificate")).expect("an issuer");
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows the protocol versions")
        .with_root_certificates(roots);
    match own {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder
            .with_client_auth_cert(
                certificates(chain),
                PrivateKeyDer::from_pem_file(key).expect("the agent's key"),
            )
            .expect("the key is the certificate's"),
    }
}
