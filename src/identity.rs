//! The files of the identity (CONTRACT section 3): loaded, verified, and turned into connections.
//!
//! An [`Identity`] is there once the keys of `manager.pem` have verified `config.json`, and all five fit together.

use crate::files::{self, MAX_FILE_BYTES};
use crate::http::{self, HttpsClient, TlsFiles};
use crate::rules::config::Configuration;
use crate::rules::envelope::KeyRing;
use crate::rules::names::format_time;
use crate::rules::verdict::Trust;
use crate::threads::Slot;
use jiff::Timestamp;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where the Secret is mounted.
pub const DEFAULT_DIR: &str = "/etc/navin/identity";

/// The files of an identity, in the order of their verification.
pub const FILES: [&str; 5] = ["manager.pem", "config.json", "ca.crt", "tls.crt", "tls.key"];

/// A verified identity. It has no `Debug` and no `Clone`: it holds the client's key.
pub struct Identity {
    /// The signed configuration.
    pub config: Configuration,
    /// The manager's keys.
    pub ring: KeyRing,
    /// When the client certificate ends, where it says so.
    pub certificate_not_after: Option<Timestamp>,
    ca: Vec<u8>,
    chain: Vec<u8>,
    key: Vec<u8>,
}

/// What is wrong with an identity: one line that names the file, the member where there is one, and what was
/// expected.
#[derive(Debug, PartialEq, Eq)]
pub struct IdentityError {
    path: PathBuf,
    problem: String,
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

impl Identity {
    /// Reads and verifies the five files of `dir`.
    ///
    /// # Errors
    ///
    /// See [`IdentityError`].
    pub fn load(dir: &Path) -> Result<Self, IdentityError> {
        let (ring, config) = load_signed(dir)?;
        let file = |name: &str| read(&dir.join(name));
        let (ca, chain, key) = (file("ca.crt")?, file("tls.crt")?, file("tls.key")?);
        http::check_issuers(&ca).map_err(|problem| wrong(dir, "ca.crt", problem))?;
        http::check_key_pair(&chain, &key).map_err(|(name, problem)| wrong(dir, name, problem))?;
        let certificate_not_after = http::not_after(&chain, &ca);
        Ok(Self { config, ring, certificate_not_after, ca, chain, key })
    }

    /// One that nothing can be connected with.
    #[cfg(test)]
    pub(crate) fn of(trust: Trust) -> Self {
        let Trust { ring, config } = trust;
        Self { config, ring, certificate_not_after: None, ca: vec![], chain: vec![], key: vec![] }
    }

    /// A client of the gateway, with connections of its own.
    ///
    /// # Errors
    ///
    /// What is wrong with the certificates.
    pub fn gateway_client(&self) -> Result<HttpsClient, String> {
        let tls = TlsFiles { ca: &self.ca, client: Some((&self.chain, &self.key)) };
        HttpsClient::new(self.config.gateway_url.as_str(), &tls, None)
    }

    /// Whether this identity may take the place of `running`: of the same agent, and not
    /// issued before it.
    ///
    /// # Errors
    ///
    /// The member, what was expected and what was found.
    pub fn succeeds(&self, running: &Self) -> Result<(), String> {
        let (new, old) = (&self.config, &running.config);
        for (member, new, old) in [
            ("tenant_id", new.tenant_id.as_str(), old.tenant_id.as_str()),
            ("cluster_id", new.cluster_id.as_str(), old.cluster_id.as_str()),
            ("namespace", new.namespace.as_str(), old.namespace.as_str()),
        ] {
            if new != old {
                return Err(format!("config.json: payload.{member}: expected {old:?}, found {new:?}"));
            }
        }
        if new.issued_at < old.issued_at {
            let (new, old) = (format_time(new.issued_at), format_time(old.issued_at));
            return Err(format!("config.json: payload.issued_at: expected not before {old}, found {new}"));
        }
        Ok(())
    }

    /// What commands are judged by.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust { ring: self.ring.clone(), config: self.config.clone() }
    }
}

/// The identity in use; another takes its place while the process runs.
pub type Current = Slot<Identity>;

/// SHA-256 over the five files as they are, readable or not: what changes when one of them does.
#[must_use]
pub fn fingerprint(dir: &Path) -> [u8; 32] {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for name in FILES {
        let bytes = files::read(&dir.join(name), MAX_FILE_BYTES).unwrap_or_default();
        context.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        context.update(&bytes);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// Reads and verifies what is needed to judge a command: `manager.pem` and `config.json`.
///
/// # Errors
///
/// See [`IdentityError`].
pub fn load_signed(dir: &Path) -> Result<(KeyRing, Configuration), IdentityError> {
    let path = dir.join("manager.pem");
    let pem = files::read_text(&path, MAX_FILE_BYTES).map_err(|e| unreadable(&path, &e))?;
    let ring = KeyRing::from_pem(&pem).map_err(|e| wrong(dir, "manager.pem", e.to_string()))?;
    let bytes = read(&dir.join("config.json"))?;
    let config = Configuration::open(&bytes, &ring).map_err(|e| wrong(dir, "config.json", e.to_string()))?;
    Ok((ring, config.into_value()))
}

fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    files::read(path, MAX_FILE_BYTES).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &std::io::Error) -> IdentityError {
    IdentityError { path: path.to_owned(), problem: format!("not readable: {error}") }
}

fn wrong(dir: &Path, name: &str, problem: String) -> IdentityError {
    IdentityError { path: dir.join(name), problem }
}
