//! The server's certificate and key, made, renewed, or only read.

use super::authority::{self, Authority, MISSING, Root, SERVER_DAYS};
use crate::process::clock::{self, SECOND_MS, now_ms};
use crate::process::failure::Failure;
use crate::process::files;
use rcgen::KeyPair;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A server certificate that ends sooner than this is made anew.
const RENEW_BEFORE_S: i64 = 30 * 86_400;

/// A gateway alone says so a day later than `serve` has renewed it, where that one has the same folder.
const WARN_BEFORE_S: i64 = 29 * 86_400;

/// The names that a server certificate is always for.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The server's certificate and key, as they are now, and the root that certifies clients.
pub(crate) struct ServerKey {
    folder: PathBuf,
    names: Vec<String>,
    root: CertificateDer<'static>,
    /// Where this process may make certificates.
    authority: Option<Arc<Authority>>,
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

impl ServerKey {
    /// Opens those of a server of these names. With an authority, the certificate is made where it is not
    /// there, lacks a name or ends soon; without one, what is there is read.
    pub(crate) fn open(
        folder: &Path,
        names: &[String],
        authority: Option<Arc<Authority>>,
    ) -> Result<Self, Failure> {
        let root = match &authority {
            Some(authority) => authority.root().der().clone(),
            None => Root::open(folder)?.der().clone(),
        };
        let (current, _) = read_or_make(folder, names, authority.as_deref())?;
        Ok(Self {
            folder: folder.to_owned(),
            names: names.to_vec(),
            root,
            authority,
            current: RwLock::new(current),
        })
    }

    /// The root that certifies clients.
    pub(crate) fn root(&self) -> &CertificateDer<'static> {
        &self.root
    }

    /// Takes the certificate and key anew from their files, or makes the certificate anew where it ends
    /// soon and this process may. What cannot be used leaves the running one as it is.
    pub(crate) fn renew(&self) -> Result<(), Failure> {
        let (opened, ends_s) = read_or_make(&self.folder, &self.names, self.authority.as_deref())?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.cert != opened.cert {
            *current = opened;
            tracing::info!("took a new server certificate");
        }
        if lasts(ends_s, WARN_BEFORE_S) {
            return Ok(());
        }
        let ends = clock::text(ends_s.saturating_mul(SECOND_MS));
        Err(Failure::damaged(
            &self.folder.join("server.crt"),
            format!("ends at {ends}; `serve` renews it in its own folder: replace it here"),
        ))
    }
}

/// The certificate and key, and when the certificate ends, in seconds.
fn read_or_make(
    folder: &Path,
    names: &[String],
    authority: Option<&Authority>,
) -> Result<(Arc<CertifiedKey>, i64), Failure> {
    let (key_path, path) = (folder.join("server.key"), folder.join("server.crt"));
    let (key, pem, ends_s) = if let Some(authority) = authority {
        let _lock = files::lock_folder(folder)?;
        let mut names = names.to_vec();
        names.extend(LOCAL_NAMES.iter().map(ToString::to_string));
        let stored = files::read_text(&path)?;
        let key = authority::open_key(&key_path, stored.is_some())?;
        let seen = match &stored {
            Some(pem) => Some(examine(&path, pem, authority.root(), &key, &names)?),
            None => None,
        };
        match (stored, seen) {
            (Some(pem), Some(seen)) if seen.lacks.is_none() && lasts(seen.ends_s, RENEW_BEFORE_S) => {
                (key, pem, seen.ends_s)
            }
            _ => {
                let pem = authority.server(&key, &names, SERVER_DAYS)?;
                files::replace(&path, pem.as_bytes(), files::PUBLIC)?;
                tracing::info!(file = %path.display(), "made a server certificate");
                let ends_s = examine(&path, &pem, authority.root(), &key, &names)?.ends_s;
                (key, pem, ends_s)
            }
        }
    } else {
        let pem = files::read_text(&path)?.ok_or_else(|| Failure::damaged(&path, MISSING))?;
        let key = authority::read_key(&key_path)?;
        let seen = examine(&path, &pem, &Root::open(folder)?, &key, names)?;
        if let Some(name) = seen.lacks {
            let problem = format!("not for {name}; `serve --server-name {name}` makes one that is");
            return Err(Failure::damaged(&path, problem));
        }
        (key, pem, seen.ends_s)
    };
    let certificate = authority::read_certificate(&path, &pem)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    CertifiedKey::from_der(vec![certificate], key, &rustls::crypto::ring::default_provider())
        .map(|key| (Arc::new(key), ends_s))
        .map_err(|error| Failure::damaged(&path, error))
}

