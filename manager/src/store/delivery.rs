//! Which commands go out with an answer. CONTRACT section 4.

use super::{ClusterKey, Store, StoreError, commit, identities};
use crate::clock::now_ms;
use sqlx::FromRow;

/// A command without a receipt is delivered again after this time.
const AGAIN_AFTER_MS: i64 = 15_000;

/// Most commands of one answer.
const MAX_COMMANDS: i64 = 64;

/// Most bytes of one answer, with room for what is around the envelopes.
const MAX_BYTES: usize = 4 * 1024 * 1024 - 1024;

/// What a poll found.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// The identity is no longer good.
    Revoked,
    /// Nothing is due.
    Nothing,
    /// These envelopes, in the order of their sequence.
    Envelopes(Vec<String>),
}

#[derive(FromRow)]
struct Due {
    command_id: String,
    envelope: String,
}

impl Store {
    /// Whether taking what is due would find something: the identity revoked, or a command due. One
    /// statement without the write lock, for this is all that most polls ask.
    pub(crate) async fn worth_a_look(&self, key: &ClusterKey, identity_id: &str) -> Result<bool, StoreError> {
        let now = now_ms();
        let worth: i64 = sqlx::query_scalar(
            "SELECT CAST(CASE
               WHEN NOT EXISTS (SELECT 1 FROM identities WHERE identity_id = $5 AND revoked_at IS NULL) THEN 1
               WHEN EXISTS (SELECT 1 FROM commands
                 WHERE tenant_id = $1 AND cluster_id = $2 AND receipt_recorded = 0
                   AND not_before <= $3 AND not_after >= $3
                   AND (delivered_at IS NULL OR delivered_at <= $4 OR delivered_at > $3)) THEN 1
               ELSE 0 END AS BIGINT)",
        )
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .bind(now)
        .bind(now.saturating_sub(AGAIN_AFTER_MS))
        .bind(identity_id)
        .fetch_one(&self.pool)
        .await?;
        Ok(worth == 1)
    }

    /// The clusters that a command is due for.
    pub(crate) async fn due_clusters(&self) -> Result<Vec<ClusterKey>, StoreError> {
        let now = now_ms();
        let due: Vec<(String, String)> = sqlx::query_as(
            "SELECT DISTINCT tenant_id, cluster_id FROM commands
             WHERE receipt_recorded = 0 AND not_before <= $1 AND not_after >= $1
               AND (delivered_at IS NULL OR delivered_at <= $2 OR delivered_at > $1)",
        )
        .bind(now)
        .bind(now.saturating_sub(AGAIN_AFTER_MS))
        .fetch_all(&self.pool)
        .await?;
        Ok(due.into_iter().map(|(tenant_id, cluster_id)| ClusterKey { tenant_id, cluster_id }).collect())
    }

    /// Takes what is due. The time of delivery is written in the same change, so that no other
    /// gateway takes it too. A delivery of the future was before the clock was set back.
    pub(crate) async fn take_due(
        &self,
        key: &ClusterKey,
        identity_id: &str,
        gateway_id: &str,
    ) -> Result<Delivery, StoreError> {
        let mut change = self.change(key).await?;
        if !identities::is_good(&mut change, identity_id).await? {
            return Ok(Delivery::Revoked);
        }
        let now = now_ms();
        let due: Vec<Due> = sqlx::query_as(
            "SELECT command_id, envelope FROM commands
             WHERE tenant_id = $1 AND cluster_id = $2 AND receipt_recorded = 0
               AND not_before <= $3 AND not_after >= $3
               AND (delivered_at IS NULL OR delivered_at <= $4 OR delivered_at > $3)
             ORDER BY sequence LIMIT $5",
        )
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .bind(now)
        .bind(now.saturating_sub(AGAIN_AFTER_MS))
        .bind(MAX_COMMANDS)
        .fetch_all(&mut *change)
        .await?;
        let mut taken = Vec::new();
        let mut bytes: usize = 0;
        for command in due {
            bytes = bytes.saturating_add(command.envelope.len()).saturating_add(1);
            if bytes > MAX_BYTES {
                break;
            }
            sqlx::query(
                "UPDATE commands SET delivered_at = $2, delivered_by = $3, deliveries = deliveries + 1
                 WHERE command_id = $1",
            )
            .bind(&command.command_id)
            .bind(now)
            .bind(gateway_id)
            .execute(&mut *change)
            .await?;
            taken.push(command.envelope);
        }
        if taken.is_empty() {
            return Ok(Delivery::Nothing);
        }
        commit(change).await?;
        Ok(Delivery::Envelopes(taken))
    }
}
