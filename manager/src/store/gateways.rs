//! The processes that deliver. What a dead one delivered is due at once.

use super::change::{Store, commit};
use super::error::StoreError;
use crate::process::clock::now_ms;

impl Store {
    /// Registers a process.
    pub(crate) async fn add_gateway(&self, gateway_id: &str) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO gateways (gateway_id, started_at) VALUES ($1, $2)")
            .bind(gateway_id)
            .bind(now_ms())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// The registered processes, dead ones among them.
    pub(crate) async fn gateways(&self) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar("SELECT gateway_id FROM gateways").fetch_all(&self.pool).await?)
    }

    /// Forgets a dead process: what it delivered and was not answered is due.
    pub(crate) async fn remove_gateway(&self, gateway_id: &str) -> Result<(), StoreError> {
        let mut change = self.change_of(gateway_id).await?;
        sqlx::query(
            "UPDATE commands SET delivered_at = NULL WHERE delivered_by = $1 AND receipt_recorded = 0",
        )
        .bind(gateway_id)
        .execute(&mut *change)
        .await?;
        sqlx::query("DELETE FROM gateways WHERE gateway_id = $1")
            .bind(gateway_id)
            .execute(&mut *change)
            .await?;
        commit(change).await
    }
}
