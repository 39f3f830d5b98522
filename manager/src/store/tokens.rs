//! Bearer tokens of operators: only their SHA-256 is kept.

use super::audit::{self, Entry};
use super::{Store, StoreError, commit};
use crate::clock::now_ms;
use sqlx::FromRow;

/// Whose token it is.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct Token {
    /// The name of the token, as the audit tells it.
    pub(crate) token_id: String,
    /// The tenant that it is for.
    pub(crate) tenant_id: String,
}

impl Store {
    /// Keeps a new token.
    pub(crate) async fn add_token(&self, token: &Token, hash: &str) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query(
            "INSERT INTO tokens (token_id, tenant_id, token_hash, created_at) VALUES ($1, $2, $3, $4)",
        )
        .bind(&token.token_id)
        .bind(&token.tenant_id)
        .bind(hash)
        .bind(now_ms())
        .execute(&mut *change)
        .await?;
        let entry = Entry {
            tenant_id: Some(&token.tenant_id),
            cluster_id: None,
            actor: "cli",
            action: "token.create",
            subject: &token.token_id,
            detail: "",
        };
        audit::done(&mut change, entry).await?;
        commit(change).await
    }

    /// Whose token has this hash.
    pub(crate) async fn token(&self, hash: &str) -> Result<Option<Token>, StoreError> {
        Ok(sqlx::query_as("SELECT token_id, tenant_id FROM tokens WHERE token_hash = $1")
            .bind(hash)
            .fetch_optional(&self.pool)
            .await?)
    }
}
