//! The files of `--tls-dir`: made at the first start, used again ever after.
//!
//! A key without its certificate is a first start that was cut short, and is completed. A
//! certificate without its key is a loss, and refused: agents trust what would be replaced.

use crate::authority::{self, Authority};
use crate::clock::{SECOND_MS, now_ms};
use crate::failure::Failure;
use crate::files;
use crate::signing::Signer;
use rcgen::KeyPair;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A server certificate that ends sooner than this is made anew.
const RENEW_BEFORE_S: i64 = 30 * 86_400;

/// The names that a server certificate is always for.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The server's certificate and key, as they are now.
pub(crate) struct ServerKey {
    folder: PathBuf,
    names: Vec<String>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for ServerKey {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKey")
    }
}

/// All keys of the manager.
pub(crate) struct Keys {
    /// The root of all certificates.
    pub(crate) authority: Authority,
    /// The server's certificate and key.
    pub(crate) server: Arc<ServerKey>,
    /// What signs commands and configurations.
    pub(crate) signer: Signer,
}

impl Keys {
    /// Opens the folder for a server of these names.
    pub(crate) fn open(folder: &Path, names: &[String]) -> Result<Self, Failure> {
        files::make_folder(folder)?;
        let _lock = files::lock_folder(folder)?;
        let authority = Authority::open(folder)?;
        let current = open_server(folder, &authority, names)?;
        let signer = Signer::open(folder)?;
        let server =
            ServerKey { folder: folder.to_owned(), names: names.to_vec(), current: RwLock::new(current) };
        Ok(Self { authority, server: Arc::new(server), signer })
    }

    /// Takes the server's certificate and key anew from their files, or makes the certificate anew
    /// where it ends soon. What cannot be used leaves the running one as it is.
    pub(crate) fn renew_server(&self) -> Result<(), Failure> {
        let server = &self.server;
        let _lock = files::lock_folder(&server.folder)?;
        let opened = open_server(&server.folder, &self.authority, &server.names)?;
        let mut current = server.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.cert != opened.cert {
            *current = opened;
            tracing::info!("took a new server certificate");
        }
        Ok(())
    }

    /// Opens the signing key alone, which must be there: no agent would trust a new one.
    pub(crate) fn open_signer(folder: &Path) -> Result<Signer, Failure> {
        let key = folder.join("signing.key");
        if !key.exists() {
            return Err(Failure::damaged(&key, "missing; `serve` makes it at its first start"));
        }
        let _lock = files::lock_folder(folder)?;
        Signer::open(folder)
    }
}

fn open_server(folder: &Path, authority: &Authority, names: &[String]) -> Result<Arc<CertifiedKey>, Failure> {
    let mut names = names.to_vec();
    names.extend(LOCAL_NAMES.iter().map(ToString::to_string));
    let (key_path, path) = (folder.join("server.key"), folder.join("server.crt"));
    let stored = files::read_text(&path)?;
    let key = authority::open_key(&key_path, stored.is_some())?;
    let pem = match stored {
        Some(pem) if still_good(&path, &pem, authority, &key, &names)? => pem,
        Some(_) | None => {
            let pem = authority.server(&key, &names)?;
            files::replace(&path, pem.as_bytes(), files::PUBLIC)?;
            tracing::info!(file = %path.display(), "made a server certificate");
            pem
        }
    };
    let certificate = authority::read_certificate(&path, &pem)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    CertifiedKey::from_der(vec![certificate], key, &rustls::crypto::ring::default_provider())
        .map(Arc::new)
        .map_err(|error| Failure::damaged(&path, error))
}

/// Whether a certificate need not be made anew. One that is not ours, or of another key, is damage.
fn still_good(
    path: &Path,
    pem: &str,
    authority: &Authority,
    key: &KeyPair,
    names: &[String],
) -> Result<bool, Failure> {
    let der = authority::read_certificate(path, pem)?;
    let (_, certificate) =
        X509Certificate::from_der(&der).map_err(|_| Failure::damaged(path, "not a certificate"))?;
    if !authority::is_of_key(&certificate, key) {
        return Err(Failure::damaged(path, "not of the key in server.key"));
    }
    if !authority.is_issuer_of(&certificate) {
        return Err(Failure::damaged(path, "not issued by ca.crt, which is all that agents trust"));
    }
    let ends_s = certificate.validity().not_after.timestamp();
    let now_s = now_ms().div_euclid(SECOND_MS);
    let lasts = ends_s.saturating_sub(now_s) > RENEW_BEFORE_S;
    Ok(lasts && names.iter().all(|name| is_named(&certificate, name)))
}

fn is_named(certificate: &X509Certificate<'_>, name: &str) -> bool {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return false };
    let address: Option<IpAddr> = name.parse().ok();
    extension.value.general_names.iter().any(|general| match (general, address) {
        (GeneralName::IPAddress(bytes), Some(IpAddr::V4(address))) => *bytes == address.octets(),
        (GeneralName::IPAddress(bytes), Some(IpAddr::V6(address))) => *bytes == address.octets(),
        (GeneralName::DNSName(text), None) => text.eq_ignore_ascii_case(name),
        _ => false,
    })
}
