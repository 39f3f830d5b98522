//! The permission to act: a deadline on the monotonic clock, set by the lease thread, read before every
//! write by everybody else. It is never a message, since a queue could delay it.

use crate::rules::election::LeaseRecord;
use crate::rules::kubernetes::Object;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One uninterrupted holding of the Lease. Two tenures never share `transitions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// Our `holderIdentity`.
    pub holder: String,
    /// `spec.leaseTransitions` as we wrote it.
    pub transitions: u32,
    /// The Lease's uid: a Lease that was deleted and made anew is another.
    pub lease_uid: String,
    /// There was neither Lease nor state: the first start in this cluster.
    pub first_start: bool,
    /// When it began, on the monotonic clock.
    pub since: Duration,
}

impl Tenure {
    /// Whether `lease` is still ours, unchanged but for our renewals.
    #[must_use]
    pub fn holds(&self, lease: &Object) -> bool {
        let record = LeaseRecord::read(&lease.0);
        record.holder == self.holder && record.transitions == self.transitions && record.uid == self.lease_uid
    }
}

#[derive(Default)]
struct Grant {
    tenure: Option<Arc<Tenure>>,
    until: Duration,
    closing: bool,
    leader_stopped: bool,
    resigned_until: Duration,
}

/// The permission, shared by the threads of one process.
#[derive(Default)]
pub struct Permit {
    grant: Mutex<Grant>,
    changed: Condvar,
}

impl Permit {
    fn lock(&self) -> MutexGuard<'_, Grant> {
        self.grant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `tenure` act until `until` (monotonic), unless the process is ending or has resigned: a renewal that
    /// was under way meanwhile gives nothing back.
    pub fn grant(&self, tenure: &Arc<Tenure>, until: Duration, now: Duration) {
        let mut grant = self.lock();
        if !grant.closing && grant.resigned_until <= now {
            grant.tenure = Some(Arc::clone(tenure));
            grant.until = until;
        }
        self.changed.notify_all();
    }

    /// Takes the permission away.
    pub fn revoke(&self) {
        self.lock().tenure = None;
        self.changed.notify_all();
    }

    /// Takes the permission away and asks the lease thread to leave the Lease to others until `until`.
    pub fn resign(&self, until: Duration) {
        let mut grant = self.lock();
        grant.tenure = None;
        grant.resigned_until = until;
        self.changed.notify_all();
    }

    /// How long at `now` the Lease is still to be left to others.
    #[must_use]
    pub fn resigned_for(&self, now: Duration) -> Option<Duration> {
        self.lock().resigned_until.checked_sub(now).filter(|rest| !rest.is_zero())
    }

    /// Takes the permission away for good: the process is ending.
    pub fn close(&self) {
        let mut grant = self.lock();
        grant.closing = true;
        grant.tenure = None;
        self.changed.notify_all();
    }

    /// The leader thread has ended: no write is under way, and the Lease may be released.
    pub fn leader_has_stopped(&self) {
        self.lock().leader_stopped = true;
        self.changed.notify_all();
    }

    /// Waits until the leader thread has ended, at most `limit`; whether it has.
    #[must_use]
    pub fn await_leader_stopped(&self, limit: Duration) -> bool {
        let grant = self.lock();
        let waited = self.changed.wait_timeout_while(grant, limit, |grant| !grant.leader_stopped);
        waited.unwrap_or_else(PoisonError::into_inner).0.leader_stopped
    }

    /// Waits for `limit`, or until the process is ending; whether it is.
    #[must_use]
    pub fn await_closing(&self, limit: Duration) -> bool {
        let grant = self.lock();
        let waited = self.changed.wait_timeout_while(grant, limit, |grant| !grant.closing);
        waited.unwrap_or_else(PoisonError::into_inner).0.closing
    }

    /// Whether the process is ending.
    #[must_use]
    pub fn closing(&self) -> bool {
        self.lock().closing
    }

    /// The tenure that may act at `now`, if any.
    #[must_use]
    pub fn tenure(&self, now: Duration) -> Option<Arc<Tenure>> {
        let grant = self.lock();
        grant.tenure.as_ref().filter(|_| now < grant.until).map(Arc::clone)
    }

    /// Waits for a change, at most `limit`.
    pub fn wait(&self, limit: Duration) {
        let grant = self.lock();
        if !grant.closing {
            // Woken early or late makes no difference: every caller looks again.
            drop(self.changed.wait_timeout(grant, limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_that_was_under_way_gives_no_permission_back_after_a_resignation() {
        let s = Duration::from_secs;
        let tenure = Arc::new(Tenure {
            holder: "a_1".to_owned(),
            transitions: 0,
            lease_uid: "u".to_owned(),
            first_start: false,
            since: s(0),
        });
        let permit = Permit::default();
        permit.grant(&tenure, s(10), s(0));
        assert_eq!(permit.tenure(s(5)), Some(Arc::clone(&tenure)));
        permit.resign(s(65));
        permit.grant(&tenure, s(15), s(5));
        assert_eq!(permit.tenure(s(5)), None);
        permit.grant(&tenure, s(75), s(65));
        assert_eq!(permit.tenure(s(65)), Some(tenure));
    }
}
