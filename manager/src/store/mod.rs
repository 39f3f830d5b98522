//! All that must outlive the process: one database, which several processes may share. `SQLite`, on
//! one machine, or `PostgreSQL`, from many.
//!
//! Every change is one transaction in which what it read is still true when it writes: `SQLite` gives
//! it the one write lock at its beginning, `PostgreSQL` a lock of what it is about ([`Store::change`]).
//! It is on the disk before anything is answered. The statements are those of both databases.
#![expect(clippy::struct_field_names, reason = "fields are named as the columns are")]

use crate::failure::Failure;
use sqlx::{Any, AnyConnection, AnyPool, Transaction};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) mod audit;
pub(crate) mod clusters;
pub(crate) mod commands;
pub(crate) mod contacts;
pub(crate) mod database;
pub(crate) mod delivery;
pub(crate) mod gateways;
pub(crate) mod identities;
pub(crate) mod metrics;
pub(crate) mod postgres;
pub(crate) mod receipts;
pub(crate) mod reports;
pub(crate) mod tokens;

pub(crate) use database::{Database, Kind};

/// How long a change waits for its turn, or for a connection.
const WAIT: Duration = Duration::from_secs(5);

/// How long a call waits for the database in all.
const ANSWER_LIMIT: Duration = Duration::from_secs(12);

/// The database failed, or was busy for too long: nothing was acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("database: {0}")]
pub(crate) struct StoreError(#[from] sqlx::Error);

/// A change under way; dropped, it never was.
pub(crate) struct Change {
    transaction: Transaction<'static, Any>,
    kind: Kind,
    /// After the transaction: the next one begins when this one has ended.
    _turn: Option<OwnedSemaphorePermit>,
}

impl Deref for Change {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        &self.transaction
    }
}

impl DerefMut for Change {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.transaction
    }
}

/// Whose cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClusterKey {
    /// The tenant.
    pub(crate) tenant_id: String,
    /// The cluster, unique in its tenant.
    pub(crate) cluster_id: String,
}

impl ClusterKey {
    /// The cluster as one text. Neither name has a slash in it.
    fn text(&self) -> String {
        format!("{}/{}", self.tenant_id, self.cluster_id)
    }

    /// The cluster of such a text.
    fn of_text(text: &str) -> Option<Self> {
        let (tenant_id, cluster_id) = text.split_once('/')?;
        Some(Self { tenant_id: tenant_id.to_owned(), cluster_id: cluster_id.to_owned() })
    }
}

/// The database.
pub(crate) struct Store {
    pool: AnyPool,
    database: Database,
    /// Whose turn it is to write to `SQLite`, in the order of asking. Without it they would wait in
    /// SQLite's own way, by sleeping and asking again, some of them for seconds.
    turns: Arc<Semaphore>,
}

impl Store {
    /// Opens the database, brought up to date where needed.
    pub(crate) async fn open(database: &Database) -> Result<Self, Failure> {
        Self::of(database, false).await
    }

    /// The same; made where it is not there.
    pub(crate) async fn make(database: &Database) -> Result<Self, Failure> {
        Self::of(database, true).await
    }

    async fn of(database: &Database, make: bool) -> Result<Self, Failure> {
        let pool = database.open(make).await?;
        Ok(Self { pool, database: database.clone(), turns: Arc::new(Semaphore::new(1)) })
    }

    /// Which database it is.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Begins a change of a cluster: nobody else changes anything of it until it is committed or
    /// dropped.
    pub(crate) async fn change(&self, cluster: &ClusterKey) -> Result<Change, StoreError> {
        self.change_of(&cluster.text()).await
    }

    /// Begins a change of what is not a cluster's.
    pub(crate) async fn change_of(&self, subject: &str) -> Result<Change, StoreError> {
        let kind = self.database.kind();
        let turn = match kind {
            Kind::Sqlite => Some(self.turn().await?),
            Kind::Postgres => None,
        };
        let transaction = self.pool.begin_with(kind.begin()).await?;
        let mut change = Change { transaction, kind, _turn: turn };
        if kind == Kind::Postgres {
            postgres::lock(&mut change, subject).await?;
        }
        Ok(change)
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let turn = tokio::time::timeout(WAIT, Arc::clone(&self.turns).acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or(StoreError(sqlx::Error::PoolTimedOut))
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

impl Change {
    /// Wakes the polls of a cluster in all processes, once this is committed.
    async fn wake(&mut self, cluster: &ClusterKey) -> Result<(), StoreError> {
        // The processes on one SQLite file look for themselves, every second.
        if self.kind == Kind::Postgres { postgres::notify(self, &cluster.text()).await } else { Ok(()) }
    }
}

/// Waits for the database, but not for ever: one that is stopped keeps its connections and says nothing.
pub(crate) async fn bounded<T>(of: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    tokio::time::timeout(ANSWER_LIMIT, of).await.unwrap_or(Err(StoreError(sqlx::Error::PoolTimedOut)))
}

/// Makes a change durable.
pub(crate) async fn commit(change: Change) -> Result<(), StoreError> {
    Ok(change.transaction.commit().await?)
}

/// An identifier that sorts by the time of its making.
fn sorted_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
