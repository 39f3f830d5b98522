//! What agents are refused, in the audit.

use super::error::GatewayError;
use crate::app::Shared;
use crate::store::audit::Entry;
use crate::store::bounded;
use crate::store::identities::Identity;

/// Audits a call with a revoked identity.
pub(super) async fn refuse_revoked(app: &Shared, identity: &Identity) -> GatewayError {
    audit_refused(app, identity, "gateway.call", &identity.identity_id, "revoked identity").await;
    GatewayError::IdentityRevoked
}

/// Audits a call with a certificate that is nobody's.
pub(super) async fn refuse_unknown(app: &Shared, fingerprint: &str) -> GatewayError {
    let actor = format!("certificate:{fingerprint}");
    let (action, detail) = ("gateway.call", "unknown certificate");
    audit(app, Entry { tenant_id: None, cluster_id: None, actor: &actor, action, subject: "", detail }).await;
    GatewayError::IdentityRevoked
}

/// Audits what an agent was refused.
pub(super) async fn audit_refused(
    app: &Shared,
    identity: &Identity,
    action: &str,
    subject: &str,
    detail: &str,
) {
    let actor = identity.actor();
    let entry = Entry {
        tenant_id: Some(&identity.tenant_id),
        cluster_id: Some(&identity.cluster_id),
        actor: &actor,
        action,
        subject,
        detail,
    };
    audit(app, entry).await;
}

/// Where the database fails the refusal stands all the same.
async fn audit(app: &Shared, entry: Entry<'_>) {
    if let Err(error) = bounded(app.store.audit_refused(entry)).await {
        tracing::error!(%error, "a refusal was not audited");
    }
}
