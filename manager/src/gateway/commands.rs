//! The long poll for commands.

use super::{GatewayError, refuse_revoked};
use crate::app::Shared;
use crate::delivered::Delivered;
use crate::http;
use crate::peer::Peer;
use crate::store::bounded;
use crate::store::delivery::Delivery;
use crate::store::identities::Identity;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait of a poll, in seconds. CONTRACT section 4.
const MAX_WAIT_S: u64 = 30;

/// The parameters of a poll.
#[derive(Debug, Deserialize)]
struct Wait {
    #[serde(default)]
    wait_s: u64,
}

/// How long a poll waits, in seconds, where it says so as the contract wants it.
pub(super) fn wait_s(uri: &Uri) -> Option<u64> {
    let Query(Wait { wait_s }) = Query::try_from_uri(uri).ok()?;
    (wait_s <= MAX_WAIT_S).then_some(wait_s)
}

/// `GET /v1/cluster-agent/commands?wait_s=N`
pub(crate) async fn poll(
    State(app): State<Shared>,
    Extension(peer): Extension<Arc<Peer>>,
    Extension(identity): Extension<Identity>,
    uri: Uri,
) -> Result<Response, GatewayError> {
    let wait_s = wait_s(&uri).ok_or(GatewayError::Malformed("wait_s: expected 0 to 30"))?;
    // It holds on to the buffer that the request was read into.
    drop(uri);
    let deadline = Instant::now() + Duration::from_secs(wait_s);
    let cluster = identity.cluster();
    let waiting = app.wake.subscribe(&cluster);
    let mut noted = false;
    loop {
        // Before the look: what comes after it is told.
        let told = waiting.told.notified();
        // Boxed, as a waiting poll is to be small.
        if Box::pin(bounded(app.store.worth_a_look(&cluster, &identity.identity_id))).await? {
            let note = |sent| peer.delivered.get_or_init(|| Delivered::new(&app, &cluster)).note(sent);
            let take = app.store.take_due(&cluster, &identity.identity_id, app.instance.id(), note);
            match Box::pin(bounded(take)).await? {
                Delivery::Revoked => return Err(refuse_revoked(&app, &identity).await),
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
    }
}

/// The envelopes exactly as they were stored.
fn answer(envelopes: &[String]) -> Response {
    let text = format!("{{\"commands\":[{}]}}", envelopes.join(","));
    http::json(StatusCode::OK, text, "application/json")
}
