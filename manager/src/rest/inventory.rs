//! The last inventory of a cluster.

use super::call::{Segments, answer, stored};
use super::caller::Operator;
use super::problem::Problem;
use crate::app::Shared;
use crate::process::clock;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;

/// `GET /api/v1/clusters/{cluster_id}/kubernetes/inventory`
pub(crate) async fn show(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Segments(cluster_id): Segments<String>,
) -> Result<Response, Problem> {
    let cluster = operator.cluster(cluster_id)?;
    let found = app.store.inventory(&cluster).await?;
    let found = found.ok_or_else(Problem::no_cluster)?;
    let inventory = found.inventory.ok_or_else(|| {
        Problem::not_found("the cluster has no inventory yet: its agent sends one with its first report")
    })?;
    let shown = Shown {
        revision: found.inventory_revision,
        received_at: found.inventory_at.map(clock::text),
        inventory: stored(inventory),
    };
    Ok(answer(StatusCode::OK, &shown))
}

#[derive(Serialize)]
struct Shown {
    revision: Option<String>,
    received_at: Option<String>,
    inventory: Option<Box<RawValue>>,
}
