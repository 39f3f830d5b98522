//! Clusters: registered, and shown with what their agents told.

use super::call::{Segments, answer, end, read_object, stored, take_text};
use super::caller::Operator;
use super::import;
use super::page::Page;
use super::problem::Problem;
use crate::app::Shared;
use crate::keys::issue::DEFAULT_MAX_VALIDITY_S;
use crate::process::clock::{self, now_ms};
use crate::store::audit::{self, Entry};
use crate::store::clusters::{self, Cluster};
use crate::store::{ClusterKey, commit};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use navin_cluster_agent::rules::names::Label;
use serde_json::{Map, Value, json};

/// An agent that was heard within this time is online.
const ONLINE_MS: u64 = 90_000;

/// The statuses of commands, all of which are counted.
const STATUSES: [&str; 6] = ["queued", "delivered", "succeeded", "failed", "refused", "expired"];

/// `POST /api/v1/clusters`. With a kubeconfig the manager looks at the cluster first; so it does at one
/// that is registered already, with the same namespace.
pub(crate) async fn register(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    body: Body,
) -> Result<Response, Problem> {
    let mut members = read_object(body).await?;
    let cluster_id = take_label(&mut members, "cluster_id")?;
    let namespace = take_label(&mut members, "namespace")?;
    let kubeconfig = match members.remove("kubeconfig") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(_) => return Err(Problem::bad_request("kubeconfig: expected a text")),
    };
    end(&members, &["cluster_id", "namespace", "kubeconfig"])?;
    let key = operator.cluster(cluster_id)?;
    let known = app.store.placement(&key).await?;
    if let Some(known) = known.as_ref().filter(|known| kubeconfig.is_none() || known.namespace != namespace) {
        return Err(exists(&key.cluster_id, &known.namespace));
    }
    // Not kept: it is only ever used while the request lasts.
    let seen = match kubeconfig {
        Some(kubeconfig) => Some(import::check(&kubeconfig, &namespace).await.map_err(Problem::kubeconfig)?),
        None => None,
    };
    let mut change = app.store.change(&key).await?;
    let made = clusters::insert(&mut change, &key, &namespace, DEFAULT_MAX_VALIDITY_S).await?;
    if !made && known.is_none() {
        drop(change);
        let made_meanwhile = app.store.placement(&key).await?.ok_or_else(Problem::no_cluster)?;
        return Err(exists(&key.cluster_id, &made_meanwhile.namespace));
    }
    if let Some(seen) = &seen {
        let seen = json!({ "version": seen.version, "checked_at": clock::text(now_ms()) });
        clusters::set_kubernetes(&mut change, &key, &seen.to_string()).await?;
    }
    let entry = Entry {
        tenant_id: Some(&key.tenant_id),
        cluster_id: Some(&key.cluster_id),
        actor: &operator.actor(),
        action: if made { "cluster.register" } else { "cluster.check" },
        subject: &key.cluster_id,
        detail: if seen.is_some() { "checked with a kubeconfig" } else { "" },
    };
    audit::done(&mut change, entry).await?;
    commit(change).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer(status, &one(&app, &key).await?))
}

/// A cluster keeps its namespace: what it is for is signed into its identities.
fn exists(cluster_id: &str, namespace: &str) -> Problem {
    let detail = format!(
        "the cluster {cluster_id} is registered already, with the namespace {namespace}: to have it looked at again, \
         give that namespace and a kubeconfig; another namespace takes another cluster name"
    );
    Problem::new(StatusCode::CONFLICT, "exists", &detail)
}

/// `GET /api/v1/clusters?limit=&continue=`: by name.
pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    page: Page,
) -> Result<Response, Problem> {
    let clusters = app.store.clusters(operator.tenant(), page.after(), page.rows()).await?;
    let mut shown = Vec::new();
    for cluster in clusters {
        let key = operator.cluster(cluster.cluster_id.clone())?;
        shown.push((key.cluster_id.clone(), view(&app, &key, &cluster).await?));
    }
    // The report grows with the cluster: only where one is asked for.
    let document = page.document("clusters", shown, |(id, _)| id.clone(), |(_, view)| view.clone());
    Ok(answer(StatusCode::OK, &document))
}

/// `GET /api/v1/clusters/{cluster_id}`
pub(crate) async fn show(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
    Segments(cluster_id): Segments<String>,
) -> Result<Response, Problem> {
    Ok(answer(StatusCode::OK, &one(&app, &operator.cluster(cluster_id)?).await?))
}

async fn one(app: &Shared, key: &ClusterKey) -> Result<Value, Problem> {
    let cluster = app.store.cluster(key).await?.ok_or_else(Problem::no_cluster)?;
    let mut shown = view(app, key, &cluster).await?;
    let report = app.store.report(key).await?.as_deref().map_or(Value::Null, stored);
    if let Some(members) = shown.as_object_mut() {
        members.insert("components".to_owned(), report.get("components").cloned().unwrap_or(Value::Null));
        members.insert("report".to_owned(), report);
    }
    Ok(shown)
}

/// A cluster without what grows with it.
async fn view(app: &Shared, key: &ClusterKey, cluster: &Cluster) -> Result<Value, Problem> {
    let mut counts: Map<String, Value> =
        STATUSES.iter().map(|status| ((*status).to_owned(), json!(0))).collect();
    for count in app.store.command_counts(key).await? {
        counts.insert(count.status, json!(count.count));
    }
    let summary = cluster.summary.as_deref().map_or(Value::Null, stored);
    // What an agent wrote is shown where it has the form that the API promises.
    let text = |name: &str| summary.get(name).filter(|value| value.is_string());
    Ok(json!({
        "cluster_id": cluster.cluster_id,
        "namespace": cluster.namespace,
        "created_at": clock::text(cluster.created_at),
        "agent": {
            "online": is_online(cluster.contact_at),
            "last_contact_at": cluster.contact_at.map(clock::text),
            "leader": text("replica"),
            "last_report_at": cluster.report_at.map(clock::text),
            "version": text("agent_version"),
        },
        "cluster_uid": cluster.cluster_uid,
        "kubernetes": cluster.kubernetes.as_deref().map(stored),
        "identity_id": cluster.identity_id,
        "certificate_not_after": cluster.identity_not_after.map(clock::text),
        "commands": counts,
    }))
}

/// Whether an agent that was last heard then is online.
pub(super) fn is_online(contact_at: Option<i64>) -> bool {
    contact_at.is_some_and(|at| at.abs_diff(now_ms()) < ONLINE_MS)
}

fn take_label(members: &mut Map<String, Value>, name: &str) -> Result<String, Problem> {
    let text = take_text(members, name)?;
    if Label::parse(&text).is_some() {
        Ok(text)
    } else {
        Err(Problem::bad_request(&format!("{name}: expected an RFC 1123 label (1 to 63 of a-z, 0-9 and -)")))
    }
}
