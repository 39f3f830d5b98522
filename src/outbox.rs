//! Receipts on their way to the manager (CONTRACT section 4): in order, each with a pause of its own after a
//! failure, so that one that fails never holds up the others.
//!
//! The queue needs no size of its own: recorded receipts are bounded by the state that holds them, the rest
//! by `UNRECORDED_MOST`. The leader never waits for it.

#[cfg(test)]
mod tests;

use crate::clock::Clock;
use crate::event::Event;
use crate::gateway::{Gateway, GatewayError};
use crate::rules::backoff::Backoff;
use crate::rules::messages::{Reason, Receipt};
use crate::rules::said::Said;
use crate::say::say;
use crate::threads::{LONGEST_WAIT, Shared};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Most receipts that left no trace in the state and wait to be sent.
const UNRECORDED_MOST: usize = 1_000;
/// Fewer than this, and that one is not told is said anew.
const ROOM_AGAIN: usize = UNRECORDED_MOST / 2;
/// Pause after an answer that says that the receipt itself is at fault.
const HOURLY: Duration = Duration::from_hours(1);

struct Pending {
    id: u64,
    receipt: Receipt,
    due: Duration,
    backoff: Backoff,
    /// When it failed last for want of an answer.
    failed_at: Option<Duration>,
}

#[derive(Default)]
struct Inner {
    pending: VecDeque<Pending>,
    last_id: u64,
    /// Some were not told, which was said, since there was room last.
    dropped: bool,
}

/// The queue between the leader and the thread that sends.
#[derive(Default)]
pub struct Queue(Shared<Inner>);

impl Queue {
    /// Adds a receipt, due at once.
    pub fn push(&self, receipt: Receipt) {
        let mut inner = self.0.lock();
        let unrecorded = inner.pending.iter().filter(|p| !p.receipt.recorded).count();
        if !receipt.recorded && unrecorded >= UNRECORDED_MOST {
            let (command, reason) = (receipt.command(), receipt.reason.map_or("", Reason::as_str));
            let again = std::mem::replace(&mut inner.dropped, true);
            let level = if again { log::Level::Debug } else { log::Level::Warn };
            log::log!(
                level,
                "refusal not told command={command} reason={reason:?}: {unrecorded} wait already"
            );
            return;
        }
        inner.dropped &= unrecorded >= ROOM_AGAIN;
        inner.last_id = inner.last_id.wrapping_add(1);
        let id = inner.last_id;
        inner.pending.push_back(Pending {
            id,
            receipt,
            due: Duration::ZERO,
            backoff: Backoff::default(),
            failed_at: None,
        });
        drop(inner);
        self.0.notify();
    }

    /// Forgets everything: the leadership ended, and the next leader sends what the state holds.
    pub fn clear(&self) {
        self.0.lock().pending.clear();
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().pending.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.lock().pending.is_empty()
    }

    /// Whether something was pushed since the sender looked. For the simulation, which waits by other means.
    #[must_use]
    pub fn news(&self) -> bool {
        self.0.news()
    }

    /// The first receipt that is due at `now`, left in its place; or how long until one is.
    fn first_due(&self, now: Duration) -> Result<(u64, Receipt), Duration> {
        let inner = self.0.lock();
        let first = inner.pending.iter().filter(|p| p.due <= now).min_by_key(|p| p.due);
        if let Some(due) = first {
            return Ok((due.id, due.receipt.clone()));
        }
        Err(inner.pending.iter().map(|p| p.due.saturating_sub(now)).min().unwrap_or(LONGEST_WAIT))
    }

    fn remove(&self, id: u64) {
        self.0.lock().pending.retain(|p| p.id != id);
    }

    /// Notes that a receipt got no answer at `now`; whether it had got none before, while the gateway
    /// answered something else at `answered`: then it is this receipt that fails.
    fn unanswered(&self, id: u64, answered: Option<Duration>, now: Duration) -> bool {
        let mut inner = self.0.lock();
        let Some(p) = inner.pending.iter_mut().find(|p| p.id == id) else { return false };
        p.failed_at.replace(now).is_some_and(|before| answered >= Some(before))
    }

