//! The REST API, which operators call. CONTRACT section 8.
//!
//! Whose operator calls is known by the bearer token. Every query names the token's tenant, so that
//! another tenant's cluster is simply not there.

mod agent;
mod audit;
mod clusters;
mod commands;
mod inventory;
mod manifests;
mod metrics;
mod page;
mod problem;
mod secret;

use crate::app::Shared;
use crate::http;
use crate::keys::Secrets;
use crate::peer::Peer;
use crate::signing::sha256_hex;
use crate::store::audit::Entry;
use crate::store::tokens::Token;
use crate::store::{ClusterKey, bounded};
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use navin_cluster_agent::rules::json;
use navin_cluster_agent::rules::names::Label;
use problem::Problem;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Most connections of operators at once.
pub(crate) const MAX_CONNECTIONS: usize = 512;

/// Largest body, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Most requests that one token may have open.
pub(crate) const MAX_OPEN: usize = 64;

/// How long a request may take, its body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long what is done for it may take: the check of a kubeconfig, and the database.
const WORK_TIMEOUT: Duration = Duration::from_secs(25);

/// Longest path that the audit keeps, in characters.
const MAX_AUDITED_PATH: usize = 200;

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
    Ok(http::json(StatusCode::OK, "{\"status\":\"ok\"}".to_owned(), "application/json"))
}

async fn openapi() -> Response {
    http::text(StatusCode::OK, OPENAPI.to_owned(), "application/json")
}

/// An answer with which the connection ends.
fn closing(mut response: Response) -> Response {
    http::close(&mut response);
    response
}

/// Who calls.
#[derive(Debug, Clone)]
pub(crate) struct Operator(Token);

impl Operator {
    /// The tenant whose clusters may be seen.
    fn tenant(&self) -> &str {
        &self.0.tenant_id
    }

    /// How the audit names the operator.
    fn actor(&self) -> String {
        format!("token:{}", self.0.token_id)
    }

    /// A cluster of the tenant.
    fn cluster(&self, cluster_id: String) -> Result<ClusterKey, Problem> {
        match Label::parse(&cluster_id) {
            Some(_) => Ok(ClusterKey { tenant_id: self.0.tenant_id.clone(), cluster_id }),
            None => Err(Problem::no_cluster()),
        }
    }
}

async fn authenticate(
    State(app): State<Shared>,
    Extension(peer): Extension<Arc<Peer>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, secret) = header.and_then(|text| text.split_once(' ')).ok_or_else(Problem::unauthorized)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Problem::unauthorized());
    }
    let token = bounded(app.store.token(&sha256_hex(secret.trim().as_bytes()))).await?;
    let operator = Operator(token.ok_or_else(Problem::unauthorized)?);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    if operator.0.revoked_at.is_some() {
        // Whoever uses it may not be whom it was made for.
        audit_refused(&app, &operator, &method, &path, "revoked token").await?;
        return Err(Problem::unauthorized());
    }
    if peer.operator.get().is_none()
        && let Ok(places) = app.kept.enter(&operator.0.token_id, &operator.0.tenant_id)
    {
        peer.operator.set(places).unwrap_or_default();
    }
    let _place = app.operators.enter(&operator.0.token_id.as_str().into())?;
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(operator.clone());
    let response = match http::read(body, MAX_BODY_BYTES).await {
        Ok(body) => {
            let work = next.run(Request::from_parts(parts, Body::from(body)));
            tokio::time::timeout(WORK_TIMEOUT, work).await.map_err(|_| Problem::unavailable())?
        }
        Err(error) => Problem::from(error).into_response(),
    };
    if response.status().is_client_error() && method != Method::GET && method != Method::HEAD {
        audit_refused(&app, &operator, &method, &path, response.status().as_str()).await?;
    }
    Ok(response)
}

/// Audits a call that was refused.
async fn audit_refused(
    app: &Shared,
    operator: &Operator,
    method: &Method,
    path: &str,
    detail: &str,
) -> Result<(), Problem> {
    let path: String = path.chars().take(MAX_AUDITED_PATH).collect();
    let entry = Entry {
        tenant_id: Some(operator.tenant()),
        cluster_id: None,
        actor: &operator.actor(),
        action: &format!("rest.{}", method.as_str().to_ascii_lowercase()),
        subject: &path,
        detail,
    };
    Ok(bounded(app.store.audit_refused(entry)).await?)
}

/// The parts of the path; what cannot be read is told as a problem.
struct Segments<T>(T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, app).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(_) => Err(Problem::bad_request("the path is not text")),
        }
    }
}

/// Reads a body as strict JSON: what is refused in an envelope is refused here.
async fn read_object(body: Body) -> Result<Map<String, Value>, Problem> {
    let bytes = http::read(body, MAX_BODY_BYTES).await?;
    match json::parse(&bytes, MAX_BODY_BYTES) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Problem::bad_request("the body is not an object")),
        Err(error) => Err(Problem::bad_request(&format!("the body is not strict JSON: {error}"))),
    }
}

/// Takes a member that must be a text.
fn take_text(members: &mut Map<String, Value>, name: &str) -> Result<String, Problem> {
    match members.remove(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Problem::bad_request(&format!("{name}: expected a text"))),
        None => Err(Problem::bad_request(&format!("{name}: missing"))),
    }
}

/// Refuses members that were not taken: those but `known`.
fn end(members: &Map<String, Value>, known: &[&str]) -> Result<(), Problem> {
    if members.is_empty() {
        return Ok(());
    }
    Err(Problem::bad_request(&format!("the body: expected no other members than {}", known.join(", "))))
}

/// An answer of JSON.
fn answer(status: StatusCode, value: &Value) -> Response {
    http::json(status, value.to_string(), "application/json")
}
