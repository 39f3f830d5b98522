//! The long poll: while this replica leads, asks the gateway for commands and hands them to the leader.

use crate::clock::Clock;
use crate::event::Event;
use crate::gateway::Gateway;
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
    /// How long the gateway may hold a poll, in seconds.
    pub wait_s: u64,
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
            let pause = self.step();
            if self.backoff.failures() > 0 {
                self.clock.sleep(LEAST.min(pause));
                // Where a receipt or report got through, commands do too.
                self.gateway.await_answer(sent, pause.saturating_sub(LEAST));
            } else if !pause.is_zero() {
                self.clock.sleep(pause);
            }
        }
    }

    /// Polls once; how long to pause before the next poll.
    pub fn step(&mut self) -> Duration {
        let sent = self.clock.monotonic();
        match self.gateway.poll(self.wait_s) {
            Ok(envelopes) => {
                self.backoff = Backoff::default();
                let took = self.clock.monotonic().saturating_sub(sent);
                if envelopes.is_empty() {
                    return LEAST.saturating_sub(took);
                }
                // Blocks while the leader is busy: nothing more is fetched than can be taken.
                let (taken, wait) = sync_channel(0);
                let event = Event::Delivered { envelopes, source: Source::Gateway, taken };
                if self.leader.send(event).is_ok() {
                    // Nothing is ever sent: it ends when the leader lets go of its side.
                    let (Ok(()) | Err(_)) = wait.recv();
                }
                Duration::ZERO
            }
            Err(error) => {
                log::warn!("poll failed error={:?}", error.to_string());
                if let Some(told) = error.retry_after(self.clock.wall()) {
                    self.backoff = Backoff::default();
                    return told;
                }
                self.backoff.next(self.clock.random())
            }
        }
    }
}