    fn postpone(&self, id: u64, pause: impl FnOnce(&mut Backoff) -> Duration, now: Duration) {
        if let Some(p) = self.0.lock().pending.iter_mut().find(|p| p.id == id) {
            p.due = now.saturating_add(pause(&mut p.backoff));
        }
    }
}

/// The sending side.
pub struct Outbox {
    queue: Arc<Queue>,
    gateway: Gateway,
    clock: Arc<dyn Clock>,
    leader: SyncSender<Event>,
    /// The gateway as a whole is not asked before this time.
    not_before: Duration,
    backoff: Backoff,
    said: Said,
}

impl Outbox {
    /// Sends what is in `queue` and tells `leader` what was acknowledged.
    #[must_use]
    pub fn new(
        queue: Arc<Queue>,
        gateway: Gateway,
        clock: Arc<dyn Clock>,
        leader: SyncSender<Event>,
    ) -> Self {
        let (not_before, backoff, said) = (Duration::ZERO, Backoff::default(), Said::default());
        Self { queue, gateway, clock, leader, not_before, backoff, said }
    }

    /// The thread: sends for ever. The simulation's is in `tests/sim/src/loops.rs`.
    pub fn run(mut self) {
        loop {
            let pause = self.step();
            self.queue.0.wait(pause);
        }
    }

    /// Sends what is due; how long until more is.
    pub fn step(&mut self) -> Duration {
        loop {
            // Before the look: what is pushed after it wakes the thread.
            self.queue.0.heed();
            let now = self.clock.monotonic();
            if now < self.not_before {
                return self.not_before.saturating_sub(now);
            }
            let (id, receipt) = match self.queue.first_due(now) {
                Ok(due) => due,
                Err(pause) => return pause,
            };
            let answer = self.gateway.receipt(&receipt);
            self.settle(id, &receipt, answer);
        }
    }

    fn settle(&mut self, id: u64, receipt: &Receipt, answer: Result<bool, GatewayError>) {
        match answer {
            Ok(_) => {
                self.backoff.reset();
                self.acknowledged(id, receipt);
            }
            Err(GatewayError::Status { status, code, .. }) if is_final(status, &code) => {
                let line =
                    format!("receipt dropped command={} status={status} code={code:?}", receipt.command());
                say(&mut self.said, self.clock.monotonic(), log::Level::Warn, &line, &line);
                self.acknowledged(id, receipt);
            }
            Err(GatewayError::Status { status: 400 | 413 | 422, code, .. }) => {
                let line =
                    format!("receipt refused command={} code={code:?}: tried hourly", receipt.command());
                say(&mut self.said, self.clock.monotonic(), log::Level::Warn, &line, &line);
                self.queue.postpone(id, |_| HOURLY, self.clock.monotonic());
            }
            Err(error) => {
                log::debug!("receipt kept command={} error={error}", receipt.command());
                let told = error.retry_after(self.clock.wall());
                let (now, random) = (self.clock.monotonic(), self.clock.random());
                // Overload and silence concern all receipts alike, and none loses its place; anything
                // else, this one, and so does silence while others are answered.
                let this_one = match &error {
                    GatewayError::Failed(_) | GatewayError::Status { status: 429 | 503, .. } => {
                        self.queue.unanswered(id, self.gateway.contact.answered(), now)
                    }
                    GatewayError::Status { .. } => true,
                };
                if this_one {
                    self.queue.postpone(id, |backoff| told.unwrap_or_else(|| backoff.next(random)), now);
                } else {
                    let pause = told.unwrap_or_else(|| self.backoff.next(random));
                    self.not_before = now.saturating_add(pause);
                }
            }
        }
    }

    fn acknowledged(&self, id: u64, receipt: &Receipt) {
        self.queue.remove(id);
        if let Some(nonce) = receipt.nonce.clone().filter(|_| receipt.recorded)
            && self.leader.send(Event::Acknowledged(nonce)).is_err()
        {
            log::debug!("the leader thread has ended");
        }
    }
}

/// The only answers to a receipt after which it is dropped (CONTRACT section 4).
fn is_final(status: u16, code: &str) -> bool {
    matches!((status, code), (403, "other_cluster") | (404, "unknown_command"))
}
