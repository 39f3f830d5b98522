//! What agents report, and the inventory of their clusters. CONTRACT section 5.

use super::audit::{self, Entry};
use super::change::{Store, commit};
use super::contacts;
use super::error::StoreError;
use super::identities::{self, Identity};
use super::key::ClusterKey;
use crate::process::clock::now_ms;
use sqlx::FromRow;

/// Longest summary, in bytes: many times what an agent's report is without its components.
pub(crate) const MAX_SUMMARY_BYTES: usize = 16 * 1024;

/// A report that came, checked for its form.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The report without its inventory.
    pub(crate) report: String,
    /// The same without its components.
    pub(crate) summary: String,
    /// The uid of the cluster's `kube-system`.
    pub(crate) cluster_uid: Option<String>,
    /// The inventory, where it came along.
    pub(crate) inventory: Option<String>,
    /// The revision that the agent has.
    pub(crate) revision: Option<String>,
}

/// What the agent is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The inventory of that revision is here.
    Kept,
    /// It is not.
    Needed,
    /// The identity is no longer good.
    Revoked,
}

/// The inventory of a cluster.
#[derive(Debug, FromRow)]
pub(crate) struct Inventory {
    /// Its revision.
    pub(crate) inventory_revision: Option<String>,
    /// When it came.
    pub(crate) inventory_at: Option<i64>,
    /// What there is.
    pub(crate) inventory: Option<String>,
}

impl Store {
    /// Takes a report from an agent.
    pub(crate) async fn take_report(
        &self,
        identity: &Identity,
        incoming: &Incoming,
    ) -> Result<Answer, StoreError> {
        let mut change = self.change(&identity.cluster()).await?;
        if !identities::is_good(&mut change, &identity.identity_id).await? {
            return Ok(Answer::Revoked);
        }
        let (held, known_uid): (Option<String>, Option<String>) = sqlx::query_as(
            "SELECT inventory_revision, cluster_uid FROM clusters WHERE tenant_id = $1 AND cluster_id = $2",
        )
        .bind(&identity.tenant_id)
        .bind(&identity.cluster_id)
        .fetch_one(&mut *change)
        .await?;
        let now = now_ms();
        sqlx::query(
            "UPDATE clusters SET report = $3, report_at = $4, cluster_uid = coalesce($5, cluster_uid), summary = $6
             WHERE tenant_id = $1 AND cluster_id = $2",
        )
        .bind(&identity.tenant_id)
        .bind(&identity.cluster_id)
        .bind(&incoming.report)
        .bind(now)
        .bind(&incoming.cluster_uid)
        .bind(&incoming.summary)
        .execute(&mut *change)
        .await?;
        contacts::heard(&mut change, identity, now).await?;
        if let Some(inventory) = &incoming.inventory {
            sqlx::query(
                "UPDATE clusters SET inventory = $3, inventory_revision = $4, inventory_at = $5
                 WHERE tenant_id = $1 AND cluster_id = $2",
            )
            .bind(&identity.tenant_id)
            .bind(&identity.cluster_id)
            .bind(inventory)
            .bind(&incoming.revision)
            .bind(now)
            .execute(&mut *change)
            .await?;
        }
        if let (Some(known), Some(uid)) = (&known_uid, &incoming.cluster_uid)
            && known != uid
        {
            let entry = Entry {
                tenant_id: Some(&identity.tenant_id),
                cluster_id: Some(&identity.cluster_id),
                actor: &identity.actor(),
                action: "cluster.uid_changed",
                subject: &identity.identity_id,
                detail: "the reports come from another cluster than before: one identity in two clusters?",
            };
            audit::refused(&mut change, entry).await?;
        }
        commit(change).await?;
        let kept = incoming.inventory.is_some() || (held.is_some() && held == incoming.revision);
        Ok(if kept { Answer::Kept } else { Answer::Needed })
    }

    /// The last report of a cluster.
    pub(crate) async fn report(&self, key: &ClusterKey) -> Result<Option<String>, StoreError> {
        Ok(sqlx::query_scalar("SELECT report FROM clusters WHERE tenant_id = $1 AND cluster_id = $2")
            .bind(&key.tenant_id)
            .bind(&key.cluster_id)
            .fetch_optional(&self.pool)
            .await?
            .flatten())
    }

    /// The inventory of a cluster; `None` where there is no such cluster.
    pub(crate) async fn inventory(&self, key: &ClusterKey) -> Result<Option<Inventory>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT inventory_revision, inventory_at, inventory FROM clusters
             WHERE tenant_id = $1 AND cluster_id = $2",
        )
        .bind(&key.tenant_id)
        .bind(&key.cluster_id)
        .fetch_optional(&self.pool)
        .await?)
    }
}
