//! What was delivered on a connection. Where it ends before the receipts came, who took them is gone, or
//! never had them: they are due at once, for whoever asks next. CONTRACT section 4.
//!
//! An agent that lives ends the connection of its polls within 15 s of a delivery only when it takes
//! another identity, when it closes, or when the answer did not come through; a leader that is longer busy
//! with a batch lets the connection grow old, and what was delivered on it is due by then. Where such an
//! agent still executes a command, the second delivery of it is dropped without a word, and where it
//! has executed it, answered from its record: so at worst this costs an answer.

use super::Shared;
use crate::process::clock::now_ms;
use crate::store::delivery::{AGAIN_AFTER_MS, Sent};
use crate::store::{ClusterKey, bounded};
use std::mem;
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;

/// The deliveries of one connection, which ends when this is dropped.
pub(crate) struct Delivered {
    app: Shared,
    cluster: ClusterKey,
    sent: Mutex<Vec<Sent>>,
}

impl Delivered {
    /// None yet.
    pub(crate) fn new(app: &Shared, cluster: &ClusterKey) -> Self {
        Self { app: app.clone(), cluster: cluster.clone(), sent: Mutex::default() }
    }

    /// One more; those that are due again anyway are forgotten.
    pub(crate) fn note(&self, sent: Sent) {
        let mut all = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|former| former.at > sent.at.saturating_sub(AGAIN_AFTER_MS));
        all.push(sent);
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        let mut sent = mem::take(self.sent.get_mut().unwrap_or_else(PoisonError::into_inner));
        let now = now_ms();
        sent.retain(|sent| sent.at > now.saturating_sub(AGAIN_AFTER_MS));
        // At our own end it is we who close: the next process knows what a former one delivered.
        if sent.is_empty() || self.app.stop.is_asked_for() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(make_due(self.app.clone(), self.cluster.clone(), sent));
        }
    }
}

/// Makes due what was not answered. Where this fails it is due after 15 s all the same.
async fn make_due(app: Shared, cluster: ClusterKey, sent: Vec<Sent>) {
    match bounded(app.store.make_due(&cluster, app.instance.id(), &sent)).await {
        Ok(0) => {}
        Ok(commands) => {
            let ClusterKey { tenant_id, cluster_id } = &cluster;
            tracing::info!(commands, tenant_id, cluster_id, "a connection ended before the receipts came");
            app.wake.notify(&cluster);
        }
        Err(error) => tracing::warn!(%error, "what was delivered on a connection that ended is not due yet"),
    }
}
