//! The PEM files of a connection: read, and checked before they are used.
//!
//! Of a file with blocks of several kinds those of the wanted kind count; a file without one is refused. Nothing here
//! trusts: what a connection accepts is rustls's decision, at each handshake.

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey};

pub(super) fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, String> {
    let mut certificates = Vec::new();
    for item in ureq::tls::parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(e) => return Err(format!("expected PEM certificates: {e}")),
        }
    }
    if certificates.is_empty() {
        return Err("expected at least one PEM certificate, found none".to_owned());
    }
    Ok(certificates)
}

pub(super) fn client_certificate(chain: &[u8], key: &[u8]) -> Result<ClientCert, String> {
    let chain = certificates(chain).map_err(|e| format!("client: {e}"))?;
    Ok(ClientCert::new_with_certs(&chain, private_key(key)?))
}

fn private_key(pem: &[u8]) -> Result<PrivateKey<'static>, String> {
    PrivateKey::from_pem(pem)
        .map_err(|e| format!("expected a PEM private key (PKCS#8, SEC1 or PKCS#1, not encrypted): {e}"))
}

/// Checks that `chain` and `key` are PEM, that rustls can use them, and that they belong together.
///
/// # Errors
///
/// The file's name (`tls.crt` or `tls.key`) and what was expected.
pub fn check_key_pair(chain: &[u8], key: &[u8]) -> Result<(), (&'static str, String)> {
    let chain = certificates(chain).map_err(|e| ("tls.crt", e))?;
    private_key(key).map_err(|e| ("tls.key", e))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| ("tls.key", e.to_string()))?;
    let chain = chain.iter().map(|c| CertificateDer::from(c.der().to_vec())).collect();
    match rustls::sign::CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider()) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(("tls.key", "expected the key of the certificate in tls.crt, found another".to_owned()))
        }
        Err(rustls::Error::InvalidCertificate(e)) => {
            Err(("tls.crt", format!("expected an X.509 certificate: {e:?}")))
        }
        Err(e) => Err(("tls.key", format!("expected a usable private key: {e}"))),
    }
}

/// Checks that `pem` holds certificates that can be trusted as issuers.
///
/// # Errors
///
/// What was expected.
pub fn check_issuers(pem: &[u8]) -> Result<(), String> {
    issuers(pem).map(drop)
}

fn issuers(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots
            .add(CertificateDer::from(certificate.der().to_vec()))
            .map_err(|e| format!("expected an X.509 certificate: {e}"))?;
    }
    Ok(roots)
}

/// Whether `chain` is a client's certificate that one of the issuers in `ca` has given, good at `now`
/// (since 1970).
///
/// # Errors
///
/// What is wrong with it.
pub fn check_issued(chain: &[u8], ca: &[u8], now: Duration) -> Result<(), String> {
    verify(chain, ca, now).map_err(|error| {
        // A CA that was made anew under the same name has another key.
        let foreign = [CertificateError::UnknownIssuer, CertificateError::BadSignature];
        let foreign = foreign.map(rustls::Error::InvalidCertificate).contains(&error);
        if foreign { "not given by an issuer in ca.crt".to_owned() } else { error.to_string() }
    })
}

/// When the first certificate of `chain` ends, whoever gave it; `ca` is not empty. None where it cannot be read, or
/// the end is none (RFC 5280 section 4.1.2.5: the last second of 9999).
#[must_use]
pub fn not_after(chain: &[u8], ca: &[u8]) -> Option<Timestamp> {
    // After all time it has ended, which is found before an issuer is looked for.
    match verify(chain, ca, Duration::MAX) {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Timestamp::from_second(i64::try_from(not_after.as_secs()).ok()?).ok()
        }
        Ok(()) | Err(_) => None,
    }
}

fn verify(chain: &[u8], ca: &[u8], now: Duration) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(
        Arc::new(issuers(ca).map_err(rustls::Error::General)?),
        provider,
    )
    .build()
    .map_err(|e| rustls::Error::General(format!("no usable issuer: {e}")))?;
    let mut chain = certificates(chain)
        .map_err(rustls::Error::General)?
        .into_iter()
        .map(|c| CertificateDer::from(c.der().to_vec()));
    let own = chain.next().ok_or(rustls::Error::NoCertificatesPresented)?;
    let between: Vec<_> = chain.collect();
    verifier.verify_client_cert(&own, &between, UnixTime::since_unix_epoch(now)).map(drop)
}
