//! Who did what, and what was refused.

use super::call::answer;
use super::caller::Operator;
use super::page::Page;
use super::problem::Problem;
use crate::app::Shared;
use crate::process::clock;
use crate::store::audit::Written;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

/// `GET /api/v1/audit?limit=&continue=`: newest first.
pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    page: Page,
) -> Result<Response, Problem> {
    let entries = app.store.audit(operator.tenant(), page.after(), page.rows()).await?;
    let document = page.document("entries", entries, |entry| entry.audit_id.clone(), |entry| view(&entry));
    Ok(answer(StatusCode::OK, &document))
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
