//! Makes commands and identities: each is signed and stored in one change.

use super::authority::{Authority, ClientCertificate};
use super::signing::{Signer, Unsignable, random_text};
use crate::process::clock::{self, SECOND_MS};
use crate::process::failure::Failure;
use crate::store::audit::{self, Entry};
use crate::store::commands::{self, NewCommand};
use crate::store::identities::{self, Issued};
use crate::store::{ClusterKey, Store, StoreError, clusters, commit};
use navin_cluster_agent::rules::config;
use navin_cluster_agent::rules::messages::COMMAND_TYPE;
use navin_cluster_agent::rules::names::ComponentName;
use serde_json::{Map, Value, json};
use std::iter;
use uuid::Uuid;

/// `valid_for_s` where it is not given. CONTRACT section 2.
pub(crate) const DEFAULT_VALID_FOR_S: u64 = 900;

/// `max_validity_s` where it is not given. CONTRACT section 3.
pub(crate) const DEFAULT_MAX_VALIDITY_S: i64 = config::VALIDITY_DEFAULT.cast_signed();

/// `not_before` is this long before the approval, for clocks that are a little behind.
const BACKDATED_S: i64 = 60;

/// What is said of a cluster that is not there.
pub(crate) const NO_CLUSTER: &str =
    "this tenant has no such cluster: `navin-manager clusters NAME --register NAMESPACE` makes it known";

/// Why nothing was issued.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IssueError {
    /// There is no such cluster.
    #[error("cluster {0:?}: {NO_CLUSTER}")]
    NoCluster(String),
    /// The agent would refuse it.
    #[error("{0}")]
    Unsignable(#[from] Unsignable),
    /// The window is longer than the agent takes.
    #[error("valid_for_s: expected 1 to {max}")]
    ValidFor {
        /// The longest that the cluster's agent takes.
        max: i64,
    },
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system: randomness, the clock.
    #[error("{0}")]
    System(String),
}

impl From<IssueError> for Failure {
    fn from(error: IssueError) -> Self {
        Self::Issue(error.to_string())
    }
}

impl From<Failure> for IssueError {
    fn from(failure: Failure) -> Self {
        Self::System(failure.to_string())
    }
}

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request<'r> {
    /// For which cluster.
    pub(crate) cluster: &'r ClusterKey,
    /// What to do.
    pub(crate) operation: &'r str,
    /// With what.
    pub(crate) arguments: Map<String, Value>,
    /// Seconds until it expires.
    pub(crate) valid_for_s: u64,
    /// Who approves it.
    pub(crate) actor: &'r str,
}

/// Signs a command and queues it; gives back its identifier.
pub(crate) async fn command(
    store: &Store,
    signer: &Signer,
    request: Request<'_>,
) -> Result<String, IssueError> {
    let cluster = request.cluster;
    let mut change = store.change(cluster).await?;
    let missing = || IssueError::NoCluster(cluster.cluster_id.clone());
    let base = clusters::base(&mut change, cluster).await?.ok_or_else(missing)?;
    let max = base.max_validity_s.saturating_sub(BACKDATED_S);
    let valid_for_s = match i64::try_from(request.valid_for_s) {
        Ok(seconds) if (1..=max).contains(&seconds) => seconds,
        Ok(_) | Err(_) => return Err(IssueError::ValidFor { max }),
    };
    let approved = clock::now_whole_ms();
    let command_id = Uuid::new_v4().to_string();
    let nonce = random_text::<16>()?;
    let not_before = approved.saturating_sub(BACKDATED_S.saturating_mul(SECOND_MS));
    let not_after = approved.saturating_add(valid_for_s.saturating_mul(SECOND_MS));
    let payload = json!({
        "type": COMMAND_TYPE,
        "command_id": command_id,
        "tenant_id": cluster.tenant_id,
        "target": { "kind": "cluster", "id": cluster.cluster_id },
        "operation": request.operation,
        "arguments": request.arguments,
        "nonce": nonce,
        "sequence": base.next_sequence,
        "not_before": clock::text(not_before),
        "not_after": clock::text(not_after),
    });
    let max_validity_s = base.max_validity_s.unsigned_abs();
    let (envelope, operation) = signer.command(&payload, max_validity_s)?;
    let name = operation.name().map(ComponentName::as_str);
    let command = NewCommand {
        command_id: &command_id,
        sequence: base.next_sequence,
        nonce: &nonce,
        operation: request.operation,
        name,
        envelope: &envelope,
        created_at: approved,
        created_by: request.actor,
        not_before,
        not_after,
    };
    commands::insert(&mut change, cluster, &command).await?;
    let what: Vec<&str> = iter::once(request.operation).chain(name).collect();
    let entry = Entry {
        tenant_id: Some(&cluster.tenant_id),
        cluster_id: Some(&cluster.cluster_id),
        actor: request.actor,
        action: "command.queue",
        subject: &command_id,
        detail: &what.join(" "),
    };
    audit::done(&mut change, entry).await?;
    commit(change).await?;
    Ok(command_id)
}

