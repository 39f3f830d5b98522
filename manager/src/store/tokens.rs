//! Bearer tokens of operators: only their SHA-256 is kept.

use super::audit::{self, Entry};
use super::change::{Store, commit};
use super::error::StoreError;
use crate::process::clock::now_ms;
use sqlx::FromRow;

/// Whose token it is.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct Token {
    /// The name of the token, as the audit tells it.
    pub(crate) token_id: String,
    /// The tenant that it is for.
    pub(crate) tenant_id: String,
    /// When it was revoked.
    pub(crate) revoked_at: Option<i64>,
}

/// A token as it is listed.
#[derive(Debug, FromRow)]
pub(crate) struct Listed {
    /// The name of the token.
    pub(crate) token_id: String,
    /// The tenant that it is for.
    pub(crate) tenant_id: String,
    /// When it was made.
    pub(crate) created_at: i64,
    /// When it was revoked.
    pub(crate) revoked_at: Option<i64>,
}

impl Store {
    /// Keeps a new token.
    pub(crate) async fn add_token(&self, token: &Token, hash: &str) -> Result<(), StoreError> {
        let mut change = self.change_of(&token.token_id).await?;
        sqlx::query(
            "INSERT INTO tokens (token_id, tenant_id, token_hash, created_at) VALUES ($1, $2, $3, $4)",
        )
        .bind(&token.token_id)
        .bind(&token.tenant_id)
        .bind(hash)
        .bind(now_ms())
        .execute(&mut *change)
        .await?;
        audit::done(&mut change, entry(&token.tenant_id, &token.token_id, "token.create")).await?;
        commit(change).await
    }

    /// Whose token has this hash, revoked or not.
    pub(crate) async fn token(&self, hash: &str) -> Result<Option<Token>, StoreError> {
        Ok(sqlx::query_as("SELECT token_id, tenant_id, revoked_at FROM tokens WHERE token_hash = $1")
            .bind(hash)
            .fetch_optional(&self.pool)
            .await?)
    }

    /// The tokens of a tenant, or of all.
    pub(crate) async fn tokens(&self, tenant_id: Option<&str>) -> Result<Vec<Listed>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT token_id, tenant_id, created_at, revoked_at FROM tokens
             WHERE $1 IS NULL OR tenant_id = $1 ORDER BY tenant_id, created_at, token_id",
        )
        .bind(tenant_id)
        .fetch_all(&self.pool)
        .await?)
    }

    /// Revokes a token; false where there is no good one of that name.
    pub(crate) async fn revoke_token(&self, token_id: &str) -> Result<bool, StoreError> {
        let mut change = self.change_of(token_id).await?;
        let tenant: Option<String> =
            sqlx::query_scalar("SELECT tenant_id FROM tokens WHERE token_id = $1 AND revoked_at IS NULL")
                .bind(token_id)
                .fetch_optional(&mut *change)
                .await?;
        let Some(tenant) = tenant else { return Ok(false) };
        sqlx::query("UPDATE tokens SET revoked_at = $2 WHERE token_id = $1")
            .bind(token_id)
            .bind(now_ms())
            .execute(&mut *change)
            .await?;
        audit::done(&mut change, entry(&tenant, token_id, "token.revoke")).await?;
        commit(change).await?;
        Ok(true)
    }
}

fn entry<'e>(tenant_id: &'e str, token_id: &'e str, action: &'e str) -> Entry<'e> {
    Entry {
        tenant_id: Some(tenant_id),
        cluster_id: None,
        actor: "cli",
        action,
        subject: token_id,
        detail: "",
    }
}
