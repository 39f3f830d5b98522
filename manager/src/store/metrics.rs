//! The numbers that metrics are made from.

use super::change::Store;
use super::error::StoreError;
use crate::process::clock::now_ms;
use sqlx::FromRow;

/// How many commands of one cluster have a status.
#[derive(Debug, FromRow)]
pub(crate) struct Commands {
    /// The cluster.
    pub(crate) cluster_id: String,
    /// The status.
    pub(crate) status: String,
    /// How many.
    pub(crate) count: i64,
}

/// How many receipts came for the commands of one cluster.
#[derive(Debug, FromRow)]
pub(crate) struct Receipts {
    /// The cluster.
    pub(crate) cluster_id: String,
    /// How many.
    pub(crate) count: i64,
}

impl Store {
    /// How many commands of which cluster have which status.
    pub(crate) async fn commands_by_status(&self, tenant_id: &str) -> Result<Vec<Commands>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT cluster_id, status, count(*) AS count FROM (
                 SELECT cluster_id, CASE WHEN receipt_status IS NOT NULL THEN receipt_status
                                         WHEN not_after < $2 THEN 'expired'
                                         WHEN deliveries > 0 THEN 'delivered' ELSE 'queued' END AS status
                 FROM commands WHERE tenant_id = $1) AS shown
             GROUP BY cluster_id, status",
        )
        .bind(tenant_id)
        .bind(now_ms())
        .fetch_all(&self.pool)
        .await?)
    }

    /// How many receipts came for the commands of which cluster.
    pub(crate) async fn receipts_by_cluster(&self, tenant_id: &str) -> Result<Vec<Receipts>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT cluster_id, CAST(sum(receipts) AS BIGINT) AS count FROM commands
             WHERE tenant_id = $1 GROUP BY cluster_id",
        )
        .bind(tenant_id)
        .fetch_all(&self.pool)
        .await?)
    }
}
