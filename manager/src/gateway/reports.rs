//! Reports and inventories.

use super::error::GatewayError;
use super::refused::{audit_refused, refuse_revoked};
use crate::app::{Shared, http};
use crate::store::bounded;
use crate::store::identities::Identity;
use crate::store::reports::{Answer, Incoming, MAX_SUMMARY_BYTES};
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use navin_cluster_agent::rules::json;
use navin_cluster_agent::rules::report::{LIMIT as MAX_REPORT_BYTES, REPORT_TYPE};
use serde_json::Value;

/// What a report may take of memory while it is read, in units of 32 bytes: 128 MiB, 16 times its bytes.
const MAX_REPORT_WEIGHT: usize = 4 * 1024 * 1024;

/// `POST /v1/cluster-agent/report`
pub(super) async fn take(app: &Shared, identity: &Identity, body: Body) -> Result<Response, GatewayError> {
    let (bytes, _held) =
        app.reports.read(&identity.identity_id.as_str().into(), body, MAX_REPORT_BYTES).await?;
    let of = identity.clone();
    // Megabytes of JSON take a while, and many times their size: not on the threads that hold the
    // connections, and few at once.
    let turn = app.parsing.acquire().await;
    let read = tokio::task::spawn_blocking(move || read(&bytes, &of)).await;
    drop(turn);
    let incoming = match read {
        Ok(Ok(incoming)) => incoming,
        Ok(Err(GatewayError::OtherCluster)) => {
            audit_refused(app, identity, "report.store", "", "of another cluster").await;
            return Err(GatewayError::OtherCluster);
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(GatewayError::Unavailable),
    };
    let answer = match bounded(app.store.take_report(identity, &incoming)).await? {
        Answer::Kept => "kept",
        Answer::Needed => "needed",
        Answer::Revoked => return Err(refuse_revoked(app, identity).await),
    };
    Ok(http::text(StatusCode::OK, format!("{{\"inventory\":\"{answer}\"}}"), "application/json"))
}

/// Checks whose report it is, and takes the inventory out of it.
fn read(bytes: &[u8], identity: &Identity) -> Result<Incoming, GatewayError> {
    let mut report = json::parse_within(bytes, MAX_REPORT_BYTES, MAX_REPORT_WEIGHT)
        .map_err(|_| GatewayError::Malformed("the report is not strict JSON, or too heavy"))?;
    let members = report.as_object_mut().ok_or(GatewayError::Malformed("the report is not an object"))?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if text("type") != Some(REPORT_TYPE) {
        return Err(GatewayError::Malformed("type: expected navin.report/v1"));
    }
    match (text("tenant_id"), text("cluster_id")) {
        (Some(tenant), Some(cluster)) => {
            if tenant != identity.tenant_id || cluster != identity.cluster_id {
                return Err(GatewayError::OtherCluster);
            }
        }
        (None, _) | (_, None) => return Err(GatewayError::Malformed("tenant_id, cluster_id: missing")),
    }
    let revision = text("inventory_revision").map(str::to_owned);
    let cluster_uid = text("cluster_uid").map(str::to_owned);
    // PostgreSQL has no NUL in a text; nor has an identifier any other of these.
    if [&revision, &cluster_uid].into_iter().flatten().any(|text| text.chars().any(char::is_control)) {
        return Err(GatewayError::Malformed("inventory_revision, cluster_uid: a control character"));
    }
    let inventory = members.remove("inventory").filter(|inventory| !inventory.is_null());
    if inventory.is_some() && revision.is_none() {
        return Err(GatewayError::Malformed("inventory_revision: missing, while inventory is there"));
    }
    let inventory = inventory.map(|inventory| json::canonical(&inventory));
    let whole = json::canonical(&report);
    if let Some(members) = report.as_object_mut() {
        members.remove("components");
    }
    let summary = json::canonical(&report);
    if summary.len() > MAX_SUMMARY_BYTES {
        return Err(GatewayError::Malformed("longer than 16 KiB, components and inventory not counted"));
    }
    Ok(Incoming { report: whole, summary, cluster_uid, inventory, revision })
}
