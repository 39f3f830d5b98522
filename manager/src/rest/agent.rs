//! Identities of agents.

use super::call::{Segments, answer, end, read_object, stored};
use super::caller::Operator;
use super::problem::Problem;
use super::secret;
use crate::app::Shared;
use crate::keys::issue;
use crate::keys::secrets::Secrets;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, json};
use std::sync::Arc;

/// What an operator may set. The agent's own rules check the values.
const SETTINGS: [&str; 6] = [
    "gateway_url",
    "lease_duration_s",
    "offline_after_s",
    "poll_wait_s",
    "report_interval_s",
    "max_validity_s",
];

/// `POST /api/v1/clusters/{cluster_id}/kubernetes/agent`
pub(crate) async fn issue(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Extension(secrets): Extension<Arc<Secrets>>,
    Segments(cluster_id): Segments<String>,
    body: Body,
) -> Result<Response, Problem> {
    let mut members = read_object(body).await?;
    let mut settings = Map::new();
    for name in SETTINGS {
        if let Some(value) = members.remove(name) {
            settings.insert(name.to_owned(), value);
        }
    }
    end(&members, &SETTINGS)?;
    let cluster = operator.cluster(cluster_id)?;
    let (signer, authority) = (&secrets.signer, secrets.authority.as_ref());
    let issued =
        issue::identity(&app.store, signer, authority, &cluster, settings, &operator.actor()).await?;
    // The former identity may be waiting for commands: it is told at once.
    app.wake.notify(&cluster);
    let files = [
        ("config.json", issued.config.as_str()),
        ("manager.pem", signer.manager_pem()),
        ("tls.crt", &issued.certificate.certificate_pem),
        ("tls.key", &issued.certificate.key_pem),
        ("ca.crt", authority.root().pem()),
    ];
    let document = json!({
        "config": stored(issued.config.clone()),
        "manager_pem": signer.manager_pem(),
        "tls_crt": issued.certificate.certificate_pem,
        "tls_key": issued.certificate.key_pem,
        "ca_crt": authority.root().pem(),
        "secret_yaml": secret::yaml(&issued.namespace, &files),
    });
    Ok(answer(StatusCode::CREATED, &document))
}
