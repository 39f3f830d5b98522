//! Wakes the long polls of a cluster. A hint: what a process misses here, its next look at the
//! database finds.

use crate::store::ClusterKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Who waits for which cluster.
#[derive(Default)]
pub(crate) struct Wake(Mutex<HashMap<ClusterKey, Arc<Notify>>>);

/// One that waits, until it is dropped.
pub(crate) struct Waiting<'w> {
    wake: &'w Wake,
    key: &'w ClusterKey,
    /// Told what happens from the making of each `notified()` on.
    pub(crate) told: Arc<Notify>,
}

impl Wake {
    /// Waits for what happens to a cluster from now on.
    pub(crate) fn subscribe<'w>(&'w self, key: &'w ClusterKey) -> Waiting<'w> {
        let told = Arc::clone(self.waiting().entry(key.clone()).or_default());
        Waiting { wake: self, key, told }
    }

    /// Something happened to a cluster.
    pub(crate) fn notify(&self, key: &ClusterKey) {
        if let Some(told) = self.waiting().get(key) {
            told.notify_waiters();
        }
    }

    /// Whether nobody waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting().is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<ClusterKey, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.wake.waiting();
        // Ours, and the map's.
        if Arc::strong_count(&self.told) <= 2 {
            waiting.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_that_wait_for_a_cluster_are_told_and_nobody_is_left_behind() {
        let wake = Wake::default();
        let key = |cluster: &str| ClusterKey { tenant_id: "acme".into(), cluster_id: cluster.into() };
        let (prod, test) = (key("prod"), key("test"));
        let waiting = [wake.subscribe(&prod), wake.subscribe(&prod)];
        let other = wake.subscribe(&test);
        let told: Vec<_> = waiting.iter().map(|waiting| waiting.told.notified()).collect();
        wake.notify(&prod);
        for told in told {
            told.await;
        }
        let [first, second] = waiting;
        drop(first);
        let still = second.told.notified();
        wake.notify(&prod);
        still.await;
        drop((second, other));
        assert!(wake.is_idle());
    }
}
