//! The issued identities: at most one of a cluster is good.

use super::change::{Change, Store};
use super::error::StoreError;
use super::key::ClusterKey;
use crate::process::clock::now_ms;
use sqlx::FromRow;

/// How long ago a revocation is still told to polls that wait: longer than any poll waits, with
/// room for clocks that differ.
const OF_LATE_MS: i64 = 120_000;

/// Whom a certificate belongs to.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct Identity {
    /// The identity.
    pub(crate) identity_id: String,
    /// Its tenant.
    pub(crate) tenant_id: String,
    /// Its cluster.
    pub(crate) cluster_id: String,
    /// When it was revoked.
    pub(crate) revoked_at: Option<i64>,
}

impl Identity {
    /// The cluster that it speaks for.
    pub(crate) fn cluster(&self) -> ClusterKey {
        ClusterKey { tenant_id: self.tenant_id.clone(), cluster_id: self.cluster_id.clone() }
    }

    /// How the audit names it.
    pub(crate) fn actor(&self) -> String {
        format!("identity:{}", self.identity_id)
    }
}

/// A new identity.
#[derive(Debug)]
pub(crate) struct Issued<'i> {
    /// The identity.
    pub(crate) identity_id: &'i str,
    /// SHA-256 of its certificate.
    pub(crate) fingerprint: &'i str,
    /// When it was issued.
    pub(crate) issued_at: i64,
    /// When its certificate ends.
    pub(crate) not_after: i64,
    /// The longest window that its agent takes.
    pub(crate) max_validity_s: i64,
    /// Where its agent calls.
    pub(crate) gateway_url: &'i str,
}

/// When the newest identity of a cluster was issued.
pub(crate) async fn last_issued(change: &mut Change, key: &ClusterKey) -> Result<Option<i64>, StoreError> {
    Ok(sqlx::query_scalar("SELECT max(issued_at) FROM identities WHERE tenant_id = $1 AND cluster_id = $2")
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .fetch_one(&mut **change)
        .await?)
}

/// Replaces the identity of a cluster: the previous one is revoked.
pub(crate) async fn replace(
    change: &mut Change,
    key: &ClusterKey,
    issued: &Issued<'_>,
) -> Result<u64, StoreError> {
    let revoked = sqlx::query(
        "UPDATE identities SET revoked_at = $3
         WHERE tenant_id = $1 AND cluster_id = $2 AND revoked_at IS NULL",
    )
    .bind(&key.tenant_id)
    .bind(&key.cluster_id)
    .bind(now_ms())
    .execute(&mut **change)
    .await?;
    sqlx::query(
        "INSERT INTO identities (identity_id, tenant_id, cluster_id, fingerprint, issued_at, not_after,
           gateway_url) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(issued.identity_id)
    .bind(&key.tenant_id)
    .bind(&key.cluster_id)
    .bind(issued.fingerprint)
    .bind(issued.issued_at)
    .bind(issued.not_after)
    .bind(issued.gateway_url)
    .execute(&mut **change)
    .await?;
    sqlx::query("UPDATE clusters SET max_validity_s = $3 WHERE tenant_id = $1 AND cluster_id = $2")
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .bind(issued.max_validity_s)
        .execute(&mut **change)
        .await?;
    change.wake(key).await?;
    Ok(revoked.rows_affected())
}

/// Whether an identity is good, read in the change that relies on it.
pub(crate) async fn is_good(change: &mut Change, identity_id: &str) -> Result<bool, StoreError> {
    Ok(sqlx::query("SELECT 1 FROM identities WHERE identity_id = $1 AND revoked_at IS NULL")
        .bind(identity_id)
        .fetch_optional(&mut **change)
        .await?
        .is_some())
}

impl Store {
    /// Whose certificate this is, revoked or not.
    pub(crate) async fn identity(&self, fingerprint: &str) -> Result<Option<Identity>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT identity_id, tenant_id, cluster_id, revoked_at FROM identities WHERE fingerprint = $1",
        )
        .bind(fingerprint)
        .fetch_optional(&self.pool)
        .await?)
    }

    /// Who was revoked in the last minutes, by whose clock soever.
    pub(crate) async fn revoked_of_late(&self) -> Result<Vec<Identity>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT identity_id, tenant_id, cluster_id, revoked_at FROM identities WHERE revoked_at > $1",
        )
        .bind(now_ms().saturating_sub(OF_LATE_MS))
        .fetch_all(&self.pool)
        .await?)
    }
}
