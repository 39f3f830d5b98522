//! The gateway, which agents call. CONTRACT section 4.
//!
//! Who calls is known by the client certificate alone, looked up at every request, and again in the
//! change that relies on it.
//!
//! Imports [`app`](crate::app) and the rooms below that but [`keys`](crate::keys): what faces the agents signs nothing.
//! Only the command line may import it.

mod commands;
mod error;
mod look;
mod receipts;
mod refused;
mod reports;

use crate::app::peer::Peer;
use crate::app::{Shared, http};
use crate::limits::room::{Pace, Room};
use crate::store::bounded;
use crate::store::identities::Identity;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use error::GatewayError;
pub(crate) use look::look;
use refused::{refuse_revoked, refuse_unknown};
use std::sync::Arc;
use std::time::Duration;

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

/// All that is called here. No routes: a poll that waits is to hold no more than what it waits for, and each
/// layer of them holds a request of its own.
pub(crate) fn router(app: &Shared) -> Router {
    Router::new().fallback(take_in).with_state(app.clone())
}

/// Takes the connection in, and bounds the call.
async fn take_in(
    State(app): State<Shared>,
    Extension(peer): Extension<Arc<Peer>>,
    request: Request,
) -> Response {
    if peer.settle().await {
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer_to(&app, &peer, request)).await;
        return answer.unwrap_or(Err(GatewayError::TooSlow)).into_response();
    }
    let mut response = GatewayError::Overloaded.into_response();
    http::close(&mut response);
    response
}

/// What is called.
enum Call {
    /// `GET /v1/cluster-agent/commands?wait_s=N`: for so many seconds at most.
    Poll(u64),
    /// `POST /v1/cluster-agent/receipts`
    Receipt,
    /// `POST /v1/cluster-agent/report`
    Report,
}

impl Call {
    fn of(request: &Request) -> Result<Self, GatewayError> {
        let (method, call) = match request.uri().path() {
            "/v1/cluster-agent/commands" => (Method::GET, commands::wait_s(request.uri()).map(Self::Poll)),
            "/v1/cluster-agent/receipts" => (Method::POST, Ok(Self::Receipt)),
            "/v1/cluster-agent/report" => (Method::POST, Ok(Self::Report)),
            _ => return Err(GatewayError::NotFound),
        };
        if method == *request.method() { call } else { Err(GatewayError::MethodNotAllowed(method)) }
    }
}

async fn answer_to(app: &Shared, peer: &Peer, request: Request) -> Result<Response, GatewayError> {
    let fingerprint = peer.fingerprint.as_ref().ok_or(GatewayError::IdentityRevoked)?;
    let _place = app.agents.enter(fingerprint)?;
    let call = Call::of(&request);
    let identity = match (&call, peer.identity.get()) {
        // A poll itself asks whether its identity is still good, together with what is due.
        (Ok(Call::Poll(_)), Some(known)) => known,
        // Boxed, as all that a poll does not wait in.
        _ => Box::pin(identify(app, fingerprint, peer)).await?,
    };
    if !matches!(call, Ok(Call::Poll(_))) {
        app.contacts.note(&identity.cluster());
    }
    match call? {
        Call::Poll(wait_s) => {
            // It holds on to the buffer that it was read into.
            drop(request);
            commands::poll(app, peer, identity, wait_s).await
        }
        Call::Receipt => Box::pin(receipts::take(app, identity, request.into_body())).await,
        Call::Report => Box::pin(reports::take(app, identity, request.into_body())).await,
    }
}

/// Whose certificate it is, where that is a good one.
async fn identify<'p>(app: &Shared, fingerprint: &str, peer: &'p Peer) -> Result<&'p Identity, GatewayError> {
    match bounded(app.store.identity(fingerprint)).await? {
        Some(identity) if identity.revoked_at.is_none() => Ok(peer.identity.get_or_init(|| identity)),
        Some(identity) => Err(refuse_revoked(app, &identity).await),
        None => Err(refuse_unknown(app, fingerprint).await),
    }
}
