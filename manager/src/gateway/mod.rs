//! The gateway, which agents call. CONTRACT section 4.
//!
//! Who calls is known by the client certificate alone, looked up at every request, and again in the
//! change that relies on it.

mod commands;
mod error;
mod look;
mod receipts;
mod reports;

use crate::app::Shared;
use crate::http;
use crate::peer::Peer;
use crate::room::{Pace, Room};
use crate::store::audit::Entry;
use crate::store::bounded;
use crate::store::identities::Identity;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use error::GatewayError;
pub(crate) use look::look;
use std::sync::Arc;
use std::time::Duration;

/// Where polls go.
const COMMANDS: &str = "/v1/cluster-agent/commands";

/// Most requests that one identity may have open: two replicas have six, and some may be left of
/// those that are gone.
pub(crate) const MAX_OPEN: usize = 16;

/// What reports may take in memory at once, in KiB, and receipts.
const ROOM_KIB: [usize; 2] = [192 * 1024, 64 * 1024];

/// Reports of one identity that are taken at once, and receipts: a leader has one of each, and some may be
/// left of those that are gone.
const OF_ONE: [usize; 2] = [2, 4];

/// How fast a body must come: as long as an agent waits for its answer at most.
const PACE: Pace =
    Pace { grace: Duration::from_secs(10), bytes_a_second: 16 * 1024, most: Duration::from_secs(30) };

/// Reports that are parsed at once.
pub(crate) const PARSING: usize = 2;

/// How long a request may take: the longest poll and what is around it.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// The room for reports.
pub(crate) fn room_for_reports() -> Room {
    Room::new(ROOM_KIB[0], OF_ONE[0], PACE)
}

/// The room for receipts.
pub(crate) fn room_for_receipts() -> Room {
    Room::new(ROOM_KIB[1], OF_ONE[1], PACE)
}

/// The routes.
pub(crate) fn router(app: &Shared) -> Router {
    Router::new()
        .route(COMMANDS, get(commands::poll))
        .route("/v1/cluster-agent/receipts", post(receipts::take))
        .route("/v1/cluster-agent/report", post(reports::take))
        .fallback(async || GatewayError::NotFound)
        .method_not_allowed_fallback(async || GatewayError::MethodNotAllowed)
        .layer(middleware::from_fn_with_state(app.clone(), authenticate))
        .layer(middleware::from_fn(admit))
        .with_state(app.clone())
}

/// Takes the connection in, and bounds the call.
async fn admit(Extension(peer): Extension<Arc<Peer>>, request: Request, next: Next) -> Response {
    if peer.settle().await {
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
        return answer.unwrap_or_else(|_| GatewayError::TooSlow.into_response());
    }
    let mut response = GatewayError::Overloaded.into_response();
    http::close(&mut response);
    response
}

async fn authenticate(
    State(app): State<Shared>,
    Extension(peer): Extension<Arc<Peer>>,
    mut request: Request,
    next: Next,
) -> Result<Response, GatewayError> {
    let fingerprint = peer.fingerprint.clone().ok_or(GatewayError::IdentityRevoked)?;
    let _place = app.agents.enter(&fingerprint)?;
    // A poll itself asks whether its identity is still good, together with what is due.
    let uri = request.uri();
    let is_poll =
        request.method() == Method::GET && uri.path() == COMMANDS && commands::wait_s(uri).is_some();
    let identity = match peer.identity.get() {
        Some(known) if is_poll => known.clone(),
        Some(_) | None => Box::pin(identify(&app, &fingerprint, &peer)).await?,
    };
    if !is_poll {
        app.contacts.note(&identity.cluster());
    }
    request.extensions_mut().insert(identity);
    Ok(next.run(request).await)
}

/// Whose certificate it is, where that is a good one.
async fn identify(app: &Shared, fingerprint: &str, peer: &Peer) -> Result<Identity, GatewayError> {
    match bounded(app.store.identity(fingerprint)).await? {
        Some(identity) if identity.revoked_at.is_none() => Ok(peer.identity.get_or_init(|| identity).clone()),
        Some(identity) => Err(refuse_revoked(app, &identity).await),
        None => {
            let entry = Entry {
                tenant_id: None,
                cluster_id: None,
                actor: &format!("certificate:{fingerprint}"),
                action: "gateway.call",
                subject: "",
                detail: "unknown certificate",
            };
            bounded(app.store.audit_refused(entry)).await?;
            Err(GatewayError::IdentityRevoked)
        }
    }
}

/// Audits a call with a revoked identity.
async fn refuse_revoked(app: &Shared, identity: &Identity) -> GatewayError {
    audit_refused(app, identity, "gateway.call", &identity.identity_id, "revoked identity").await;
    GatewayError::IdentityRevoked
}

/// Audits what an agent was refused. Where the database fails the refusal stands all the same.
async fn audit_refused(app: &Shared, identity: &Identity, action: &str, subject: &str, detail: &str) {
    let actor = identity.actor();
    let entry = Entry {
        tenant_id: Some(&identity.tenant_id),
        cluster_id: Some(&identity.cluster_id),
        actor: &actor,
        action,
        subject,
        detail,
    };
    if let Err(error) = bounded(app.store.audit_refused(entry)).await {
        tracing::error!(%error, "a refusal was not audited");
    }
}
