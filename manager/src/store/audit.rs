//! Who did what, and what was refused.

use super::change::{Change, Store, commit, sorted_id};
use super::error::StoreError;
use crate::process::clock::now_ms;
use sqlx::FromRow;

/// A refusal that is repeated within this time is counted instead of written anew: what an
/// unwelcome client sends must not fill the disk.
const COALESCE_MS: i64 = 60_000;

/// What is to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'e> {
    /// Whose it is; `None` where that is not known.
    pub(crate) tenant_id: Option<&'e str>,
    /// The cluster that it is about.
    pub(crate) cluster_id: Option<&'e str>,
    /// Who: `token:…`, `identity:…`, `certificate:…` or `cli`.
    pub(crate) actor: &'e str,
    /// What, such as `command.queue`.
    pub(crate) action: &'e str,
    /// About which command, identity or token.
    pub(crate) subject: &'e str,
    /// More, for people.
    pub(crate) detail: &'e str,
}

/// What was written.
#[derive(Debug, FromRow)]
pub(crate) struct Written {
    /// Its identifier, which sorts by time.
    pub(crate) audit_id: String,
    /// When first.
    pub(crate) at: i64,
    /// When last.
    pub(crate) last_at: i64,
    /// How often.
    pub(crate) times: i64,
    /// The cluster that it is about.
    pub(crate) cluster_id: Option<String>,
    /// Who.
    pub(crate) actor: String,
    /// What.
    pub(crate) action: String,
    /// `done` or `refused`.
    pub(crate) outcome: String,
    /// About which command, identity or token.
    pub(crate) subject: String,
    /// More, for people.
    pub(crate) detail: String,
}

/// Writes what was done, in the change that did it.
pub(crate) async fn done(change: &mut Change, entry: Entry<'_>) -> Result<(), StoreError> {
    write(change, entry, "done").await
}

/// Writes what was refused, in a change that is under way.
pub(crate) async fn refused(change: &mut Change, entry: Entry<'_>) -> Result<(), StoreError> {
    let now = now_ms();
    let counted = sqlx::query(
        "UPDATE audit SET times = times + 1, last_at = $1 WHERE audit_id = (
             SELECT audit_id FROM audit
             WHERE actor = $2 AND last_at > $3 AND outcome = 'refused' AND action = $4 AND subject = $5
               AND detail = $6 AND coalesce(tenant_id, '') = $7 AND coalesce(cluster_id, '') = $8
             ORDER BY audit_id DESC LIMIT 1)",
    )
    .bind(now)
    .bind(entry.actor)
    .bind(now.saturating_sub(COALESCE_MS))
    .bind(entry.action)
    .bind(entry.subject)
    .bind(entry.detail)
    .bind(entry.tenant_id.unwrap_or(""))
    .bind(entry.cluster_id.unwrap_or(""))
    .execute(&mut **change)
    .await?;
    if counted.rows_affected() == 0 { write(change, entry, "refused").await } else { Ok(()) }
}

async fn write(change: &mut Change, entry: Entry<'_>, outcome: &str) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO audit
           (audit_id, at, last_at, times, tenant_id, cluster_id, actor, action, outcome, subject, detail)
         VALUES ($1, $2, $2, 1, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(sorted_id())
    .bind(now_ms())
    .bind(entry.tenant_id)
    .bind(entry.cluster_id)
    .bind(entry.actor)
    .bind(entry.action)
    .bind(outcome)
    .bind(entry.subject)
    .bind(entry.detail)
    .execute(&mut **change)
    .await?;
    Ok(())
}

impl Store {
    /// Writes what was refused.
    pub(crate) async fn audit_refused(&self, entry: Entry<'_>) -> Result<(), StoreError> {
        let mut change = self.change_of(entry.actor).await?;
        refused(&mut change, entry).await?;
        commit(change).await
    }

    /// The newest entries of a tenant, before `before` where that is given.
    pub(crate) async fn audit(
        &self,
        tenant_id: &str,
        before: Option<&str>,
        limit: i64,
    ) -> Result<Vec<Written>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT audit_id, at, last_at, times, cluster_id, actor, action, outcome, subject, detail
             FROM audit WHERE tenant_id = $1 AND ($2 IS NULL OR audit_id < $2)
             ORDER BY audit_id DESC LIMIT $3",
        )
        .bind(tenant_id)
        .bind(before)
        .bind(limit)
        .fetch_all(&self.pool)
        .await?)
    }
}
