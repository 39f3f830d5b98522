//! Registered clusters, and what their agents last told.

use super::change::{Change, Store};
use super::error::StoreError;
use super::key::ClusterKey;
use crate::process::clock::now_ms;
use sqlx::FromRow;

/// A cluster as the API shows it.
#[derive(Debug, FromRow)]
pub(crate) struct Cluster {
    /// Its identifier.
    pub(crate) cluster_id: String,
    /// The managed namespace.
    pub(crate) namespace: String,
    /// When it was registered.
    pub(crate) created_at: i64,
    /// When its agent was last heard.
    pub(crate) contact_at: Option<i64>,
    /// The uid of its `kube-system`, as last reported.
    pub(crate) cluster_uid: Option<String>,
    /// The last report in short, without its components.
    pub(crate) summary: Option<String>,
    /// When that came.
    pub(crate) report_at: Option<i64>,
    /// The identity that is good.
    pub(crate) identity_id: Option<String>,
    /// When its certificate ends.
    pub(crate) identity_not_after: Option<i64>,
    /// What the manager saw with the cluster's kubeconfig.
    pub(crate) kubernetes: Option<String>,
}

/// What a command or an identity of a cluster is made from.
#[derive(Debug, FromRow)]
pub(crate) struct Base {
    /// The managed namespace.
    pub(crate) namespace: String,
    /// The next command's sequence.
    pub(crate) next_sequence: i64,
    /// The longest window that its agent takes.
    pub(crate) max_validity_s: i64,
}

/// Where a cluster's agent lives and calls.
#[derive(Debug, FromRow)]
pub(crate) struct Placement {
    /// The managed namespace.
    pub(crate) namespace: String,
    /// The gateway that its identity names.
    pub(crate) gateway_url: Option<String>,
}

/// Registers a cluster; false where it is there already.
pub(crate) async fn insert(
    change: &mut Change,
    key: &ClusterKey,
    namespace: &str,
    max_validity_s: i64,
) -> Result<bool, StoreError> {
    let inserted = sqlx::query(
        "INSERT INTO clusters (tenant_id, cluster_id, namespace, created_at, next_sequence, max_validity_s)
         VALUES ($1, $2, $3, $4, 1, $5) ON CONFLICT DO NOTHING",
    )
    .bind(&key.tenant_id)
    .bind(&key.cluster_id)
    .bind(namespace)
    .bind(now_ms())
    .bind(max_validity_s)
    .execute(&mut **change)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Keeps what was seen with the cluster's kubeconfig.
pub(crate) async fn set_kubernetes(
    change: &mut Change,
    key: &ClusterKey,
    seen: &str,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE clusters SET kubernetes = $3 WHERE tenant_id = $1 AND cluster_id = $2")
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .bind(seen)
        .execute(&mut **change)
        .await?;
    Ok(())
}

/// Reads what a command or an identity is made from; `None` where there is no such cluster.
pub(crate) async fn base(change: &mut Change, key: &ClusterKey) -> Result<Option<Base>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT namespace, next_sequence, max_validity_s FROM clusters
         WHERE tenant_id = $1 AND cluster_id = $2",
    )
    .bind(&key.tenant_id)
    .bind(&key.cluster_id)
    .fetch_optional(&mut **change)
    .await?)
}

/// Selects what is shown of the clusters that are these.
macro_rules! shown {
    ($these:literal) => {
        concat!(
            "SELECT c.cluster_id, c.namespace, c.created_at, h.contact_at, c.cluster_uid, c.summary,
                    c.report_at, c.kubernetes, i.identity_id, i.not_after AS identity_not_after
             FROM clusters c LEFT JOIN identities i
               ON i.tenant_id = c.tenant_id AND i.cluster_id = c.cluster_id AND i.revoked_at IS NULL
             LEFT JOIN contacts h ON h.tenant_id = c.tenant_id AND h.cluster_id = c.cluster_id
             WHERE ",
            $these
        )
    };
}

impl Store {
    /// The clusters of a tenant by name, those after one where that is given.
    pub(crate) async fn clusters(
        &self,
        tenant_id: &str,
        after: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Cluster>, StoreError> {
        Ok(sqlx::query_as(shown!(
            "c.tenant_id = $1 AND ($2 IS NULL OR c.cluster_id > $2) ORDER BY c.cluster_id LIMIT $3"
        ))
        .bind(tenant_id)
        .bind(after)
        .bind(limit)
        .fetch_all(&self.pool)
        .await?)
    }

    /// One cluster.
    pub(crate) async fn cluster(&self, key: &ClusterKey) -> Result<Option<Cluster>, StoreError> {
        Ok(sqlx::query_as(shown!("c.tenant_id = $1 AND c.cluster_id = $2"))
            .bind(&key.tenant_id)
            .bind(&key.cluster_id)
            .fetch_optional(&self.pool)
            .await?)
    }

    /// Where a cluster's agent lives and calls: the namespace, and the gateway's address where there
    /// is a good identity.
    pub(crate) async fn placement(&self, key: &ClusterKey) -> Result<Option<Placement>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT c.namespace, i.gateway_url FROM clusters c LEFT JOIN identities i
               ON i.tenant_id = c.tenant_id AND i.cluster_id = c.cluster_id AND i.revoked_at IS NULL
             WHERE c.tenant_id = $1 AND c.cluster_id = $2",
        )
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .fetch_optional(&self.pool)
        .await?)
    }

    /// Whether there is such a cluster.
    pub(crate) async fn has_cluster(&self, key: &ClusterKey) -> Result<bool, StoreError> {
        Ok(sqlx::query("SELECT 1 FROM clusters WHERE tenant_id = $1 AND cluster_id = $2")
            .bind(&key.tenant_id)
            .bind(&key.cluster_id)
            .fetch_optional(&self.pool)
            .await?
            .is_some())
    }
}
