//! The certificate authority: one root, which signs the server's and the agents' certificates.

use super::signing::{random, sha256_hex};
use crate::process::clock::{SECOND_MS, now_ms};
use crate::process::failure::Failure;
use crate::process::files;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// How long the root is good for.
const ROOT_DAYS: i64 = 3650;

/// How long the server's certificate is good for.
pub(crate) const SERVER_DAYS: i64 = 730;

/// How long an agent's certificate is good for.
const CLIENT_DAYS: i64 = 365;

/// What is wrong with a file that a gateway alone does not make.
pub(crate) const MISSING: &str = "missing; `serve` makes it at its first start";

/// Certificates begin this long ago, for clocks that are a little behind.
const BACKDATED_S: i64 = 3600;

/// The root's certificate: all that it takes to know whom it has certified.
pub(crate) struct Root {
    pem: String,
    der: CertificateDer<'static>,
}

/// The root's key, with its certificate.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: Root,
}

/// What an agent is given to be known by.
pub(crate) struct ClientCertificate {
    /// The certificate.
    pub(crate) certificate_pem: String,
    /// Its key, which is kept nowhere.
    pub(crate) key_pem: String,
    /// SHA-256 of the certificate.
    pub(crate) fingerprint: String,
    /// When it ends.
    pub(crate) not_after_ms: i64,
}

impl Root {
    /// Reads `ca.crt`, which must be there.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join("ca.crt");
        let pem = files::read_text(&path)?.ok_or_else(|| Failure::damaged(&path, MISSING))?;
        Self::of(&path, pem)
    }

    fn of(path: &Path, pem: String) -> Result<Self, Failure> {
        let der = read_certificate(path, &pem)?;
        let (_, parsed) =
            X509Certificate::from_der(&der).map_err(|_| Failure::damaged(path, "not a certificate"))?;
        if !parsed.is_ca() {
            return Err(Failure::damaged(path, "not the certificate of an authority"));
        }
        Ok(Self { pem, der })
    }

    /// As agents trust it.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// The same in DER.
    pub(crate) fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Whether this root has signed the certificate: the name is that of every root.
    pub(crate) fn is_issuer_of(&self, certificate: &X509Certificate<'_>) -> bool {
        X509Certificate::from_der(&self.der).is_ok_and(|(_, root)| {
            root.subject() == certificate.issuer()
                && certificate.verify_signature(Some(root.public_key())).is_ok()
        })
    }
}

impl Authority {
    /// Opens `ca.key` and `ca.crt`, which are made where they are not there.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        let (key_path, path) = (folder.join("ca.key"), folder.join("ca.crt"));
        let certificate = files::read_text(&path)?;
        let key = open_key(&key_path, certificate.is_some())?;
        let pem = match certificate {
            Some(pem) => pem,
            None => make_root(&key, &path)?,
        };
        let root = Root::of(&path, pem)?;
        let (_, parsed) =
            X509Certificate::from_der(&root.der).map_err(|_| Failure::damaged(&path, "not a certificate"))?;
        if !is_of_key(&parsed, &key) {
            return Err(Failure::misfit(&path, "not of the key in ca.key"));
        }
        let issuer =
            Issuer::from_ca_cert_der(&root.der, key).map_err(|error| Failure::damaged(&path, error))?;
        Ok(Self { issuer, root })
    }

    /// Its certificate.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// A certificate for the server's key and its names.
    pub(crate) fn server(&self, key: &KeyPair, names: &[String], days: i64) -> Result<String, Failure> {
        let (mut params, _) = params("navin-manager", days)?;
        let alternatives = CertificateParams::new(names).map_err(certificate_error)?;
        params.subject_alt_names = alternatives.subject_alt_names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(key, &self.issuer).map_err(certificate_error)?.pem())
    }

    /// A certificate with a new key for an agent.
    pub(crate) fn client(&self, identity_id: &str) -> Result<ClientCertificate, Failure> {
        let key = KeyPair::generate().map_err(certificate_error)?;
        let (mut params, not_after_ms) = params(identity_id, CLIENT_DAYS)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer).map_err(certificate_error)?;
        Ok(ClientCertificate {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            fingerprint: sha256_hex(certificate.der()),
            not_after_ms,
        })
    }
}

/// Reads a private key, which must be there.
pub(crate) fn read_key(path: &Path) -> Result<KeyPair, Failure> {
    let text = files::read_text(path)?.ok_or_else(|| Failure::damaged(path, MISSING))?;
    key_of(path, &text)
}

fn key_of(path: &Path, text: &str) -> Result<KeyPair, Failure> {
    KeyPair::from_pem(text).map_err(|_| Failure::misfit(path, "not a private key in PEM"))
}

/// Reads a private key, or makes one: not where its certificate is there already.
pub(crate) fn open_key(path: &Path, certified: bool) -> Result<KeyPair, Failure> {
    match (files::read_text(path)?, certified) {
        (Some(text), _) => key_of(path, &text),
        (None, true) => {
            let certificate = path.with_extension("crt");
            Err(Failure::misfit(path, &format!("missing, while {} is there", certificate.display())))
        }
        (None, false) => {
            let key = KeyPair::generate().map_err(certificate_error)?;
            files::replace(path, key.serialize_pem().as_bytes(), files::PRIVATE)?;
            Ok(key)
        }
    }
}

/// The first certificate of a PEM text.
pub(crate) fn read_certificate(path: &Path, pem: &str) -> Result<CertificateDer<'static>, Failure> {
    CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| Failure::misfit(path, "not a certificate in PEM"))
}

/// Whether a certificate is of this key.
pub(crate) fn is_of_key(certificate: &X509Certificate<'_>, key: &KeyPair) -> bool {
    certificate.public_key().raw == key.subject_public_key_info()
}

fn make_root(key: &KeyPair, path: &Path) -> Result<String, Failure> {
    let (mut params, _) = params("navin-manager root", ROOT_DAYS)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let pem = params.self_signed(key).map_err(certificate_error)?.pem();
    files::replace(path, pem.as_bytes(), files::PUBLIC)?;
    tracing::warn!(file = %path.display(), "made a new authority: no agent trusts it before an identity is issued and applied");
    Ok(pem)
}

/// What all certificates have in common, and when this one ends.
fn params(name: &str, days: i64) -> Result<(CertificateParams, i64), Failure> {
    let now_s = now_ms().div_euclid(SECOND_MS);
    let not_after_s = now_s.saturating_add(days.saturating_mul(DAY_S));
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = time_of(now_s.saturating_sub(BACKDATED_S))?;
    params.not_after = time_of(not_after_s)?;
    params.serial_number = Some(SerialNumber::from_slice(&random::<16>()?));
    Ok((params, not_after_s.saturating_mul(SECOND_MS)))
}

fn time_of(seconds: i64) -> Result<OffsetDateTime, Failure> {
    OffsetDateTime::from_unix_timestamp(seconds)
        .map_err(|_| Failure::System("the clock is beyond the calendar".to_owned()))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err wants")]
fn certificate_error(error: rcgen::Error) -> Failure {
    Failure::System(format!("cannot make a certificate: {error}"))
}
