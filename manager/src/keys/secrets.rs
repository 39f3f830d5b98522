//! What only those have who make identities and commands.

use super::authority::{Authority, MISSING};
use super::signing::Signer;
use crate::process::failure::Failure;
use crate::process::files;
use std::path::Path;
use std::sync::Arc;

/// What makes identities and commands.
pub(crate) struct Secrets {
    /// The root of all certificates.
    pub(crate) authority: Arc<Authority>,
    /// What signs commands and configurations.
    pub(crate) signer: Signer,
}

impl Secrets {
    /// Opens them; at the first start, makes them.
    pub(crate) fn open(folder: &Path) -> Result<Self, Failure> {
        files::make_folder(folder)?;
        let _lock = files::lock_folder(folder)?;
        Ok(Self { authority: Arc::new(Authority::open(folder)?), signer: Signer::open(folder)? })
    }

    /// Opens the signing key alone, which must be there: no agent would trust a new one.
    pub(crate) fn open_signer(folder: &Path) -> Result<Signer, Failure> {
        let key = folder.join("signing.key");
        if !files::is_there(&key)? {
            return Err(Failure::damaged(&key, MISSING));
        }
        let _lock = files::lock_folder(folder)?;
        Signer::open(folder)
    }
}
