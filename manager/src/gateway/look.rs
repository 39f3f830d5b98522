//! One look at the database every second for all polls that wait: another process may have queued
//! something, a delivery may not have been answered, an identity may have been revoked.

use crate::app::Shared;
use crate::store::{StoreError, bounded};
use std::collections::HashSet;
use std::time::Duration;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(1);

/// Looks, for ever. What fails is told once.
pub(crate) async fn look(app: Shared) {
    let (mut revoked, mut failing) = (HashSet::new(), false);
    loop {
        tokio::time::sleep(EVERY).await;
        if app.wake.is_idle() {
            continue;
        }
        match once(&app, &mut revoked).await {
            Ok(()) => failing = false,
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "the database does not answer: what others queued is not seen");
                }
                failing = true;
            }
        }
    }
}

/// Wakes whom something is due for, and once each whose identity was revoked.
async fn once(app: &Shared, told: &mut HashSet<String>) -> Result<(), StoreError> {
    for cluster in bounded(app.store.due_clusters()).await? {
        app.wake.notify(&cluster);
    }
    let mut revoked = HashSet::new();
    for identity in bounded(app.store.revoked_of_late()).await? {
        if !told.contains(&identity.identity_id) {
            app.wake.notify(&identity.cluster());
        }
        revoked.insert(identity.identity_id);
    }
    *told = revoked;
    Ok(())
}
