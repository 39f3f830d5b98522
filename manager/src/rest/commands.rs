//! Commands: queued, and shown with their receipts.

use super::call::{Segments, answer, end, read_object, stored, take_text};
use super::caller::Operator;
use super::page::Page;
use super::problem::Problem;
use crate::app::Shared;
use crate::keys::issue::{self, DEFAULT_VALID_FOR_S, Request};
use crate::keys::secrets::Secrets;
use crate::process::clock;
use crate::store::ClusterKey;
use crate::store::commands::Command;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use uuid::Uuid;

/// `POST /api/v1/clusters/{cluster_id}/kubernetes/commands`
pub(crate) async fn queue(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Extension(secrets): Extension<Arc<Secrets>>,
    Segments(cluster_id): Segments<String>,
    body: Body,
) -> Result<Response, Problem> {
    let mut members = read_object(body).await?;
    let operation = take_text(&mut members, "operation")?;
    let arguments = match members.remove("arguments") {
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(Problem::bad_request("arguments: expected an object")),
        None => return Err(Problem::bad_request("arguments: missing")),
    };
    let valid_for_s = match members.remove("valid_for_s") {
        None => DEFAULT_VALID_FOR_S,
        Some(value) => {
            value.as_u64().ok_or_else(|| Problem::bad_request("valid_for_s: expected a whole number"))?
        }
    };
    end(&members, &["operation", "arguments", "valid_for_s"])?;
    let cluster = operator.cluster(cluster_id)?;
    let actor = operator.actor();
    let request = Request { cluster: &cluster, operation: &operation, arguments, valid_for_s, actor: &actor };
    let command_id = issue::command(&app.store, &secrets.signer, request).await?;
    app.wake.notify(&cluster);
    Ok(answer(StatusCode::CREATED, &one(&app, &cluster, &command_id).await?))
}

/// `GET /api/v1/clusters/{cluster_id}/kubernetes/commands?limit=&continue=`: newest first.
pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Segments(cluster_id): Segments<String>,
    page: Page,
) -> Result<Response, Problem> {
    let cluster = operator.cluster(cluster_id)?;
    if !app.store.has_cluster(&cluster).await? {
        return Err(Problem::no_cluster());
    }
    let commands = app.store.commands(&cluster, page.after_number()?, page.rows()).await?;
    let document = page.document("commands", commands, |command| command.sequence.to_string(), view);
    Ok(answer(StatusCode::OK, &document))
}

/// `GET /api/v1/clusters/{cluster_id}/kubernetes/commands/{command_id}`
pub(crate) async fn show(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Segments((cluster_id, command_id)): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let cluster = operator.cluster(cluster_id)?;
    Ok(answer(StatusCode::OK, &one(&app, &cluster, &command_id).await?))
}

/// A command with its envelope and its receipts.
async fn one(app: &Shared, cluster: &ClusterKey, command_id: &str) -> Result<Shown, Problem> {
    let missing = || Problem::not_found("this tenant has no such cluster, or the cluster no such command");
    let command_id = Uuid::try_parse(command_id).map_err(|_| missing())?.to_string();
    let command = app.store.command(cluster, &command_id).await?.ok_or_else(missing)?;
    let envelope = app.store.envelope(&command_id).await?;
    let receipts = app.store.receipts(&command_id).await?;
    let received = |(at, body)| Received { received_at: clock::text(at), receipt: stored(body) };
    Ok(Shown {
        envelope: stored(envelope),
        receipts: Some(receipts.into_iter().map(received).collect()),
        ..view(command)
    })
}

/// A command as the API shows it.
#[derive(Serialize)]
struct Shown {
    command_id: String,
    sequence: i64,
    nonce: String,
    operation: String,
    name: Option<String>,
    status: String,
    created_at: String,
    created_by: String,
    not_before: String,
    not_after: String,
    deliveries: i64,
    delivered_at: Option<String>,
    receipt: Option<Box<RawValue>>,
    receipt_recorded: bool,
    receipt_at: Option<String>,
    receipt_count: i64,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope: Option<Box<RawValue>>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipts: Option<Vec<Received>>,
}

#[derive(Serialize)]
struct Received {
    received_at: String,
    receipt: Option<Box<RawValue>>,
}

fn view(command: Command) -> Shown {
    Shown {
        command_id: command.command_id,
        sequence: command.sequence,
        nonce: command.nonce,
        operation: command.operation,
        name: command.name,
        status: command.status,
        created_at: clock::text(command.created_at),
        created_by: command.created_by,
        not_before: clock::text(command.not_before),
        not_after: clock::text(command.not_after),
        deliveries: command.deliveries,
        delivered_at: command.delivered_at.map(clock::text),
        receipt: command.receipt.and_then(stored),
        receipt_recorded: command.receipt_recorded == 1,
        receipt_at: command.receipt_at.map(clock::text),
        receipt_count: command.receipts,
        envelope: None,
        receipts: None,
    }
}
