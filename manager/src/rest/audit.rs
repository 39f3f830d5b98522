//! Who did what, and what was refused.

use super::{Operator, Problem, answer};
use crate::app::Shared;
use crate::clock;
use crate::store::audit::Written;
use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

/// Entries of one page where nothing is asked for.
const PAGE: i64 = 100;

/// Most entries of one page.
const MAX_PAGE: i64 = 1000;

/// Which entries to list.
#[derive(Debug, Deserialize)]
pub(crate) struct PageOf {
    before: Option<String>,
    limit: Option<i64>,
}

/// `GET /api/v1/audit?limit=&before=`
pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    page: Result<Query<PageOf>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(page) = page.map_err(|_| Problem::bad_request("limit: expected a number"))?;
    let limit = page.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let entries = app.store.audit(operator.tenant(), page.before.as_deref(), limit).await?;
    let shown: Vec<Value> = entries.iter().map(view).collect();
    Ok(answer(StatusCode::OK, &json!({ "entries": shown })))
}

fn view(entry: &Written) -> Value {
    json!({
        "audit_id": entry.audit_id,
        "at": clock::text(entry.at),
        "last_at": clock::text(entry.last_at),
        "times": entry.times,
        "cluster_id": entry.cluster_id,
        "actor": entry.actor,
        "action": entry.action,
        "outcome": entry.outcome,
        "subject": entry.subject,
        "detail": entry.detail,
    })
}
