//! Who calls: an operator of a tenant, known by the bearer token.

use super::call::MAX_BODY_BYTES;
use super::problem::Problem;
use crate::app::peer::Peer;
use crate::app::{Shared, http};
use crate::keys::signing::sha256_hex;
use crate::store::audit::Entry;
use crate::store::tokens::Token;
use crate::store::{ClusterKey, bounded};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use navin_cluster_agent::rules::names::Label;
use std::sync::Arc;
use std::time::Duration;

/// How long what is done for it may take: the check of a kubeconfig, and the database.
const WORK_TIMEOUT: Duration = Duration::from_secs(25);

/// Longest path that the audit keeps, in characters.
const MAX_AUDITED_PATH: usize = 200;

/// Who calls.
#[derive(Debug, Clone)]
pub(crate) struct Operator(Token);

impl Operator {
    /// The tenant whose clusters may be seen.
    pub(super) fn tenant(&self) -> &str {
        &self.0.tenant_id
    }

    /// How the audit names the operator.
    pub(super) fn actor(&self) -> String {
        format!("token:{}", self.0.token_id)
    }

    /// A cluster of the tenant.
    pub(super) fn cluster(&self, cluster_id: String) -> Result<ClusterKey, Problem> {
        match Label::parse(&cluster_id) {
            Some(_) => Ok(ClusterKey { tenant_id: self.0.tenant_id.clone(), cluster_id }),
            None => Err(Problem::no_cluster()),
        }
    }
}

/// Lets in who has a good token, within what the token may do; audits what is refused.
pub(super) async fn authenticate(
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
