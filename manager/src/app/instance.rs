//! Which gateway processes live. CONTRACT section 4: after a restart every unanswered command is
//! due, but not those that another living process has just delivered.
//!
//! Each process holds a lock that goes when the process ends, however it ends: so what can be locked is
//! a dead process's. `SQLite` wants all processes on one machine, and there the locks are files; on
//! `PostgreSQL` they are the server's.

use crate::process::failure::Failure;
use crate::process::files;
use crate::store::life::Life;
use crate::store::{Database, Store};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// This process among the gateways.
pub(crate) struct Instance {
    id: String,
    /// Held while the process lives.
    _lock: Option<File>,
}

impl Instance {
    /// Registers this process, and makes due what the dead ones delivered.
    pub(crate) async fn register(store: &Store) -> Result<Self, Failure> {
        let id = uuid::Uuid::new_v4().to_string();
        match store.database() {
            Database::Sqlite(path) => {
                let lock = register_file(files::folder_of(path), &id, store).await?;
                Ok(Self { id, _lock: Some(lock) })
            }
            Database::Postgres(server) => {
                tokio::spawn(Life::begin(server, &id, store).await?.keep());
                Ok(Self { id, _lock: None })
            }
        }
    }

    /// The name of this process.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

async fn register_file(data: &Path, id: &str, store: &Store) -> Result<File, Failure> {
    let folder = data.join("gateways");
    files::make_folder(&folder)?;
    // One at a time: a file that was made and not yet locked would look dead.
    let _one = files::lock_folder(&folder)?;
    for id in store.gateways().await? {
        bury_if_dead(&lock_path(&folder, &id), &id, store).await?;
    }
    let path = lock_path(&folder, id);
    let lock = files::open_private(&path)?;
    lock.lock().map_err(|error| Failure::file(&path, error))?;
    store.add_gateway(id).await?;
    Ok(lock)
}

fn lock_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.lock"))
}

async fn bury_if_dead(path: &Path, id: &str, store: &Store) -> Result<(), Failure> {
    let file = files::open_private(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(Failure::file(path, error)),
    }
    store.remove_gateway(id).await?;
    tracing::info!(gateway = id, "a former gateway is gone; what it delivered is due");
    std::fs::remove_file(path).map_err(|error| Failure::file(path, error))
}
