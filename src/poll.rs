//! The long poll: while this replica leads, asks the gateway for commands and hands them to the leader.

use crate::clock::Clock;
use crate::event::Event;
use crate::gateway::Gateway;
use crate::identity::Current;
use crate::leadership::Permit;
use crate::rules::backoff::Backoff;
use crate::rules::messages::Source;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Least time between two polls that came back empty at once.
const LEAST: Duration = Duration::from_secs(1);
/// Longest wait for the leadership before it is looked for again.
const IDLE: Duration = Duration::from_hours(1);

/// What a poll led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Polled {
    /// Nothing to hand over: how long to pause before the next poll.
    Pause(Duration),
    /// For the leader; nothing more is fetched before it has taken these.
    Commands(Vec<Vec<u8>>),
}

/// The polling side.
pub struct Poller {
    /// The manager, with a connection of the poll's own.
    pub gateway: Gateway,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Whether this replica leads.
    pub permit: Arc<Permit>,
    /// Who takes the commands.
    pub leader: SyncSender<Event>,
    /// Who we are: it says how long the gateway may hold a poll.
    pub identity: Arc<Current>,
    /// Pauses after failures.
    pub backoff: Backoff,
}

impl Poller {
    /// The thread: polls until the process ends.
    pub fn run(mut self) {
        while !self.permit.closing() {
            if self.permit.tenure(self.clock.monotonic()).is_none() {
                self.permit.wait(IDLE);
                continue;
            }
            let sent = self.clock.monotonic();
            match self.step() {
                Polled::Pause(pause) if self.backoff.failures() > 0 => {
                    self.clock.sleep(LEAST.min(pause));
                    // Where a receipt or report got through, commands do too.
                    self.gateway.await_answer(sent, pause.saturating_sub(LEAST));
                }
                Polled::Pause(pause) if pause.is_zero() => {}
                Polled::Pause(pause) => self.clock.sleep(pause),
                Polled::Commands(envelopes) => self.hand_over(envelopes),
            }
        }
    }

    /// Blocks while the leader is busy: nothing more is fetched than can be taken.
    fn hand_over(&self, envelopes: Vec<Vec<u8>>) {
        let (taken, wait) = sync_channel(0);
        if self.leader.send(Event::Delivered { envelopes, source: Source::Gateway, taken }).is_ok() {
            // Nothing is ever sent: it ends when the leader lets go of its side.
            let (Ok(()) | Err(_)) = wait.recv();
        }
    }

    /// Polls once.
    pub fn step(&mut self) -> Polled {
        let sent = self.clock.monotonic();
        match self.gateway.poll(self.identity.get().config.poll_wait().as_secs()) {
            Ok(envelopes) => {
                self.backoff = Backoff::default();
                let took = self.clock.monotonic().saturating_sub(sent);
                if envelopes.is_empty() {
                    return Polled::Pause(LEAST.saturating_sub(took));
                }
                Polled::Commands(envelopes)
            }
            Err(error) => {
                log::warn!("poll failed error={:?}", error.to_string());
                if let Some(told) = error.retry_after(self.clock.wall()) {
                    self.backoff = Backoff::default();
                    return Polled::Pause(told);
                }
                Polled::Pause(self.backoff.next(self.clock.random()))
            }
        }
    }
}
