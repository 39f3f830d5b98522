//! Commands: queued with their sequence and signature in one change.

use super::change::{Change, Store};
use super::error::StoreError;
use super::key::ClusterKey;
use crate::process::clock::now_ms;
use sqlx::FromRow;

/// A new command.
#[derive(Debug)]
pub(crate) struct NewCommand<'c> {
    /// Its identifier.
    pub(crate) command_id: &'c str,
    /// Its place in the order of approval.
    pub(crate) sequence: i64,
    /// Used once.
    pub(crate) nonce: &'c str,
    /// What to do.
    pub(crate) operation: &'c str,
    /// To which component, where it writes one.
    pub(crate) name: Option<&'c str>,
    /// The signed envelope.
    pub(crate) envelope: &'c str,
    /// When it was approved.
    pub(crate) created_at: i64,
    /// By whom.
    pub(crate) created_by: &'c str,
    /// The window's first moment.
    pub(crate) not_before: i64,
    /// The window's last moment.
    pub(crate) not_after: i64,
}

/// A command as the API shows it.
#[derive(Debug, FromRow)]
pub(crate) struct Command {
    /// Its identifier.
    pub(crate) command_id: String,
    /// Its place in the order of approval.
    pub(crate) sequence: i64,
    /// Used once.
    pub(crate) nonce: String,
    /// What to do.
    pub(crate) operation: String,
    /// To which component, where it writes one and that is known.
    pub(crate) name: Option<String>,
    /// When it was approved.
    pub(crate) created_at: i64,
    /// By whom.
    pub(crate) created_by: String,
    /// The window's first moment.
    pub(crate) not_before: i64,
    /// The window's last moment.
    pub(crate) not_after: i64,
    /// When it was delivered last.
    pub(crate) delivered_at: Option<i64>,
    /// How often it was delivered.
    pub(crate) deliveries: i64,
    /// The receipt that is shown.
    pub(crate) receipt: Option<String>,
    /// The status that is shown.
    pub(crate) status: String,
    /// Whether that is the recorded outcome.
    pub(crate) receipt_recorded: i64,
    /// When it came.
    pub(crate) receipt_at: Option<i64>,
    /// How many receipts came.
    pub(crate) receipts: i64,
}

/// The status of a command at the moment that is bound first. `expired` is ours: a recorded receipt may still replace it.
macro_rules! status {
    () => {
        "CASE WHEN receipt_status IS NOT NULL THEN receipt_status WHEN not_after < $1 THEN 'expired'
              WHEN deliveries > 0 THEN 'delivered' ELSE 'queued' END AS status"
    };
}

/// Selects what is shown of the commands that are these.
macro_rules! shown {
    ($these:literal) => {
        concat!(
            "SELECT command_id, sequence, nonce, operation, name, created_at, created_by, not_before, not_after,
                    delivered_at, deliveries, receipt, receipt_recorded, receipt_at, receipts, ",
            status!(),
            " FROM commands WHERE ",
            $these
        )
    };
}

/// How many commands of a cluster have a status.
#[derive(Debug, FromRow)]
pub(crate) struct Count {
    /// The cluster.
    pub(crate) cluster_id: String,
    /// The status.
    pub(crate) status: String,
    /// How many.
    pub(crate) count: i64,
}

/// Queues a command, and takes its sequence.
pub(crate) async fn insert(
    change: &mut Change,
    key: &ClusterKey,
    command: &NewCommand<'_>,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE clusters SET next_sequence = $3 WHERE tenant_id = $1 AND cluster_id = $2")
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .bind(command.sequence.saturating_add(1))
        .execute(&mut **change)
        .await?;
    sqlx::query(
        "INSERT INTO commands (command_id, tenant_id, cluster_id, sequence, nonce, operation, name, envelope,
           created_at, created_by, not_before, not_after, deliveries, receipt_recorded, receipts)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, 0, 0)",
    )
    .bind(command.command_id)
    .bind(&key.tenant_id)
    .bind(&key.cluster_id)
    .bind(command.sequence)
    .bind(command.nonce)
    .bind(command.operation)
    .bind(command.name)
    .bind(command.envelope)
    .bind(command.created_at)
    .bind(command.created_by)
    .bind(command.not_before)
    .bind(command.not_after)
    .execute(&mut **change)
    .await?;
    change.wake(key).await
}

impl Store {
    /// The newest commands of a cluster, those before a sequence where one is given.
    pub(crate) async fn commands(
        &self,
        key: &ClusterKey,
        before: Option<i64>,
        limit: i64,
    ) -> Result<Vec<Command>, StoreError> {
        Ok(sqlx::query_as(
            shown!(
                "tenant_id = $2 AND cluster_id = $3 AND ($4 IS NULL OR sequence < $4) ORDER BY sequence DESC LIMIT $5"
            ),
        )
        .bind(now_ms())
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .bind(before)
        .bind(limit)
        .fetch_all(&self.pool)
        .await?)
    }

    /// One command of a cluster.
    pub(crate) async fn command(
        &self,
        key: &ClusterKey,
        command_id: &str,
    ) -> Result<Option<Command>, StoreError> {
        Ok(sqlx::query_as(shown!("tenant_id = $2 AND cluster_id = $3 AND command_id = $4"))
            .bind(now_ms())
            .bind(&key.tenant_id)
            .bind(&key.cluster_id)
            .bind(command_id)
            .fetch_optional(&self.pool)
            .await?)
    }

    /// The envelope of a command, as it is delivered.
    pub(crate) async fn envelope(&self, command_id: &str) -> Result<String, StoreError> {
        Ok(sqlx::query_scalar("SELECT envelope FROM commands WHERE command_id = $1")
            .bind(command_id)
            .fetch_one(&self.pool)
            .await?)
    }

    /// How many commands of a cluster have which status.
    pub(crate) async fn command_counts(&self, key: &ClusterKey) -> Result<Vec<Count>, StoreError> {
        Ok(sqlx::query_as(concat!(
            "SELECT cluster_id, status, count(*) AS count FROM (SELECT cluster_id, ",
            status!(),
            " FROM commands WHERE tenant_id = $2 AND cluster_id = $3) AS shown GROUP BY cluster_id, status"
        ))
        .bind(now_ms())
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .fetch_all(&self.pool)
        .await?)
    }

    /// How many commands of which cluster of a tenant have which status.
    pub(crate) async fn commands_by_status(&self, tenant_id: &str) -> Result<Vec<Count>, StoreError> {
        Ok(sqlx::query_as(concat!(
            "SELECT cluster_id, status, count(*) AS count FROM (SELECT cluster_id, ",
            status!(),
            " FROM commands WHERE tenant_id = $2) AS shown GROUP BY cluster_id, status"
        ))
        .bind(now_ms())
        .bind(tenant_id)
        .fetch_all(&self.pool)
        .await?)
    }
}
