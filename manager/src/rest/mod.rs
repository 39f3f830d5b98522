//! The REST API, which operators call. CONTRACT section 8.
//!
//! Whose operator calls is known by the bearer token. Every query names the token's tenant, so that
//! another tenant's cluster is simply not there.
//!
//! [`caller`] is whose call it is, [`call`] what it brings, [`problem`] why it is refused; the rest is one kind of thing a
//! file. [`import`] looks at a cluster. Imports [`app`](crate::app) and the rooms below that; only the command line may
//! import it.

mod agent;
mod audit;
mod call;
mod caller;
mod clusters;
mod commands;
mod import;
mod inventory;
mod manifests;
mod metrics;
mod page;
mod problem;
mod secret;

use crate::app::peer::Peer;
use crate::app::{Shared, http};
use crate::keys::secrets::Secrets;
use crate::store::bounded;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use caller::authenticate;
use problem::Problem;
use std::sync::Arc;
use std::time::Duration;

/// Most connections of operators at once.
pub(crate) const MAX_CONNECTIONS: usize = 512;

/// Most requests that one token may have open.
pub(crate) const MAX_OPEN: usize = 64;

/// How long a request may take, its body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The description of all that is served here, in the form of OpenAPI 3.1.
const OPENAPI: &str = include_str!("../../openapi.json");

/// The routes.
pub(crate) fn router(app: &Shared, secrets: Secrets) -> Router {
    Router::new()
        .route("/api/v1/clusters", get(clusters::list).post(clusters::register))
        .route("/api/v1/clusters/{cluster_id}", get(clusters::show))
        .route("/api/v1/clusters/{cluster_id}/kubernetes/import-rbac", get(manifests::import_rbac))
        .route("/api/v1/clusters/{cluster_id}/kubernetes/agent", post(agent::issue))
        .route("/api/v1/clusters/{cluster_id}/kubernetes/agent/manifests", get(manifests::agent))
        .route("/api/v1/clusters/{cluster_id}/kubernetes/commands", get(commands::list).post(commands::queue))
        .route("/api/v1/clusters/{cluster_id}/kubernetes/commands/{command_id}", get(commands::show))
        .route("/api/v1/clusters/{cluster_id}/kubernetes/inventory", get(inventory::show))
        .route("/api/v1/audit", get(audit::list))
        .route("/metrics", get(metrics::show))
        .fallback(async || Problem::not_found("no such path"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "no such method here")
        })
        .layer(Extension(Arc::new(secrets)))
        .layer(middleware::from_fn_with_state(app.clone(), authenticate))
        // Outside of the token: for the probes of what runs us.
        .route("/healthz", get(health))
        .route("/openapi.json", get(openapi))
        .layer(middleware::from_fn(admit))
        .with_state(app.clone())
}

/// Takes the connection in, and bounds the call; keeps the connection afterwards only for an operator who
/// has a place for it.
async fn admit(Extension(peer): Extension<Arc<Peer>>, request: Request, next: Next) -> Response {
    let response = if peer.settle().await {
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
        answer.unwrap_or_else(|_| Problem::too_slow().into_response())
    } else {
        Problem::overloaded().into_response()
    };
    let is_known = peer.operator.get().is_some() && response.status() != StatusCode::UNAUTHORIZED;
    if is_known { response } else { closing(response) }
}

async fn health(State(app): State<Shared>) -> Result<Response, Problem> {
    bounded(app.store.ping()).await?;
    Ok(http::text(StatusCode::OK, "{\"status\":\"ok\"}".to_owned(), "application/json"))
}

async fn openapi() -> Response {
    http::text(StatusCode::OK, OPENAPI.to_owned(), "application/json")
}

/// An answer with which the connection ends.
fn closing(mut response: Response) -> Response {
    http::close(&mut response);
    response
}
