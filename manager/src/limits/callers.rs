//! How much one caller may do in this process: what is open at once, and how many calls a minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A caller may make the calls of half a minute at once; afterwards they come evenly.
const BURST: Duration = Duration::from_secs(30);

/// Callers that are forgotten only once there are more: looking through them costs time.
const KEPT: usize = 1024;

/// Most connections that one token keeps, and the tokens of one tenant: others end with their answer.
const MAX_KEPT: [usize; 2] = [64, 128];

/// Most kubeconfigs that are looked at at once, those of one tenant and all: what their servers answer is held in memory.
const MAX_CHECKS: [usize; 2] = [2, 16];

/// What each caller has open, and how far it is ahead of its rate.
pub(crate) struct Limits {
    most: usize,
    /// Between two calls, where they come evenly; none where there is no rate.
    interval: Option<Duration>,
    callers: Mutex<Callers>,
}

#[derive(Default)]
struct Callers {
    of: HashMap<Arc<str>, Caller>,
    /// How many there may be before those that are done are forgotten.
    most: usize,
}

struct Caller {
    open: usize,
    /// When all that was called would have been, at the rate.
    paid_at: Instant,
}

/// One thing that is open, until it is dropped.
pub(crate) struct Place {
    limits: Arc<Limits>,
    caller: Arc<str>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Busy {
    /// The caller has too much open.
    Open,
    /// The caller calls too often: the next call is due after this.
    Rate(Duration),
}

impl Limits {
    /// At most so many for each caller.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Self::with_rate(most, 0)
    }

    /// At most so many open for each caller, and so many calls a minute, if not 0.
    pub(crate) fn with_rate(most: usize, a_minute: u32) -> Arc<Self> {
        let interval = Duration::from_mins(1).checked_div(a_minute);
        Arc::new(Self { most, interval, callers: Mutex::default() })
    }

    /// A place for one more.
    pub(crate) fn enter(self: &Arc<Self>, caller: &Arc<str>) -> Result<Place, Busy> {
        self.enter_at(caller, Instant::now())
    }

    fn enter_at(self: &Arc<Self>, caller: &Arc<str>, now: Instant) -> Result<Place, Busy> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.forget(now);
        let known = callers.of.entry(Arc::clone(caller)).or_insert(Caller { open: 0, paid_at: now });
        if known.open >= self.most {
            return Err(Busy::Open);
        }
        if let Some(interval) = self.interval {
            let paid_at = known.paid_at.max(now) + interval;
            let ahead = paid_at.saturating_duration_since(now);
            if ahead > BURST.max(interval) {
                return Err(Busy::Rate(ahead.saturating_sub(BURST)));
            }
            known.paid_at = paid_at;
        }
        known.open = known.open.saturating_add(1);
        Ok(Place { limits: Arc::clone(self), caller: Arc::clone(caller) })
    }
}

impl Callers {
    /// Forgets those that have nothing open and are not ahead, where there are many.
    fn forget(&mut self, now: Instant) {
        if self.of.len() > self.most.max(KEPT) {
            self.of.retain(|_, caller| caller.open > 0 || caller.paid_at > now);
            self.most = self.of.len().saturating_mul(2);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut callers = self.limits.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = callers.of.get_mut(&self.caller) {
            caller.open = caller.open.saturating_sub(1);
        }
    }
}

/// The connections that operators keep.
pub(crate) struct Kept {
    of_token: Arc<Limits>,
    of_tenant: Arc<Limits>,
}

impl Kept {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { of_token: Limits::new(MAX_KEPT[0]), of_tenant: Limits::new(MAX_KEPT[1]) }
    }

    /// A place for a connection.
    pub(crate) fn enter(&self, token_id: &str, tenant_id: &str) -> Result<[Place; 2], Busy> {
        let of_token = self.of_token.enter(&token_id.into())?;
        Ok([of_token, self.of_tenant.enter(&tenant_id.into())?])
    }
}

/// The kubeconfigs that are being looked at.
pub(crate) struct Checks {
    of_tenant: Arc<Limits>,
    of_all: Arc<Limits>,
}

impl Checks {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { of_tenant: Limits::new(MAX_CHECKS[0]), of_all: Limits::new(MAX_CHECKS[1]) }
    }

    /// A place for one of a tenant's.
    pub(crate) fn enter(&self, tenant_id: &str) -> Result<[Place; 2], Busy> {
        let of_tenant = self.of_tenant.enter(&tenant_id.into())?;
        Ok([of_tenant, self.of_all.enter(&"all".into())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_places_of_its_own_and_gets_them_back() {
        let (limits, a, b) = (Limits::new(2), "a".into(), "b".into());
        let held = [limits.enter(&a), limits.enter(&a), limits.enter(&b)];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(limits.enter(&a).err(), Some(Busy::Open));
        drop(held);
        assert!(limits.enter(&a).is_ok());
    }

    #[test]
    fn a_tenant_has_two_checks_and_leaves_room_for_others() {
        let checks = Checks::new();
        let mut held: Vec<_> =
            (0..16).map(|number| checks.enter(&format!("tenant-{}", number / 2))).collect();
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(checks.enter("another").err(), Some(Busy::Open));
        held.truncate(2);
        assert!(checks.enter("tenant-0").is_err() && checks.enter("another").is_ok());
    }

    #[test]
    fn half_a_minutes_calls_come_at_once_and_then_one_each_interval() {
        let (limits, a, b) = (Limits::with_rate(9, 120), "a".into(), "b".into());
        let start = Instant::now();
        let taken = (0..100).filter(|_| limits.enter_at(&a, start).is_ok()).count();
        assert_eq!(taken, 60);
        assert_eq!(limits.enter_at(&a, start).err(), Some(Busy::Rate(Duration::from_millis(500))));
        assert!(limits.enter_at(&b, start).is_ok());
        let later = start + Duration::from_millis(500);
        assert!(limits.enter_at(&a, later).is_ok() && limits.enter_at(&a, later).is_err());
        let much_later = start + Duration::from_mins(10);
        let taken = (0..100).filter(|_| limits.enter_at(&a, much_later).is_ok()).count();
        assert_eq!(taken, 60);
    }

    #[test]
    fn callers_that_are_done_are_forgotten() {
        let limits = Limits::with_rate(9, 600);
        let start = Instant::now();
        let held = limits.enter_at(&"held".into(), start);
        for number in 0..KEPT {
            drop(limits.enter_at(&number.to_string().into(), start));
        }
        drop(limits.enter_at(&"later".into(), start + Duration::from_mins(1)));
        let callers = limits.callers.lock().expect("callers");
        assert_eq!(callers.of.len(), 2);
        drop(callers);
        drop(held);
    }
}
