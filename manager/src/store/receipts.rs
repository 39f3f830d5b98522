//! What agents answered: the first recorded receipt stays. CONTRACT section 4.

use super::audit::{self, Entry};
use super::change::{Change, Store, commit, sorted_id};
use super::error::StoreError;
use super::identities::{self, Identity};
use crate::process::clock::now_ms;
use sqlx::FromRow;

/// Most receipts of one command that are kept; later ones are counted.
const MAX_KEPT: i64 = 32;

/// A receipt that came, checked for its form.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The command that it answers.
    pub(crate) command_id: String,
    /// Its nonce.
    pub(crate) nonce: String,
    /// The document as it came.
    pub(crate) body: String,
    /// What may become the outcome.
    pub(crate) outcome: Outcome,
}

/// A receipt that may be shown.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The document: the receipt, or the `original` in it.
    pub(crate) receipt: String,
    /// Its status.
    pub(crate) status: String,
    /// Whether it is the recorded outcome.
    pub(crate) recorded: bool,
}

/// What became of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is kept.
    Kept,
    /// A recorded one was there, and stays.
    Later,
    /// There is no such command.
    Unknown,
    /// The command is another cluster's.
    OtherCluster,
    /// The nonce is not the command's.
    WrongNonce,
    /// The identity is no longer good.
    Revoked,
}

/// How many receipts came for the commands of one cluster.
#[derive(Debug, FromRow)]
pub(crate) struct Received {
    /// The cluster.
    pub(crate) cluster_id: String,
    /// How many.
    pub(crate) count: i64,
}

#[derive(FromRow)]
struct Answered {
    tenant_id: String,
    cluster_id: String,
    nonce: String,
    receipt_recorded: i64,
    receipts: i64,
}

impl Store {
    /// Takes a receipt from an agent.
    pub(crate) async fn take_receipt(
        &self,
        identity: &Identity,
        incoming: &Incoming,
    ) -> Result<Taken, StoreError> {
        let mut change = self.change(&identity.cluster()).await?;
        if !identities::is_good(&mut change, &identity.identity_id).await? {
            return Ok(Taken::Revoked);
        }
        let found: Option<Answered> = sqlx::query_as(
            "SELECT tenant_id, cluster_id, nonce, receipt_recorded, receipts FROM commands
             WHERE command_id = $1",
        )
        .bind(&incoming.command_id)
        .fetch_optional(&mut *change)
        .await?;
        let Some(command) = found else { return Ok(Taken::Unknown) };
        if command.tenant_id != identity.tenant_id || command.cluster_id != identity.cluster_id {
            return Ok(Taken::OtherCluster);
        }
        if command.nonce != incoming.nonce {
            return Ok(Taken::WrongNonce);
        }
        keep(&mut change, identity, incoming, command.receipts).await?;
        let taken = if command.receipt_recorded == 0 {
            show(&mut change, identity, incoming).await?;
            Taken::Kept
        } else {
            Taken::Later
        };
        commit(change).await?;
        Ok(taken)
    }

    /// The first receipts of a command.
    pub(crate) async fn receipts(&self, command_id: &str) -> Result<Vec<(i64, String)>, StoreError> {
        Ok(sqlx::query_as("SELECT received_at, body FROM receipts WHERE command_id = $1 ORDER BY receipt_id")
            .bind(command_id)
            .fetch_all(&self.pool)
            .await?)
    }

    /// How many receipts came for the commands of which cluster.
    pub(crate) async fn receipts_by_cluster(&self, tenant_id: &str) -> Result<Vec<Received>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT cluster_id, CAST(sum(receipts) AS BIGINT) AS count FROM commands
             WHERE tenant_id = $1 GROUP BY cluster_id",
        )
        .bind(tenant_id)
        .fetch_all(&self.pool)
        .await?)
    }
}

/// Adds a receipt to the history of its command.
async fn keep(
    change: &mut Change,
    identity: &Identity,
    incoming: &Incoming,
    before: i64,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE commands SET receipts = receipts + 1 WHERE command_id = $1")
        .bind(&incoming.command_id)
        .execute(&mut **change)
        .await?;
    if before >= MAX_KEPT {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO receipts (receipt_id, command_id, received_at, identity_id, body)
         VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(sorted_id())
    .bind(&incoming.command_id)
    .bind(now_ms())
    .bind(&identity.identity_id)
    .bind(&incoming.body)
    .execute(&mut **change)
    .await?;
    Ok(())
}

/// Makes a receipt the one that is shown.
async fn show(change: &mut Change, identity: &Identity, incoming: &Incoming) -> Result<(), StoreError> {
    let outcome = &incoming.outcome;
    sqlx::query(
        "UPDATE commands SET receipt = $2, receipt_status = $3, receipt_recorded = $4, receipt_at = $5
         WHERE command_id = $1",
    )
    .bind(&incoming.command_id)
    .bind(&outcome.receipt)
    .bind(&outcome.status)
    .bind(i64::from(outcome.recorded))
    .bind(now_ms())
    .execute(&mut **change)
    .await?;
    if !outcome.recorded {
        return Ok(());
    }
    let entry = Entry {
        tenant_id: Some(&identity.tenant_id),
        cluster_id: Some(&identity.cluster_id),
        actor: &identity.actor(),
        action: "receipt.record",
        subject: &incoming.command_id,
        detail: &outcome.status,
    };
    audit::done(change, entry).await
}