/// What is to be known of a server certificate.
struct Seen<'n> {
    /// When it ends, in seconds.
    ends_s: i64,
    /// A name that it is not for.
    lacks: Option<&'n str>,
}

/// Looks at a certificate. One that is not ours, or of another key, is damage.
fn examine<'n>(
    path: &Path,
    pem: &str,
    root: &Root,
    key: &KeyPair,
    names: &'n [String],
) -> Result<Seen<'n>, Failure> {
    let der = authority::read_certificate(path, pem)?;
    let (_, certificate) =
        X509Certificate::from_der(&der).map_err(|_| Failure::damaged(path, "not a certificate"))?;
    if !authority::is_of_key(&certificate, key) {
        return Err(Failure::misfit(path, "not of the key in server.key"));
    }
    if !root.is_issuer_of(&certificate) {
        return Err(Failure::misfit(path, "not issued by ca.crt, which is all that agents trust"));
    }
    Ok(Seen {
        ends_s: certificate.validity().not_after.timestamp(),
        lacks: names.iter().map(String::as_str).find(|name| !is_named(&certificate, name)),
    })
}

/// Whether more than so many seconds are left.
fn lasts(ends_s: i64, more_than_s: i64) -> bool {
    ends_s.saturating_sub(now_ms().div_euclid(SECOND_MS)) > more_than_s
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

#[cfg(test)]
mod tests {
    use super::super::secrets::Secrets;
    use super::*;

    #[test]
    fn a_gateway_alone_makes_no_certificate_and_says_when_its_own_ends_soon() {
        let name = format!("keys-{}", std::process::id());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp").join(name);
        let secrets = Secrets::open(&folder).expect("keys");
        let refused = |names: &[String]| match ServerKey::open(&folder, names, None) {
            Err(failure) => failure.to_string(),
            Ok(_) => panic!("opened"),
        };
        assert!(refused(&[]).contains("server.crt: missing"));
        let key = authority::open_key(&folder.join("server.key"), false).expect("a key");
        let pem = secrets.authority.server(&key, &["localhost".to_owned()], 28).expect("a certificate");
        files::replace(&folder.join("server.crt"), pem.as_bytes(), files::PUBLIC).expect("written");
        assert!(refused(&["manager.example".to_owned()]).contains("not for manager.example"));
        let alone = ServerKey::open(&folder, &[], None).expect("the three files");
        let told = alone.renew().expect_err("it ends soon").to_string();
        assert!(told.contains("server.crt: ends at "), "{told}");
        assert_eq!(files::read_text(&folder.join("server.crt")).expect("read"), Some(pem));
        ServerKey::open(&folder, &[], Some(secrets.authority)).expect("renewed");
        alone.renew().expect("the new one is taken");
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_server_certificate_of_another_authority_is_refused_though_every_authority_has_the_same_name() {
        let name = format!("keys-other-{}", std::process::id());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp").join(name);
        let former = Secrets::open(&folder).expect("keys").authority;
        ServerKey::open(&folder, &[], Some(Arc::clone(&former))).expect("a server certificate");
        for name in ["ca.crt", "ca.key"] {
            std::fs::remove_file(folder.join(name)).expect("removed");
        }
        let authority = Secrets::open(&folder).expect("another authority").authority;
        for authority in [Some(authority), None] {
            let Err(failure) = ServerKey::open(&folder, &[], authority) else { panic!("taken") };
            let told = failure.to_string();
            assert!(told.contains("server.crt: not issued by ca.crt"), "{told}");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
