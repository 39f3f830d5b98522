//! The database, and changes of it.

use super::database::{Database, Kind, WAIT};
use super::error::StoreError;
use super::key::ClusterKey;
use super::postgres;
use crate::process::failure::Failure;
use sqlx::{Any, AnyConnection, AnyPool, Transaction};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The database.
pub(crate) struct Store {
    pub(super) pool: AnyPool,
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
        turn.ok().and_then(Result::ok).ok_or_else(StoreError::unanswered)
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

impl Change {
    /// Wakes the polls of a cluster in all processes, once this is committed.
    pub(super) async fn wake(&mut self, cluster: &ClusterKey) -> Result<(), StoreError> {
        // The processes on one SQLite file look for themselves, every second.
        if self.kind == Kind::Postgres { postgres::notify(self, &cluster.text()).await } else { Ok(()) }
    }
}

/// Makes a change durable.
pub(crate) async fn commit(change: Change) -> Result<(), StoreError> {
    Ok(change.transaction.commit().await?)
}

/// An identifier that sorts by the time of its making.
pub(super) fn sorted_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
