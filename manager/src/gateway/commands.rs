//! The long poll for commands.

use super::error::GatewayError;
use super::refused::refuse_revoked;
use crate::app::delivered::Delivered;
use crate::app::peer::Peer;
use crate::app::{Shared, http};
use crate::store::bounded;
use crate::store::delivery::Delivery;
use crate::store::identities::Identity;
use axum::extract::Query;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait of a poll, in seconds. CONTRACT section 4.
const MAX_WAIT_S: u64 = 30;

/// Polls that end within such a time of each other end together.
const TOGETHER: Duration = Duration::from_millis(100);

/// The parameters of a poll.
#[derive(Debug, Deserialize)]
struct Wait {
    #[serde(default)]
    wait_s: u64,
}

/// How long a poll waits, in seconds.
pub(super) fn wait_s(uri: &Uri) -> Result<u64, GatewayError> {
    match Query::try_from_uri(uri) {
        Ok(Query(Wait { wait_s })) if wait_s <= MAX_WAIT_S => Ok(wait_s),
        Ok(_) | Err(_) => Err(GatewayError::Malformed("wait_s: expected 0 to 30")),
    }
}

/// Waits until there is something to answer.
pub(super) async fn poll(
    app: &Shared,
    peer: &Peer,
    identity: &Identity,
    wait_s: u64,
) -> Result<Response, GatewayError> {
    let deadline = end_of(wait_s);
    let cluster = identity.cluster();
    let waiting = app.wake.subscribe(&cluster);
    // Before the question: what comes after it is told.
    let mut told = waiting.told.notified();
    let mut is_at_rest = app.questions.is_at_rest(&identity.identity_id).await?;
    let mut noted = false;
    loop {
        if !is_at_rest {
            let note = |sent| peer.delivered.get_or_init(|| Delivered::new(app, &cluster)).note(sent);
            let take = app.store.take_due(&cluster, &identity.identity_id, app.instance.id(), note);
            // Boxed, as a waiting poll is to be small.
            match Box::pin(bounded(take)).await? {
                Delivery::Revoked => return Err(Box::pin(refuse_revoked(app, identity)).await),
                Delivery::Nothing => {}
                Delivery::Envelopes(envelopes) => {
                    app.contacts.note(&cluster);
                    return Ok(answer(&envelopes));
                }
            }
        }
        // Only now is it known that the identity is still good: a revoked one keeps no cluster online.
        if !noted {
            app.contacts.note(&cluster);
            noted = true;
        }
        tokio::select! {
            () = told => {}
            () = app.stop.wait() => return Ok(answer(&[])),
            () = tokio::time::sleep_until(deadline) => return Ok(answer(&[])),
        }
        told = waiting.told.notified();
        is_at_rest = false;
    }
}

/// When a poll ends. Those of one moment end together: to wake for each costs more than its answer.
fn end_of(wait_s: u64) -> Instant {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let deadline = Instant::now() + Duration::from_secs(wait_s);
    if wait_s == 0 {
        return deadline;
    }
    let since = u32::try_from(deadline.duration_since(*BEGAN).as_millis() / TOGETHER.as_millis());
    since.map_or(deadline, |since| *BEGAN + TOGETHER * since.saturating_add(1))
}

/// The envelopes exactly as they were stored.
fn answer(envelopes: &[String]) -> Response {
    let text = format!("{{\"commands\":[{}]}}", envelopes.join(","));
    http::text(StatusCode::OK, text, "application/json")
}