/// An identity as it leaves the manager, once.
pub(crate) struct IssuedIdentity {
    /// The signed configuration.
    pub(crate) config: String,
    /// The certificate and its key.
    pub(crate) certificate: ClientCertificate,
    /// The managed namespace.
    pub(crate) namespace: String,
}

/// Issues an identity; the previous one is revoked by it. `settings` are the members of the
/// configuration that the operator gave: `gateway_url` and the numbers.
pub(crate) async fn identity(
    store: &Store,
    signer: &Signer,
    authority: &Authority,
    cluster: &ClusterKey,
    settings: Map<String, Value>,
    actor: &str,
) -> Result<IssuedIdentity, IssueError> {
    let identity_id = Uuid::new_v4().to_string();
    let certificate = authority.client(&identity_id)?;
    let mut change = store.change(cluster).await?;
    let missing = || IssueError::NoCluster(cluster.cluster_id.clone());
    let base = clusters::base(&mut change, cluster).await?.ok_or_else(missing)?;
    // Never older than the last one, which the agent would prefer, though the clock was set back.
    let last = identities::last_issued(&mut change, cluster).await?;
    let issued_at = clock::now_whole_ms().max(last.unwrap_or(0));
    let max_validity_s =
        settings.get("max_validity_s").and_then(Value::as_i64).unwrap_or(DEFAULT_MAX_VALIDITY_S);
    if max_validity_s <= BACKDATED_S {
        let why = format!("max_validity_s: expected more than {BACKDATED_S}, or no command fits into it");
        return Err(Unsignable::Refused(why).into());
    }
    let mut payload = json!({
        "type": config::CONFIGURATION_TYPE,
        "tenant_id": cluster.tenant_id,
        "cluster_id": cluster.cluster_id,
        "identity_id": identity_id,
        "namespace": base.namespace,
        "lease_duration_s": config::LEASE_DEFAULT,
        "offline_after_s": config::OFFLINE_DEFAULT,
        "poll_wait_s": config::POLL_DEFAULT,
        "report_interval_s": config::REPORT_DEFAULT,
        "max_validity_s": DEFAULT_MAX_VALIDITY_S,
        "issued_at": clock::text(issued_at),
    });
    if let Some(members) = payload.as_object_mut() {
        members.extend(settings);
    }
    let config = signer.configuration(&payload)?;
    let issued = Issued {
        identity_id: &identity_id,
        fingerprint: &certificate.fingerprint,
        issued_at,
        not_after: certificate.not_after_ms,
        max_validity_s,
        gateway_url: payload.get("gateway_url").and_then(Value::as_str).unwrap_or_default(),
    };
    let revoked = identities::replace(&mut change, cluster, &issued).await?;
    let entry = Entry {
        tenant_id: Some(&cluster.tenant_id),
        cluster_id: Some(&cluster.cluster_id),
        actor,
        action: "identity.issue",
        subject: &identity_id,
        detail: if revoked == 0 { "" } else { "the previous identity is revoked" },
    };
    audit::done(&mut change, entry).await?;
    commit(change).await?;
    Ok(IssuedIdentity { config, certificate, namespace: base.namespace })
}
