//! Clusters: registered, and shown with what their agents told.

use super::{Operator, Problem, Segments, answer, end, read_object, take_text};
use crate::app::Shared;
use crate::clock::{self, now_ms};
use crate::issue::DEFAULT_MAX_VALIDITY_S;
use crate::store::audit::{self, Entry};
use crate::store::clusters::{self, Cluster};
use crate::store::commit;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use navin_cluster_agent::rules::json;
use navin_cluster_agent::rules::names::Label;
use serde_json::{Map, Value, json};

/// An agent that was heard within this time is online.
const ONLINE_MS: u64 = 90_000;

/// The statuses of commands, all of which are counted.
const STATUSES: [&str; 6] = ["queued", "delivered", "succeeded", "failed", "refused", "expired"];

/// `POST /api/v1/clusters`
pub(crate) async fn register(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    body: Body,
) -> Result<Response, Problem> {
    let mut members = read_object(body).await?;
    let cluster_id = take_label(&mut members, "cluster_id")?;
    let namespace = take_label(&mut members, "namespace")?;
    // Not kept: it is only ever used while the request lasts.
    match members.remove("kubeconfig") {
        None | Some(Value::String(_)) => {}
        Some(_) => return Err(Problem::bad_request("kubeconfig: expected a text")),
    }
    end(&members)?;
    let key = operator.cluster(cluster_id);
    let mut change = app.store.change().await?;
    if !clusters::insert(&mut change, &key, &namespace, DEFAULT_MAX_VALIDITY_S).await? {
        return Err(Problem::new(StatusCode::CONFLICT, "exists", "the cluster is registered already"));
    }
    let entry = Entry {
        tenant_id: Some(&key.tenant_id),
        cluster_id: Some(&key.cluster_id),
        actor: &operator.actor(),
        action: "cluster.register",
        subject: &key.cluster_id,
        detail: "",
    };
    audit::done(&mut change, entry).await?;
    commit(change).await?;
    Ok(answer(StatusCode::CREATED, &one(&app, &operator, &key.cluster_id).await?))
}

/// `GET /api/v1/clusters`
pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
) -> Result<Response, Problem> {
    let mut shown = Vec::new();
    for cluster in app.store.clusters(operator.tenant(), None).await? {
        let mut view = view(&app, &operator, &cluster).await?;
        // Up to megabytes each: only where one cluster is asked for.
        if let Some(members) = view.as_object_mut() {
            members.retain(|name, _| name != "report" && name != "components");
        }
        shown.push(view);
    }
    Ok(answer(StatusCode::OK, &json!({ "clusters": shown })))
}

/// `GET /api/v1/clusters/{cluster_id}`
pub(crate) async fn show(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Segments(cluster_id): Segments<String>,
) -> Result<Response, Problem> {
    Ok(answer(StatusCode::OK, &one(&app, &operator, &cluster_id).await?))
}

async fn one(app: &Shared, operator: &Operator, cluster_id: &str) -> Result<Value, Problem> {
    match app.store.clusters(operator.tenant(), Some(cluster_id)).await?.first() {
        Some(cluster) => view(app, operator, cluster).await,
        None => Err(Problem::not_found("no such cluster")),
    }
}

async fn view(app: &Shared, operator: &Operator, cluster: &Cluster) -> Result<Value, Problem> {
    let key = operator.cluster(cluster.cluster_id.clone());
    let mut counts: Map<String, Value> =
        STATUSES.iter().map(|status| ((*status).to_owned(), json!(0))).collect();
    for count in app.store.command_counts(&key).await? {
        counts.insert(count.status, json!(count.count));
    }
    let online = cluster.contact_at.is_some_and(|at| at.abs_diff(now_ms()) < ONLINE_MS);
    let report = cluster.report.as_deref().map_or(Value::Null, stored);
    Ok(json!({
        "cluster_id": cluster.cluster_id,
        "namespace": cluster.namespace,
        "created_at": clock::text(cluster.created_at),
        "agent": {
            "online": online,
            "last_contact_at": cluster.contact_at.map(clock::text),
            "leader": report.get("replica"),
            "last_report_at": cluster.report_at.map(clock::text),
            "version": report.get("agent_version"),
        },
        "cluster_uid": cluster.cluster_uid,
        "identity_id": cluster.identity_id,
        "certificate_not_after": cluster.identity_not_after.map(clock::text),
        "components": report.get("components").cloned().unwrap_or(Value::Null),
        "commands": counts,
        "report": report,
    }))
}

/// A document of the database.
pub(super) fn stored(text: &str) -> Value {
    json::parse_foreign(text.as_bytes(), text.len()).unwrap_or(Value::Null)
}

fn take_label(members: &mut Map<String, Value>, name: &str) -> Result<String, Problem> {
    let text = take_text(members, name)?;
    if Label::parse(&text).is_some() {
        Ok(text)
    } else {
        Err(Problem::bad_request(&format!("{name}: expected an RFC 1123 label")))
    }
}
