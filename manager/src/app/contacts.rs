//! When each agent was last heard: kept in memory, and written for all at once every other second,
//! so that thousands of polls are not as many writes. A process that is killed loses the last two.

use crate::process::clock::now_ms;
use crate::store::{ClusterKey, Store, bounded};
use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often they are written.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// What is not written yet: at most one time for each registered cluster.
#[derive(Default)]
pub(crate) struct Contacts(Mutex<HashMap<ClusterKey, i64>>);

impl Contacts {
    /// An agent was heard.
    pub(crate) fn note(&self, key: &ClusterKey) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match noted.get_mut(key) {
            Some(at) => *at = now_ms(),
            None => drop(noted.insert(key.clone(), now_ms())),
        }
    }

    fn take(&self) -> HashMap<ClusterKey, i64> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was not written is tried again, unless the agent was heard since.
    fn put_back(&self, contacts: Vec<(ClusterKey, i64)>) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, at) in contacts {
            noted.entry(key).or_insert(at);
        }
    }

    /// Writes what was noted, for ever.
    pub(crate) async fn keep(&self, store: &Store) {
        loop {
            tokio::time::sleep(WRITE_EVERY).await;
            self.write(store).await;
        }
    }

    /// Writes what was noted.
    pub(crate) async fn write(&self, store: &Store) {
        let mut contacts: Vec<(ClusterKey, i64)> = self.take().into_iter().collect();
        if contacts.is_empty() {
            return;
        }
        // In one order at all gateways: none waits for another that waits for it.
        contacts.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        if let Err(error) = bounded(store.write_contacts(&contacts)).await {
            tracing::debug!(%error, "contacts were not written");
            self.put_back(contacts);
        }
    }
}
