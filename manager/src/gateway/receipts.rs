//! Receipts, one at a time.

use super::error::GatewayError;
use super::refused::{audit_refused, refuse_revoked};
use crate::app::{Shared, http};
use crate::store::bounded;
use crate::store::identities::Identity;
use crate::store::receipts::{Incoming, Outcome, Taken};
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use navin_cluster_agent::rules::json;
use navin_cluster_agent::rules::messages::{Reason, Receipt};

/// Largest receipt, in bytes: many times what an agent sends, `original` included.
const MAX_RECEIPT_BYTES: usize = 64 * 1024;

/// What a receipt may take of memory but for its texts, in units of 32 bytes: 64 KiB, several times what an agent sends. A
/// page of commands shows a thousand.
const MAX_RECEIPT_WEIGHT: usize = 2 * 1024;

/// `POST /v1/cluster-agent/receipts`
pub(super) async fn take(app: &Shared, identity: &Identity, body: Body) -> Result<Response, GatewayError> {
    let (bytes, _held) =
        app.receipts.read(&identity.identity_id.as_str().into(), body, MAX_RECEIPT_BYTES).await?;
    let (receipt, incoming) = read(&bytes)?;
    if !is_of(&receipt, identity) {
        audit_refused(app, identity, "receipt.record", &incoming.command_id, "of another cluster").await;
        return Err(GatewayError::OtherCluster);
    }
    match bounded(app.store.take_receipt(identity, &incoming)).await? {
        Taken::Kept => Ok(answer(true)),
        Taken::Later => Ok(answer(false)),
        Taken::Unknown => Err(GatewayError::UnknownCommand),
        Taken::WrongNonce => Err(GatewayError::Malformed("nonce: not the command's")),
        Taken::Revoked => Err(refuse_revoked(app, identity).await),
        Taken::OtherCluster => {
            let detail = "for another cluster's command";
            audit_refused(app, identity, "receipt.record", &incoming.command_id, detail).await;
            Err(GatewayError::OtherCluster)
        }
    }
}

fn answer(recorded: bool) -> Response {
    http::text(StatusCode::OK, format!("{{\"recorded\":{recorded}}}"), "application/json")
}

/// Reads a receipt with the agent's own rules.
fn read(bytes: &[u8]) -> Result<(Receipt, Incoming), GatewayError> {
    let document = json::parse_within(bytes, MAX_RECEIPT_BYTES, MAX_RECEIPT_WEIGHT)
        .map_err(|_| GatewayError::Malformed("the receipt is not strict JSON, or too heavy"))?;
    let receipt: Receipt = serde_json::from_slice(bytes)
        .map_err(|_| GatewayError::Malformed("the receipt is not of the contract's form"))?;
    let (Some(command_id), Some(nonce)) = (&receipt.command_id, &receipt.nonce) else {
        return Err(GatewayError::Malformed("the receipt lacks command_id or nonce"));
    };
    if receipt.recorded && receipt.reason == Some(Reason::NonceReplayed) {
        return Err(GatewayError::Malformed("nonce_replayed is never a recorded outcome"));
    }
    let body = json::canonical(&document);
    // The recorded outcome inside of nonce_replayed counts for as much as one that came by itself.
    let original = receipt.original.as_deref().filter(|original| {
        receipt.reason == Some(Reason::NonceReplayed)
            && original.recorded
            && original.command_id == receipt.command_id
            && original.nonce == receipt.nonce
            && original.tenant_id == receipt.tenant_id
            && original.cluster_id == receipt.cluster_id
    });
    let outcome = match (original, document.get("original")) {
        (Some(original), Some(value)) => Outcome {
            receipt: json::canonical(value),
            status: original.status.as_str().to_owned(),
            recorded: true,
        },
        (Some(_) | None, _) => Outcome {
            receipt: body.clone(),
            status: receipt.status.as_str().to_owned(),
            recorded: receipt.recorded,
        },
    };
    let incoming = Incoming {
        command_id: command_id.as_str().to_ascii_lowercase(),
        nonce: nonce.as_str().to_owned(),
        body,
        outcome,
    };
    Ok((receipt, incoming))
}

fn is_of(receipt: &Receipt, identity: &Identity) -> bool {
    receipt.tenant_id.as_str() == identity.tenant_id && receipt.cluster_id.as_str() == identity.cluster_id
}
