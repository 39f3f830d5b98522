//! The long poll: while this replica leads, asks the gateway for commands and hands them to the leader. It judges
//! nothing. Nothing more is fetched before the leader has taken what was, and no answer makes it ask at once again.

use crate::clock::Clock;
use crate::event::Event;
use crate::gateway::Gateway;
use crate::identity::Current;
use crate::leadership::Permit;
use crate::rules::backoff::Backoff;
use crate::rules::said::Said;
use crate::say::say;
use crate::threads::LONGEST_WAIT;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Least time between two polls that came back empty at once.
const LEAST: Duration = Duration::from_secs(1);
/// Least time between two polls that brought something, on average: a gateway that answers the same again and
/// again at once is asked no faster.
const AFTER_COMMANDS: Duration = Duration::from_millis(200);
/// How far polls may run ahead of that average: five at once, so that a burst of hundreds is not held up.
const BURST: Duration = Duration::from_millis(800);

/// What a poll led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Polled {
    /// Nothing to hand over: how long to pause before the next poll.
    Pause(Duration),
    /// It failed: a pause of this, and of that much more unless the gateway answers somebody meanwhile.
    Failed(Duration, Duration),
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
    /// What it remembers.
    pub progress: Progress,
}

/// What the poll remembers between two steps.
#[derive(Default)]
pub struct Progress {
    backoff: Backoff,
    said: Said,
    /// When the polls that brought something would be over, one after the other at their average (monotonic).
    paid_until: Duration,
}

impl Poller {
    /// The thread: polls until the process ends. The simulation's is in `tests/sim/src/loops.rs`.
    pub fn run(mut self) {
        while !self.permit.closing() {
            if self.permit.tenure(self.clock.monotonic()).is_none() {
                self.permit.wait(LONGEST_WAIT);
                continue;
            }
            let sent = self.clock.monotonic();
            match self.step() {
                Polled::Failed(least, more) => {
                    self.clock.sleep(least);
                    // Where a receipt or report got through, commands do too.
                    self.gateway.contact.await_answer(sent, more);
                }
                Polled::Pause(pause) => self.clock.sleep(pause),
                Polled::Commands(envelopes) => self.hand_over(envelopes),
            }
        }
    }

    /// Blocks while the leader is busy: nothing more is fetched than can be taken.
    fn hand_over(&self, envelopes: Vec<Vec<u8>>) {
        let (taken, wait) = sync_channel(0);
        if self.leader.send(Event::Delivered { envelopes, taken }).is_ok() {
            // Nothing is ever sent: it ends when the leader lets go of its side.
            let (Ok(()) | Err(_)) = wait.recv();
        }
    }

    /// Polls once.
    pub fn step(&mut self) -> Polled {
        let sent = self.clock.monotonic();
        let ahead = self.progress.paid_until.saturating_sub(sent);
        if ahead > BURST {
            return Polled::Pause(ahead.saturating_sub(BURST));
        }
        match self.gateway.poll(self.identity.get().config.poll_wait().as_secs()) {
            Ok(envelopes) => {
                self.progress.backoff.reset();
                let took = self.clock.monotonic().saturating_sub(sent);
                if envelopes.is_empty() {
                    return Polled::Pause(LEAST.saturating_sub(took));
                }
                self.progress.paid_until = self.progress.paid_until.max(sent).saturating_add(AFTER_COMMANDS);
                Polled::Commands(envelopes)
            }
            Err(error) => {
                let text = format!("poll failed error={:?}", error.to_string());
                say(&mut self.progress.said, self.clock.monotonic(), log::Level::Warn, &text, &text);
                if let Some(told) = error.retry_after(self.clock.wall()) {
                    self.progress.backoff.reset();
                    return Polled::Pause(told);
                }
                let pause = self.progress.backoff.next(self.clock.random());
                Polled::Failed(LEAST.min(pause), pause.saturating_sub(LEAST))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HandClock;
    use crate::gateway::Contact;
    use crate::http::{Http, HttpError, Request, Response};
    use crate::identity::Identity;
    use crate::rules::vectors::trust;
    use serde_json::json;
    use std::io::Cursor;

    /// Answers each poll at once, with so many commands.
    struct AtOnce(usize);

    impl Http for AtOnce {
        fn send(&self, _: &Request) -> Result<Response, HttpError> {
            let body = json!({ "commands": vec![json!({ "junk": true }); self.0] }).to_string();
            let body = Box::new(Cursor::new(body.into_bytes()));
            Ok(Response { status: 200, retry_after: None, date: None, body })
        }
    }

    /// How many polls ten seconds see, and how many commands.
    fn ten_seconds(of: AtOnce) -> (usize, usize) {
        let clock = Arc::new(HandClock::default());
        let contact = Arc::new(Contact::default());
        let mut poller = Poller {
            gateway: Gateway::new(Arc::new(of), clock.clone(), contact),
            clock: clock.clone(),
            permit: Arc::default(),
            leader: sync_channel(1).0,
            identity: Arc::new(Current::new(Arc::new(Identity::of(trust())))),
            progress: Progress::default(),
        };
        let (mut commands, mut steps) = (0, 0);
        while clock.monotonic() < Duration::from_secs(10) {
            match poller.step() {
                Polled::Commands(envelopes) => commands += envelopes.len(),
                Polled::Pause(pause) => clock.sleep(pause),
                Polled::Failed(..) => panic!("each is answered"),
            }
            steps += 1;
            assert!(steps <= 110, "a step every moment");
        }
        (steps, commands)
    }

    #[test]
    fn a_gateway_that_always_has_commands_is_asked_five_times_a_second_after_a_burst_of_five() {
        assert_eq!(ten_seconds(AtOnce(64)).1, 64 * (5 + 49), "five at once, then one each 200 ms");
    }

    #[test]
    fn a_gateway_that_says_at_once_that_there_is_nothing_is_asked_once_a_second() {
        assert_eq!(ten_seconds(AtOnce(0)), (10, 0));
    }
}
