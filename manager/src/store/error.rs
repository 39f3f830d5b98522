//! What is told where the database fails, and how long it may take.

use crate::process::failure::Failure;
use std::time::Duration;

/// How long a call waits for the database in all.
const ANSWER_LIMIT: Duration = Duration::from_secs(12);

/// The database failed, or was busy for too long: nothing was acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("database: {0}")]
pub(crate) struct StoreError(#[from] sqlx::Error);

impl StoreError {
    /// Not answered in time.
    pub(crate) fn unanswered() -> Self {
        Self(sqlx::Error::PoolTimedOut)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

/// Waits for the database, but not for ever: one that is stopped keeps its connections and says nothing.
pub(crate) async fn bounded<T>(of: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    tokio::time::timeout(ANSWER_LIMIT, of).await.unwrap_or_else(|_| Err(StoreError::unanswered()))
}
