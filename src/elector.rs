//! The lease thread: takes, renews and releases the Lease as `rules::election` decides, over a connection of
//! its own, and sets the permission to act.
//!
//! A permission follows from an answered take or renewal alone, and counts from when that was sent. Nothing is written
//! to the Lease after its release.

mod following;
#[cfg(test)]
mod tests;

use crate::clock::Clock;
use crate::event::Event;
use crate::kube::lease::{self, Holding};
use crate::kube::{Kube, KubeError, Object};
use crate::leadership::Permit;
use crate::rules::election::{Action, Candidate, Hold, LeaseRecord, Observer, Tenure, micro_time, third};
use crate::rules::said::Said;
use crate::say::say;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// How often a follower reads a Lease that it cannot watch: a release is seen within this.
const LOOK: Duration = Duration::from_millis(1_500);
/// Into how many pauses a term is cut after calls that failed: several tries fit into what is left of it.
const RETRIES: u32 = 15;
/// How long the release waits for the leader thread to end.
pub const RELEASE_WAIT: Duration = Duration::from_secs(4);

/// What is held, and the Lease as our last write left it.
struct Held {
    hold: Hold,
    acquire_time: String,
    lease: Object,
}

/// The lease thread's state.
pub struct Elector {
    kube: Kube,
    clock: Arc<dyn Clock>,
    permit: Arc<Permit>,
    leader: SyncSender<Event>,
    me: Candidate,
    observer: Observer,
    held: Option<Held>,
    /// What went wrong of late.
    said: Said,
}

impl Elector {
    /// An elector that has seen nothing yet; `holder` is our `holderIdentity`.
    #[must_use]
    pub fn new(
        kube: Kube,
        clock: Arc<dyn Clock>,
        permit: Arc<Permit>,
        leader: SyncSender<Event>,
        holder: String,
        duration: Duration,
    ) -> Self {
        let me = Candidate { holder, duration };
        Self {
            kube,
            clock,
            permit,
            leader,
            me,
            observer: Observer::default(),
            held: None,
            said: Said::default(),
        }
    }

