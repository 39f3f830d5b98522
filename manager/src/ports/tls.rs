//! What both ports speak: TLS 1.2 and 1.3, with the server's certificate as it is now.

use crate::keys::server::ServerKey;
use crate::process::failure::Failure;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;

/// Which clients a port lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Any.
    Any,
    /// Those with a certificate of our authority.
    Certified,
}

/// The settings of a port.
pub(crate) fn tls_config(server: &Arc<ServerKey>, clients: Clients) -> Result<ServerConfig, Failure> {
    let tls_error = |error: &dyn std::fmt::Display| Failure::System(format!("TLS: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| tls_error(&error))?;
    let builder = match clients {
        Clients::Any => builder.with_no_client_auth(),
        Clients::Certified => {
            let mut roots = RootCertStore::empty();
            roots.add(server.root().clone()).map_err(|error| tls_error(&error))?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| tls_error(&error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let shown: Arc<dyn ResolvesServerCert> = server.clone();
    let mut config = builder.with_cert_resolver(shown);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would keep a client's certificate without verifying it again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}
