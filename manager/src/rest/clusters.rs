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
use crate::store::reports::MAX_SUMMARY_BYTES;
use crate::store::{ClusterKey, commit};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use navin_cluster_agent::rules::json;
use navin_cluster_agent::rules::names::Label;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// An agent that was heard within this time is online.
const ONLINE_MS: u64 = 90_000;

/// Namespaces that are Kubernetes' own, or everybody's: the agent's manifests put Pod Security on theirs, and to uninstall it is
/// to delete that with all that is in it.
const NOT_MANAGED: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

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
    if NOT_MANAGED.contains(&namespace.as_str()) {
        let detail =
            format!("namespace: not {namespace}; the agent has one of its own, which is deleted with it");
        return Err(Problem::bad_request(&detail));
    }
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
        Some(kubeconfig) => {
            let _places = app.checks.enter(operator.tenant()).map_err(|_| Problem::checks())?;
            Some(import::check(&kubeconfig, &namespace).await.map_err(Problem::kubeconfig)?)
        }
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
        shown.push(view(&app, &key, cluster).await?);
    }
    // The report grows with the cluster: only where one is asked for.
    let document = page.document("clusters", shown, |shown| shown.cluster_id.clone(), |shown| shown);
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

async fn one(app: &Shared, key: &ClusterKey) -> Result<Shown, Problem> {
    let cluster = app.store.cluster(key).await?.ok_or_else(Problem::no_cluster)?;
    let report = app.store.report(key).await?.and_then(stored);
    let parts: Option<Parts> = report.as_ref().and_then(|report| serde_json::from_str(report.get()).ok());
    let components = parts.and_then(|parts| parts.components);
    Ok(Shown { last: Some(Last { components, report }), ..view(app, key, cluster).await? })
}

/// What is shown of a report by itself.
#[derive(Deserialize)]
struct Parts {
    components: Option<Box<RawValue>>,
}

/// A cluster as the API shows it.
#[derive(Serialize)]
struct Shown {
    cluster_id: String,
    namespace: String,
    created_at: String,
    agent: Agent,
    cluster_uid: Option<String>,
    kubernetes: Option<Box<RawValue>>,
    identity_id: Option<String>,
    certificate_not_after: Option<String>,
    commands: BTreeMap<String, i64>,
    /// Not in lists.
    #[serde(flatten)]
    last: Option<Last>,
}

/// What is known of a cluster's agent.
#[derive(Serialize)]
struct Agent {
    online: bool,
    last_contact_at: Option<String>,
    leader: Option<String>,
    last_report_at: Option<String>,
    version: Option<String>,
}

/// What grows with the cluster.
#[derive(Serialize)]
struct Last {
    components: Option<Box<RawValue>>,
    report: Option<Box<RawValue>>,
}

/// A cluster without what grows with it.
async fn view(app: &Shared, key: &ClusterKey, cluster: Cluster) -> Result<Shown, Problem> {
    let mut commands: BTreeMap<String, i64> = STATUSES.map(|status| (status.to_owned(), 0)).into();
    for count in app.store.command_counts(key).await? {
        commands.insert(count.status, count.count);
    }
    let summary = summary(&cluster);
    // What an agent wrote is shown where it has the form that the API promises.
    let text = |name: &str| summary.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(Shown {
        agent: Agent {
            online: is_online(cluster.contact_at),
            last_contact_at: cluster.contact_at.map(clock::text),
            leader: text("replica"),
            last_report_at: cluster.report_at.map(clock::text),
            version: text("agent_version"),
        },
        cluster_id: cluster.cluster_id,
        namespace: cluster.namespace,
        created_at: clock::text(cluster.created_at),
        cluster_uid: cluster.cluster_uid,
        kubernetes: cluster.kubernetes.and_then(stored),
        identity_id: cluster.identity_id,
        certificate_not_after: cluster.identity_not_after.map(clock::text),
        commands,
        last: None,
    })
}

/// The last report in short; null where there is none, or none of the length that is taken.
pub(super) fn summary(cluster: &Cluster) -> Value {
    let text = cluster.summary.as_deref().unwrap_or_default();
    json::parse_foreign(text.as_bytes(), MAX_SUMMARY_BYTES).unwrap_or(Value::Null)
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
