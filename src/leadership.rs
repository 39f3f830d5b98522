//! The permission to act: a deadline on the monotonic clock, set by the lease thread, read before every
//! write by everybody else. It is never a message, since a queue could delay it.

use crate::rules::election::Tenure;
use crate::threads::LONGEST_WAIT;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Default)]
struct Grant {
    tenure: Option<Arc<Tenure>>,
    until: Duration,
    closing: bool,
    /// The Lease is ours, or may be as soon as a take that was sent is answered.
    holds: bool,
    leader_stopped: bool,
    resigned_until: Duration,
    /// What was resigned from, until the lease thread has seen it: a renewal that was under way does not
    /// bring it back.
    resigned: Option<Arc<Tenure>>,
    /// Who was seen to hold the Lease.
    holder: String,
}

impl Grant {
    /// There is something for the lease thread to do, whatever it waits for.
    fn roused(&self) -> bool {
        self.closing || self.resigned.is_some()
    }
}

/// The permission, shared by the threads of one process.
#[derive(Default)]
pub struct Permit {
    grant: Mutex<Grant>,
    /// Told of each renewal too.
    changed: Condvar,
    /// Told of an end alone: of the process, of the leader thread, of what was resigned from.
    ending: Condvar,
}

impl Permit {
    fn lock(&self) -> MutexGuard<'_, Grant> {
        self.grant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `tenure` act until `until` (monotonic).
    pub fn grant(&self, tenure: &Arc<Tenure>, until: Duration) {
        let mut grant = self.lock();
        if !grant.closing && grant.resigned.as_ref() != Some(tenure) {
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
        grant.resigned = grant.tenure.take();
        grant.resigned_until = until;
        self.told_of_an_end();
    }

    /// The lease thread: what was resigned from since it asked last. It is to be released, however long ago
    /// that was: nothing is granted for it any more.
    #[must_use]
    pub fn take_resigned(&self) -> Option<Arc<Tenure>> {
        self.lock().resigned.take()
    }

    /// How long at `now` the Lease is still to be left to others.
    #[must_use]
    pub fn resigned_for(&self, now: Duration) -> Option<Duration> {
        self.lock().resigned_until.checked_sub(now).filter(|rest| !rest.is_zero())
    }

    /// The lease thread: this is who holds the Lease, as it was read or written last; empty for nobody.
    pub fn saw_holder(&self, holder: &str) {
        holder.clone_into(&mut self.lock().holder);
    }

    /// Who was last seen to hold the Lease; `None` for nobody.
    #[must_use]
    pub fn holder(&self) -> Option<String> {
        let holder = self.lock().holder.clone();
        (!holder.is_empty()).then_some(holder)
    }

    /// Takes the permission away for good: the process is ending.
    pub fn close(&self) {
        let mut grant = self.lock();
        grant.closing = true;
        grant.tenure = None;
        self.told_of_an_end();
    }

    fn told_of_an_end(&self) {
        self.changed.notify_all();
        self.ending.notify_all();
    }

    /// About to take the Lease; false where the process is ending, and nobody would release it.
    #[must_use]
    pub fn begin_take(&self) -> bool {
        let mut grant = self.lock();
        grant.holds = !grant.closing;
        grant.holds
    }

    /// The Lease is not ours, or was released.
    pub fn let_go(&self) {
        self.lock().holds = false;
    }

    /// Whether there is a Lease to be released.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.lock().holds
    }

    /// The leader thread has ended: no write is under way, and the Lease may be released.
    pub fn leader_has_stopped(&self) {
        self.lock().leader_stopped = true;
        self.ending.notify_all();
    }

    /// Waits until the leader thread has ended, at most `limit`; whether it has.
    #[must_use]
    pub fn await_leader_stopped(&self, limit: Duration) -> bool {
        let grant = self.lock();
        let waited = self.ending.wait_timeout_while(grant, limit, |grant| !grant.leader_stopped);
        waited.unwrap_or_else(PoisonError::into_inner).0.leader_stopped
    }

    /// The lease thread: waits for `limit`, or until the process is ending or the leader resigns; whether it
    /// is ending.
    #[must_use]
    pub fn await_resigning(&self, limit: Duration) -> bool {
        self.await_end_of(limit, |grant| !grant.roused())
    }

    /// Whether [`Permit::await_resigning`] would return at once. For the simulation, which waits by other means.
    #[must_use]
    pub fn roused(&self) -> bool {
        self.lock().roused()
    }

    /// Waits for `limit`, or until the process is ending; whether it is.
    #[must_use]
    pub fn await_closing(&self, limit: Duration) -> bool {
        self.await_end_of(limit, |grant| !grant.closing)
    }

    fn await_end_of(&self, limit: Duration, idle: impl Fn(&Grant) -> bool) -> bool {
        let waited = self.ending.wait_timeout_while(self.lock(), limit, |grant| idle(grant));
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

    /// Waits for a change, at most `limit`, and no longer than a thread may be silent.
    pub fn wait(&self, limit: Duration) {
        let grant = self.lock();
        if !grant.closing {
            // Woken early or late makes no difference: every caller looks again.
            drop(self.changed.wait_timeout(grant, limit.min(LONGEST_WAIT)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenure(transitions: u32) -> Arc<Tenure> {
        Arc::new(Tenure {
            holder: "a_1".into(),
            transitions,
            lease_uid: "u".into(),
            first_start: false,
            since: Duration::ZERO,
        })
    }

    #[test]
    fn a_renewal_does_not_bring_back_what_was_resigned_from() {
        let (permit, s) = (Permit::default(), Duration::from_secs);
        permit.grant(&tenure(1), s(10));
        permit.resign(s(20));
        permit.grant(&tenure(1), s(15));
        assert_eq!(permit.tenure(s(6)), None, "its renewal was under way");
        assert!(!permit.await_resigning(s(3_600)), "the lease thread is woken");
        let (began, pause) = (std::time::Instant::now(), Duration::from_millis(50));
        assert!(!permit.await_closing(pause));
        assert!(began.elapsed() >= pause, "nobody else is");
        assert_eq!(permit.take_resigned(), Some(tenure(1)));
        assert_eq!(permit.take_resigned(), None);
        permit.grant(&tenure(2), s(40));
        assert_eq!(permit.tenure(s(30)), Some(tenure(2)), "a later holding");
    }
}
