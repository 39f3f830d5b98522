//! Who leads: the Lease. CONTRACT section 6.
//!
//! Times are moments on this process's monotonic clock. The times *in* a Lease are never trusted:
//! another's hold ends when its record has not changed before our eyes for a whole term, our own two
//! thirds of a term after the last renewal that succeeded was sent. This alone does not fence: what
//! a paused leader sends late is kept out by the preconditions of each write.

use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The longest term of another's record that is honoured, in seconds.
const MAX_FOREIGN_DURATION_S: u64 = 300;

/// The largest `leaseTransitions`: it is an int32 of the API.
const MAX_TRANSITIONS: u32 = 0x7fff_ffff;

/// What a Lease object says. What is absent or garbage is empty, zero or `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseRecord {
    /// `spec.holderIdentity`; empty where nobody holds it.
    pub holder: String,
    /// `spec.leaseDurationSeconds`.
    pub duration_s: Option<u64>,
    /// `spec.leaseTransitions`.
    pub transitions: u32,
    /// `spec.acquireTime`, to be compared only.
    pub acquire_time: String,
    /// `spec.renewTime`, to be compared only.
    pub renew_time: String,
    /// `metadata.resourceVersion`, to be compared only.
    pub resource_version: String,
    /// `metadata.uid`, to be compared only.
    pub uid: String,
}

impl LeaseRecord {
    /// Reads a Lease object of the API.
    #[must_use]
    pub fn read(lease: &Value) -> Self {
        let member = |part: &str, name: &str| lease.get(part)?.get(name);
        let text = |part, name| member(part, name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name| member("spec", name)?.as_u64();
        let transitions = number("leaseTransitions").and_then(|count| u32::try_from(count).ok());
        Self {
            holder: text("spec", "holderIdentity"),
            duration_s: number("leaseDurationSeconds"),
            transitions: transitions.unwrap_or(0).min(MAX_TRANSITIONS),
            acquire_time: text("spec", "acquireTime"),
            renew_time: text("spec", "renewTime"),
            resource_version: text("metadata", "resourceVersion"),
            uid: text("metadata", "uid"),
        }
    }

    /// How long its holder may go on without a change: the longer of our term and its own, which is
    /// bounded.
    fn term(&self, own: Duration) -> Duration {
        own.max(Duration::from_secs(self.duration_s.unwrap_or(0).min(MAX_FOREIGN_DURATION_S)))
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Our `holderIdentity`.
    pub holder: String,
    /// Our term, `lease_duration_s`.
    pub duration: Duration,
}

/// One uninterrupted holding of the Lease, as the answer to its take confirmed it. Two never share `transitions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenure {
    /// Our `holderIdentity`.
    pub holder: String,
    /// `spec.leaseTransitions` as we wrote it.
    pub transitions: u32,
    /// The Lease's uid: a Lease that was deleted and made anew is another.
    pub lease_uid: String,
    /// There was neither Lease nor state: the first start in this cluster.
    pub first_start: bool,
    /// When it began.
    pub since: Duration,
}

impl Tenure {
    /// Whether a Lease that was read is still ours, unchanged but for our renewals. To be asked before a write to a
    /// component.
    #[must_use]
    pub fn owns(&self, record: &LeaseRecord) -> bool {
        record.holder == self.holder && record.transitions == self.transitions && record.uid == self.lease_uid
    }
}

/// What is held, and since which renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// What was won.
    pub tenure: Arc<Tenure>,
    /// When the last take or renewal that succeeded was sent.
    pub renewed: Duration,
}

impl Hold {
    /// Until when we may act: two thirds of the term after the sending of the last renewal.
    #[must_use]
    pub fn deadline(&self, duration: Duration) -> Duration {
        self.renewed.saturating_add(third(duration).saturating_mul(2))
    }
}

/// What is to be done about the Lease now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// POST a new Lease, with ourselves as its holder.
    Create,
    /// PUT ourselves as the holder, a takeover, with this `leaseTransitions`.
    Take {
        /// The number to write.
        transitions: u32,
    },
    /// PUT a new renew time.
    Renew,
    /// Stop acting: the hold is another's, or too old. Then decide again, without a hold.
    StepDown,
    /// Look again after this time.
    Wait(Duration),
}

/// What this process has seen of the Lease, and when it last saw it change; by default, nothing yet.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    seen: Option<Sighting>,
    attempted: Option<u32>,
}

/// The Lease (or its absence) as it was seen, since when.
#[derive(Debug, Clone)]
struct Sighting {
    record: Option<LeaseRecord>,
    since: Duration,
}

impl Observer {
    /// Notes a Lease that was read, or that there is none. `now` is after the answer came: later is
    /// safer.
    pub fn observe(&mut self, record: Option<LeaseRecord>, now: Duration) {
        match &self.seen {
            Some(sighting) if sighting.record == record => {}
            Some(_) | None => self.seen = Some(Sighting { record, since: now }),
        }
    }

    /// Notes that a take with this `leaseTransitions` is about to be sent. Should it get no answer,
    /// the next take raises it again.
    pub fn attempt(&mut self, transitions: u32) {
        self.attempted = Some(transitions);
    }

    /// The Lease as it was seen last.
    #[must_use]
    pub fn record(&self) -> Option<&LeaseRecord> {
        self.seen.as_ref()?.record.as_ref()
    }

    /// Decides. `hold` is what a successful answer gave us; to read ourselves as the holder proves
    /// nothing. `state_exists` says whether there is a state in the cluster; say `true` where that
    /// is not known.
    pub fn decide(&self, me: &Candidate, hold: Option<&Hold>, state_exists: bool, now: Duration) -> Action {
        let Some(sighting) = &self.seen else { return Action::Wait(Duration::ZERO) };
        match (&sighting.record, hold) {
            (Some(record), Some(hold)) if hold.tenure.owns(record) => keep(me, hold, now),
            (Some(_) | None, Some(_)) => Action::StepDown,
            (Some(record), None) if record.holder.is_empty() || record.holder == me.holder => {
                self.take(record)
            }
            (Some(record), None) => match left(sighting.since, record.term(me.duration), now) {
                Some(rest) => Action::Wait(rest),
                None => self.take(record),
            },
            (None, None) if !state_exists => Action::Create,
            (None, None) => match left(sighting.since, me.duration, now) {
                Some(rest) => Action::Wait(rest),
                None => Action::Create,
            },
        }
    }

    fn take(&self, record: &LeaseRecord) -> Action {
        let highest = self.attempted.map_or(record.transitions, |last| last.max(record.transitions));
        let transitions = if highest >= MAX_TRANSITIONS { 0 } else { highest.saturating_add(1) };
        Action::Take { transitions }
    }
}

/// A hold that is ours: renewed every third of the term, given up after two.
fn keep(me: &Candidate, hold: &Hold, now: Duration) -> Action {
    if now >= hold.deadline(me.duration) {
        return Action::StepDown;
    }
    match left(hold.renewed, third(me.duration), now) {
        Some(rest) => Action::Wait(rest),
        None => Action::Renew,
    }
}

/// What is left of a time that began at a moment; `None` when it is over.
fn left(since: Duration, length: Duration, now: Duration) -> Option<Duration> {
    since.saturating_add(length).checked_sub(now).filter(|rest| !rest.is_zero())
}

/// A third of a term: how often it is renewed.
#[must_use]
pub fn third(duration: Duration) -> Duration {
    duration.checked_div(3).unwrap_or(Duration::ZERO)
}

/// A time as Lease objects carry it, a `MicroTime`: exactly six digits of fraction.
#[must_use]
pub fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}
