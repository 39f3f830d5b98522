//! `token`: bearer tokens of operators, made, listed and revoked.

use super::arguments::{Token, TokenTask, label};
use super::print::print;
use crate::keys::signing::{random_text, sha256_hex};
use crate::operator::cli::Form;
use crate::operator::show;
use crate::process::clock;
use crate::process::failure::Failure;
use crate::store::{Database, Store, tokens};
use serde_json::{Value, json};

/// Random bytes of a bearer token.
const TOKEN_BYTES: usize = 32;

/// Does with tokens what is asked for.
pub(super) async fn token(task: Token) -> Result<(), Failure> {
    let database = task.place.database()?;
    match (task.task, task.tenant) {
        (Some(TokenTask::List { tenant, output }), _) => {
            list_tokens(&Store::open(&database).await?, tenant, output).await
        }
        (Some(TokenTask::Revoke { token_id }), _) => {
            revoke_token(&Store::open(&database).await?, &token_id).await
        }
        (None, tenant) => make_token(&database, &tenant.unwrap_or_default(), task.create).await,
    }
}

async fn list_tokens(store: &Store, tenant: Option<String>, output: Form) -> Result<(), Failure> {
    let tokens: Vec<Value> = store.tokens(tenant.as_deref()).await?.iter().map(listed).collect();
    store.close().await;
    Ok(show::print(output, &json!({ "tokens": tokens }), &tokens, &show::TOKENS)?)
}

fn listed(token: &tokens::Listed) -> Value {
    json!({
        "token_id": token.token_id,
        "tenant_id": token.tenant_id,
        "created_at": clock::text(token.created_at),
        "revoked_at": token.revoked_at.map(clock::text),
    })
}

async fn revoke_token(store: &Store, token_id: &str) -> Result<(), Failure> {
    let revoked = store.revoke_token(token_id).await?;
    store.close().await;
    let problem = || format!("token {token_id:?}: there is none, or it is revoked already");
    if revoked { Ok(()) } else { Err(Failure::System(problem())) }
}

async fn make_token(database: &Database, tenant: &str, create: bool) -> Result<(), Failure> {
    let tenant_id = label("--tenant", tenant)?;
    let store = if create { Store::make(database).await? } else { Store::open(database).await? };
    let secret = format!("navin_{}", random_text::<TOKEN_BYTES>()?);
    let token = tokens::Token { token_id: uuid::Uuid::new_v4().to_string(), tenant_id, revoked_at: None };
    store.add_token(&token, &sha256_hex(secret.as_bytes())).await?;
    store.close().await;
    print(&format!("{secret}\n"))
}
