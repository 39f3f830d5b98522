//! What is known of the other side of a connection, and what it holds.

use super::delivered::Delivered;
use crate::limits::callers::Place;
use crate::limits::newcomers::Newcomer;
use crate::store::identities::Identity;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a first request waits until a connection ends, where there are as many as a port may have.
const SETTLE_LIMIT: Duration = Duration::from_secs(5);

/// Who is at the other end of a connection. Dropped when it ends.
pub(crate) struct Peer {
    /// SHA-256 of the client certificate, where there is one.
    pub(crate) fingerprint: Option<Arc<str>>,
    /// Whose certificate it is, once that was looked up. It never becomes another's; whether it is
    /// still good is another question.
    pub(crate) identity: OnceLock<Identity>,
    /// The commands that it was given, where it was given any.
    pub(crate) delivered: OnceLock<Delivered>,
    /// Until the first request.
    newcomer: Mutex<Option<Newcomer>>,
    slots: Arc<Semaphore>,
    /// From the first request on.
    slot: OnceLock<OwnedSemaphorePermit>,
    /// Among those of its operator, once that one was known and where there was a place.
    pub(crate) operator: OnceLock<[Place; 2]>,
}

impl Peer {
    /// One who has sent no request yet.
    pub(crate) fn new(fingerprint: Option<Arc<str>>, newcomer: Newcomer, slots: &Arc<Semaphore>) -> Self {
        Self {
            fingerprint,
            identity: OnceLock::new(),
            delivered: OnceLock::new(),
            newcomer: Mutex::new(Some(newcomer)),
            slots: Arc::clone(slots),
            slot: OnceLock::new(),
            operator: OnceLock::new(),
        }
    }

    /// Takes the connection for one of the port's, at its first request; until then it may be cut for
    /// others. False where there are as many as there may be.
    pub(crate) async fn settle(&self) -> bool {
        if self.slot.get().is_some() {
            return true;
        }
        let slot = tokio::time::timeout(SETTLE_LIMIT, Arc::clone(&self.slots).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else { return false };
        drop(self.newcomer.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.slot.set(slot).is_ok()
    }
}
