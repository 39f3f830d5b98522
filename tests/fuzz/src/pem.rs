//! PEM files: certificates, keys in all forms, CA bundles; and DER in them.
//!
//! - What is taken as a key pair, or as issuers, a connection can be made with.
//! - A certificate that a chain begins with ends when another parser says.
//! - What cannot be read says why.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navin_cluster_agent::http::{
    HttpsClient, TlsFiles, check_issued, check_issuers, check_key_pair, not_after,
};
use std::time::Duration;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate that is good as an issuer, for what is checked without one.
const ISSUER: &[u8] = include_bytes!("issuer.crt");

/// Checks bytes as each of the files; and where they may be DER, as a block of each kind.
pub fn check(bytes: &[u8]) {
    files(bytes);
    // SEQUENCE: what every certificate and key begins with.
    if bytes.first() == Some(&0x30) {
        let block = |label| {
            let body = STANDARD.encode(bytes);
            format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into_bytes()
        };
        for label in ["CERTIFICATE", "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"] {
            files(&block(label));
        }
        end(bytes, &block("CERTIFICATE"));
    }
}

/// One text as all of the files, which may hold blocks of other kinds.
fn files(pem: &[u8]) {
    let issuers = check_issuers(pem);
    if let Err(why) = &issuers {
        assert!(!why.is_empty());
    } else {
        assert!(client(pem, None).is_ok(), "issuers that no connection can be made with");
    }
    match check_key_pair(pem, pem) {
        Ok(()) => {
            assert!(client(ISSUER, Some((pem, pem))).is_ok(), "a pair that no connection can be made with");
        }
        Err((file, why)) => assert!(["tls.crt", "tls.key"].contains(&file) && !why.is_empty()),
    }
    assert!(issuers.is_ok() || not_after(ISSUER, pem).is_none(), "an end by issuers that cannot be read");
    for now in [0, 1_796_040_000, u64::MAX] {
        let now = Duration::from_secs(now);
        let verdicts = [check_issued(pem, ISSUER, now), check_issued(pem, pem, now)];
        assert!(verdicts.iter().all(|verdict| verdict.as_ref().err().is_none_or(|why| !why.is_empty())));
        assert!(issuers.is_ok() || verdicts[1].is_err(), "given by issuers that cannot be read");
    }
}

fn client(ca: &[u8], client: Option<(&[u8], &[u8])>) -> Result<HttpsClient, String> {
    HttpsClient::new("https://manager.example", &TlsFiles { ca, client }, None)
}

/// When a certificate ends.
fn end(der: &[u8], chain: &[u8]) {
    let Some(ours) = not_after(chain, ISSUER) else { return };
    if let Ok((_, certificate)) = X509Certificate::from_der(der) {
        assert_eq!(ours.as_second(), certificate.validity().not_after.timestamp());
    }
}