    /// Our `holderIdentity`.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.me.holder
    }

    /// The thread: until the process is ending, then the release.
    /// The simulation's is in `tests/sim/src/loops.rs`.
    pub fn run(mut self) {
        loop {
            let pause = self.step();
            if self.permit.await_resigning(pause) {
                break;
            }
        }
        let leader_stopped = self.permit.await_leader_stopped(RELEASE_WAIT);
        self.end(leader_stopped);
    }

    /// The ending: releases what is held, unless a write of the leader thread may still be under way.
    pub fn end(&mut self, leader_stopped: bool) {
        if !leader_stopped {
            log::warn!("lease not released: a write may still be under way");
        } else if let Some(held) = self.held.take() {
            self.release(&held);
        }
    }

    /// Does what is due about the Lease; how long until more is.
    pub fn step(&mut self) -> Duration {
        let resigned = self.permit.take_resigned();
        let rest = self.permit.resigned_for(self.clock.monotonic());
        if let Some(held) =
            self.held.take_if(|held| rest.is_some() || resigned.as_ref() == Some(&held.hold.tenure))
        {
            log::warn!("lease left to others for_s={}", rest.unwrap_or_default().as_secs());
            self.release(&held);
            self.permit.let_go();
            return self.look();
        }
        if let Some(rest) = rest {
            return rest.min(self.look());
        }
        match self.held.take() {
            Some(held) => self.lead(held),
            None => self.follow(),
        }
    }

    fn retry(&self) -> Duration {
        self.me.duration.checked_div(RETRIES).unwrap_or(LOOK)
    }

    fn look(&self) -> Duration {
        LOOK.min(third(self.me.duration))
    }

    fn lead(&mut self, held: Held) -> Duration {
        let now = self.clock.monotonic();
        match self.observer.decide(&self.me, Some(&held.hold), true, now) {
            Action::Renew => self.renew(held),
            Action::Wait(pause) => {
                self.held = Some(held);
                pause
            }
            Action::StepDown | Action::Create | Action::Take { .. } => {
                log::warn!("lease lost transitions={}", held.hold.tenure.transitions);
                self.permit.revoke();
                self.permit.let_go();
                self.tell_leader();
                Duration::ZERO
            }
        }
    }

    fn renew(&mut self, mut held: Held) -> Duration {
        let sent = self.clock.monotonic();
        let renew_time = micro_time(self.clock.wall());
        let holding = self.holding(held.hold.tenure.transitions, &held.acquire_time, &renew_time);
        match lease::replace(&self.kube, &held.lease, &holding) {
            Ok(lease) => {
                self.observe(Some(&lease));
                held.lease = lease;
                held.hold.renewed = sent;
                self.permit.grant(&held.hold.tenure, held.hold.deadline(self.me.duration));
                self.held = Some(held);
                Duration::ZERO
            }
            Err(error) => {
                self.trouble("lease not renewed", &error);
                // Somebody else's label on the Lease conflicts too: what it is, a reading tells.
                if let (KubeError::Conflict(_) | KubeError::NotFound(_), Ok(found)) =
                    (&error, lease::get(&self.kube))
                {
                    self.observe(found.as_ref());
                    if let Some(lease) = found {
                        held.lease = lease;
                    }
                }
                self.held = Some(held);
                self.retry()
            }
        }
    }

    fn take(&mut self, read: Option<&Object>, transitions: u32, first_start: bool) -> Duration {
        if !self.permit.begin_take() {
            return Duration::ZERO;
        }
        let sent = self.clock.monotonic();
        let time = micro_time(self.clock.wall());
        self.observer.attempt(transitions);
        let holding = self.holding(transitions, &time, &time);
        let answer = match read {
            Some(lease) => lease::replace(&self.kube, lease, &holding),
            None => lease::create(&self.kube, &holding),
        };
        match answer {
            Ok(lease) => {
                self.observe(Some(&lease));
                self.won(sent, transitions, time, lease, first_start);
                Duration::ZERO
            }
            Err(error) => {
                self.permit.let_go();
                self.trouble("lease not taken", &error);
                // Where there is no such namespace either, a Lease is not found however often it is made.
                match error {
                    KubeError::Refused { .. } | KubeError::NotFound(_) => self.look(),
                    KubeError::Conflict(_)
                    | KubeError::Gone(_)
                    | KubeError::Unavailable { .. }
                    | KubeError::Unanswered { .. } => self.retry(),
                }
            }
        }
    }

    /// Says what does not work: once a minute.
    fn trouble(&mut self, what: &str, error: &KubeError) {
        // A conflict says that another was faster, which is nothing bad.
        let faster = matches!(error, KubeError::Conflict(_));
        let level = if faster { log::Level::Info } else { log::Level::Warn };
        self.say(level, &format!("{what} error={:?}", error.to_string()));
    }

    fn say(&mut self, level: log::Level, text: &str) {
        say(&mut self.said, self.clock.monotonic(), level, text, &text);
    }

    fn won(&mut self, sent: Duration, transitions: u32, time: String, lease: Object, first_start: bool) {
        let tenure = Arc::new(Tenure {
            holder: self.me.holder.clone(),
            transitions,
            lease_uid: lease.uid().unwrap_or("").to_owned(),
            first_start,
            since: self.clock.monotonic(),
        });
        let hold = Hold { tenure, renewed: sent };
        log::info!("lease taken holder={} transitions={transitions}", self.me.holder);
        self.permit.grant(&hold.tenure, hold.deadline(self.me.duration));
        self.held = Some(Held { hold, acquire_time: time, lease });
        self.tell_leader();
    }

    fn release(&self, held: &Held) {
        let now = micro_time(self.clock.wall());
        let mut holding = self.holding(held.hold.tenure.transitions, &held.acquire_time, &now);
        holding.holder = "";
        self.permit.saw_holder("");
        match lease::replace(&self.kube, &held.lease, &holding) {
            Ok(_) => log::info!("lease released transitions={}", held.hold.tenure.transitions),
            Err(error) => log::warn!("lease not released error={:?}", error.to_string()),
        }
    }

    fn holding<'a>(&'a self, transitions: u32, acquire_time: &'a str, renew_time: &'a str) -> Holding<'a> {
        Holding {
            holder: &self.me.holder,
            duration_s: self.me.duration.as_secs(),
            transitions,
            acquire_time,
            renew_time,
        }
    }

    fn observe(&mut self, lease: Option<&Object>) {
        let record = lease.map(|lease| LeaseRecord::read(&lease.0));
        self.permit.saw_holder(record.as_ref().map_or("", |record| &record.holder));
        self.observer.observe(record, self.clock.monotonic());
    }

    fn tell_leader(&self) {
        // A full channel means that the leader thread is awake, and it looks at the permit every time.
        drop(self.leader.try_send(Event::Leadership));
    }
}
