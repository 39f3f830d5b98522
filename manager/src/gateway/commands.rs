//! The long poll for commands.

use super::{GatewayError, refuse_revoked};
use crate::app::Shared;
use crate::http;
use crate::store::delivery::Delivery;
use crate::store::identities::Identity;
use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait of a poll, in seconds. CONTRACT section 4.
const MAX_WAIT_S: u64 = 30;

/// How often a waiting poll looks into the database: another process may have queued something.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The parameters of a poll.
#[derive(Debug, Deserialize)]
pub(crate) struct Wait {
    #[serde(default)]
    wait_s: u64,
}

/// `GET /v1/cluster-agent/commands?wait_s=N`
pub(crate) async fn poll(
    State(app): State<Shared>,
    Extension(identity): Extension<Identity>,
    query: Result<Query<Wait>, QueryRejection>,
) -> Result<Response, GatewayError> {
    let wait_s = match query {
        Ok(Query(Wait { wait_s })) if wait_s <= MAX_WAIT_S => wait_s,
        Ok(_) | Err(_) => return Err(GatewayError::Malformed("wait_s: expected 0 to 30")),
    };
    let deadline = Instant::now() + Duration::from_secs(wait_s);
    let cluster = identity.cluster();
    let mut woken = app.wake.subscribe(&cluster);
    loop {
        if app.store.worth_a_look(&cluster, &identity.identity_id).await? {
            match app.store.take_due(&cluster, &identity.identity_id, app.instance.id()).await? {
                Delivery::Revoked => return Err(refuse_revoked(&app, &identity).await),
                Delivery::Nothing => {}
                Delivery::Envelopes(envelopes) => return Ok(answer(&envelopes)),
            }
        }
        if Instant::now() >= deadline || app.stop.is_set() {
            return Ok(answer(&[]));
        }
        tokio::select! {
            // The sender stays while we are subscribed: an error cannot come, and would only look.
            _ = woken.changed() => {}
            () = app.stop.wait() => {}
            () = tokio::time::sleep_until(deadline.min(Instant::now() + LOOK_EVERY)) => {}
        }
    }
}

/// The envelopes exactly as they were stored.
fn answer(envelopes: &[String]) -> Response {
    let text = format!("{{\"commands\":[{}]}}", envelopes.join(","));
    http::json(StatusCode::OK, text, "application/json")
}
