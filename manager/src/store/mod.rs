//! All that must outlive the process: one `SQLite` database, which several processes may share.
//!
//! Every change is one transaction that takes the write lock at its beginning, so that what it read
//! is still true when it writes, and that is on the disk (`synchronous=FULL`) before anything is
//! answered. The statements keep to what `PostgreSQL` reads too.
#![expect(clippy::struct_field_names, reason = "fields are named as the columns are")]

use crate::failure::Failure;
use crate::files;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqlitePool, Transaction};
use std::path::Path;
use std::time::Duration;

pub(crate) mod audit;
pub(crate) mod clusters;
pub(crate) mod commands;
pub(crate) mod delivery;
pub(crate) mod gateways;
pub(crate) mod identities;
pub(crate) mod receipts;
pub(crate) mod reports;
pub(crate) mod tokens;

/// How long a statement waits for the write lock of another.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a request waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections to the database.
const MAX_CONNECTIONS: u32 = 8;

/// The database failed, or was busy for too long: nothing was acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("database: {0}")]
pub(crate) struct StoreError(#[from] sqlx::Error);

/// A change under way.
pub(crate) type Change = Transaction<'static, Sqlite>;

/// Whose cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClusterKey {
    /// The tenant.
    pub(crate) tenant_id: String,
    /// The cluster, unique in its tenant.
    pub(crate) cluster_id: String,
}

/// The database.
pub(crate) struct Store {
    pool: SqlitePool,
}

impl Store {
    /// Opens `manager.db`, made and brought up to date where needed.
    pub(crate) async fn open(folder: &Path) -> Result<Self, Failure> {
        files::make_folder(folder)?;
        let _lock = files::lock_folder(folder)?;
        let path = folder.join("manager.db");
        // Made here, for SQLite would let everyone read it. What is beside it takes its mode.
        drop(files::open_private(&path)?);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = SqlitePoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options)
            .await
            .map_err(StoreError)?;
        sqlx::migrate!("./migrations")
            .run(&pool)
            .await
            .map_err(|error| Failure::System(format!("database: {error}")))?;
        Ok(Self { pool })
    }

    /// Begins a change: no other process changes anything until it is committed or dropped.
    pub(crate) async fn change(&self) -> Result<Change, StoreError> {
        Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Whether the database answers.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(&self.pool).await?;
        Ok(())
    }

    /// Closes all connections: what was written is checkpointed.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Makes a change durable.
pub(crate) async fn commit(change: Change) -> Result<(), StoreError> {
    Ok(change.commit().await?)
}

/// An identifier that sorts by the time of its making.
fn sorted_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
