//! What only `PostgreSQL` does: locks by name, and word between processes.

use super::error::{StoreError, bounded};
use super::key::ClusterKey;
use super::server::Server;
use sqlx::postgres::PgListener;
use sqlx::{AnyConnection, AnyPool};
use std::time::Duration;

/// The channel on which processes tell each other of what polls wait for.
const CHANNEL: &str = "navin_wake";

/// Between two tries to reach the server again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// How long nothing is heard before the server is asked again to tell.
const SILENCE: Duration = Duration::from_mins(1);

/// Whether the tables were made once.
pub(super) async fn has_tables(pool: &AnyPool) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL").fetch_one(pool).await?)
}

/// Locks a subject until the end of the change.
pub(super) async fn lock(change: &mut AnyConnection, subject: &str) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 1))")
        .bind(subject)
        .execute(change)
        .await?;
    Ok(())
}

/// Tells all processes of a cluster, at the commit.
pub(super) async fn notify(change: &mut AnyConnection, cluster: &str) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(cluster).execute(change).await?;
    Ok(())
}

/// Listens for what other processes tell, for ever. What is missed while the server is away, the
/// polls' own look finds.
pub(crate) async fn listen(server: Server, told: impl Fn(&ClusterKey)) {
    loop {
        if let Err(error) = listen_once(&server, &told).await {
            tracing::warn!(%error, "the database does not answer: what others queued is seen later");
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }
}

async fn listen_once(server: &Server, told: &impl Fn(&ClusterKey)) -> Result<(), StoreError> {
    let mut listener = bounded(async {
        let mut listener = PgListener::connect(server.url()).await?;
        listener.listen(CHANNEL).await?;
        Ok(listener)
    })
    .await?;
    loop {
        // After a silence it is begun anew: the server may be gone without a word.
        let Ok(word) = tokio::time::timeout(SILENCE, listener.recv()).await else { return Ok(()) };
        if let Some(cluster) = ClusterKey::of_text(word?.payload()) {
            told(&cluster);
        }
    }
}
