//! Wakes the long polls of a cluster. A hint: what a process misses here, its next look at the
//! database finds.

use crate::store::ClusterKey;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// Who waits for which cluster.
#[derive(Default)]
pub(crate) struct Wake(Mutex<HashMap<ClusterKey, watch::Sender<()>>>);

impl Wake {
    /// Waits for what happens to a cluster from now on.
    pub(crate) fn subscribe(&self, key: &ClusterKey) -> watch::Receiver<()> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, sender| sender.receiver_count() > 0);
        waiting.entry(key.clone()).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// Something happened to a cluster.
    pub(crate) fn notify(&self, key: &ClusterKey) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = waiting.get(key) {
            sender.send_replace(());
        }
    }
}
