//! The one writer. It takes events in order, decides with `rules`, acts through `kube`, and is the only one
//! that changes the state or a component.
//!
//! The durable order (CONTRACT section 6): `accepted` is written before anything is touched, `done` with its
//! receipt before the receipt is sent. It never waits for a single command: what must be looked at later
//! gets a time, and [`Leader::work`] says when the next one is.

mod batch;
mod execute;
mod intake;
mod link;
mod store;
mod takeover;
#[cfg(test)]
mod tests;
mod upkeep;

use crate::board::Board;
use crate::clock::Clock;
use crate::event::{Event, Filed, Ticket};
use crate::gateway::Contact;
use crate::inbox::Desk;
use crate::kube::Kube;
use crate::leadership::Permit;
use crate::notices::{About, Notices};
use crate::outbox;
use crate::rules::election::Tenure;
use crate::rules::messages::Source;
use crate::rules::names::Nonce;
use crate::rules::pace::Pace;
use crate::rules::said::Said;
use crate::rules::upkeep::Glimpse;
use crate::rules::verdict::Trust;
use crate::say::say;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use execute::Task;
use store::{Stop, Store};
use upkeep::{Keeper, glimpse};

/// Longest sleep while nothing is due.
const IDLE: Duration = Duration::from_secs(15);
/// How long acknowledgements are gathered before the state is written for them.
const GATHER: Duration = Duration::from_secs(1);
/// How long the Lease is left to others after the state could not be used.
const RESIGN: Duration = Duration::from_mins(1);
/// How long it is left to others after it was handed over: enough for every follower to look.
const HAND_OVER: Duration = Duration::from_secs(10);
/// How long what waits in the queue is left alone while nothing has ended.
const JUDGE_AGAIN: Duration = Duration::from_secs(1);
/// Pause before a takeover that failed is tried again.
const RETAKE: Duration = Duration::from_secs(1);

/// What the leader shares with the other threads.
pub struct World {
    /// The API server.
    pub kube: Kube,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The permission to act.
    pub permit: Arc<Permit>,
    /// What is known of the manager.
    pub contact: Arc<Contact>,
    /// Receipts to send.
    pub outbox: Arc<outbox::Queue>,
    /// What the reporter reads, and how it is asked for an inventory.
    pub board: Arc<Board>,
    /// What people are told.
    pub notices: Arc<Notices>,
    /// Where files of the inbox are answered.
    pub desk: Arc<Desk>,
    /// Keys and configuration.
    pub trust: Trust,
    /// Our pod's name, for receipts.
    pub replica: String,
    /// What was written of the state in the last minute.
    pub pace: Cell<Pace>,
}

struct Delivery {
    /// Its bytes, or why there are none.
    envelope: Result<Vec<u8>, String>,
    /// Of a file of the inbox, which is answered there.
    ticket: Option<Ticket>,
}

impl Delivery {
    fn source(&self) -> Source {
        if self.ticket.is_some() { Source::Inbox } else { Source::Gateway }
    }

    fn bytes(&self) -> &[u8] {
        self.envelope.as_deref().unwrap_or_else(|why| why.as_bytes())
    }
}

/// What exists only while this replica leads.
struct Reign {
    tenure: Arc<Tenure>,
    store: Store,
    tasks: Vec<Task>,
    keeper: Keeper,
    acknowledged: Vec<Nonce>,
    /// When gathered acknowledgements are written.
    gather_until: Duration,
}

/// The leader thread's state.
pub struct Leader {
    world: World,
    reign: Option<Reign>,
    queue: VecDeque<Delivery>,
    /// No takeover is tried before this time.
    retake_at: Duration,
    /// The tenure that has looked for the state already: what is missing after that was lost.
    opened: Option<Arc<Tenure>>,
    /// When what waits in the queue is judged again; at once after a delivery or an outcome.
    judge_at: Duration,
    /// Until then the state counts as full: a command was left for lack of room.
    left_until: Duration,
    /// The link, from one takeover to the next.
    link: link::Watched,
    /// What was said of late, and which envelopes were refused.
    said: Said,
    refused: Said,
}

impl Leader {
    /// A leader that waits for its Lease.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self {
            world,
            reign: None,
            queue: VecDeque::new(),
            retake_at: Duration::ZERO,
            opened: None,
            judge_at: Duration::ZERO,
            left_until: Duration::ZERO,
            link: link::Watched::default(),
            said: Said::default(),
            refused: Said::default(),
        }
    }

    /// Logs what is wrong, once a minute.
    fn warn(&mut self, what: &str) {
        say(&mut self.said, self.world.clock.monotonic(), log::Level::Warn, what, &what);
    }

    /// Takes in one event; everything that follows from it happens in [`Leader::work`].
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Leadership => {}
            Event::Trust(trust) => {
                if trust.ring != self.world.trust.ring {
                    // What was accepted is verified again, as by whoever takes over.
                    self.step_down("the manager's keys are others now");
                }
                self.world.trust = *trust;
                if let Some(reign) = &mut self.reign {
                    reign.keeper.look_again(self.world.clock.monotonic());
                }
                self.judge_at = Duration::ZERO;
            }
            Event::Delivered { envelopes, taken } => {
                self.judge_at = Duration::ZERO;
                for envelope in envelopes {
                    self.enqueue(Delivery { envelope: Ok(envelope), ticket: None });
                }
                drop(taken);
            }
            Event::Filed(files) => {
                self.judge_at = Duration::ZERO;
                for Filed { ticket, content } in files {
                    self.enqueue(Delivery { envelope: content, ticket: Some(ticket) });
                }
            }
            Event::Acknowledged(nonce) => {
                if let Some(reign) = &mut self.reign {
                    if reign.acknowledged.is_empty() {
                        reign.gather_until = self.world.clock.monotonic().saturating_add(GATHER);
                    }
                    reign.acknowledged.push(nonce);
                }
            }
            Event::Inventory { result, asked, whole } => self.inventory_read(&result, asked, &whole),
            Event::Listed(all) => self.listed(&all),
            Event::Seen(seen) => self.sighted(&seen.name, glimpse(&seen)),
            Event::Gone(name) => self.sighted(&name, Glimpse::Gone),
        }
    }

    /// Does all that is due; how long until more is.
    pub fn work(&mut self) -> Duration {
        let now = self.world.clock.monotonic();
        let tenure = self.world.permit.tenure(now);
        let over = |reign: &Reign| Some(&reign.tenure) != tenure.as_ref();
        if tenure.is_none() || self.reign.as_ref().is_some_and(over) {
            self.step_down("the Lease is not ours any more");
        }
        let Some(tenure) = tenure else { return IDLE };
        match self.rule(&tenure) {
            Ok(pause) => pause,
            Err(stop) => {
                self.warn(&format!("stepping back: {stop}"));
                if let Stop::StateChanged(_) = &stop {
                    self.world.notices.warning("StateConflict", About::Pod, &stop.to_string());
                }
                // What waits for a takeover goes on waiting, as long as the Lease is ours.
                if self.reign.is_some() {
                    self.step_down("begins anew from what the cluster holds");
                }
                let (now, mut pause) = (self.world.clock.monotonic(), RETAKE);
                match stop {
                    // The next renewal that succeeds shows that we lead all the same.
                    Stop::Deposed | Stop::StateChanged(_) => self.world.permit.revoke(),
                    Stop::Unusable(_) => self.world.permit.resign(now.saturating_add(RESIGN)),
                    Stop::HandOver => self.world.permit.resign(now.saturating_add(HAND_OVER)),
                    Stop::Unavailable { told, .. } => pause = pause.max(told.unwrap_or_default()),
                }
                self.retake_at = now.saturating_add(pause);
                pause.min(IDLE)
            }
        }
    }

    fn rule(&mut self, tenure: &Arc<Tenure>) -> Result<Duration, Stop> {
        if self.reign.is_none() {
            let now = self.world.clock.monotonic();
            if now < self.retake_at {
                return Ok(self.retake_at.saturating_sub(now));
            }
            self.take_over(tenure)?;
        }
        let pause = store::pause(&self.world);
        if !pause.is_zero() {
            self.warn("state written at its limit: nothing is begun meanwhile");
            return Ok(pause);
        }
        self.watch_link()?;
        self.intake()?;
        // Before an inventory is asked for: the report that comes with it says so.
        self.watch_room();
        // What was commanded comes before what is kept.
        let more = self.execute()?;
        let more = self.keep()? || more;
        self.write_acknowledgements()?;
        // One pass at a time: events are taken, and the end of the process is noticed, in between.
        Ok(if more { Duration::ZERO } else { self.next_due() })
    }

    /// Lets go of all that was for this leadership, also where it ended before it had taken over.
    fn step_down(&mut self, why: &str) {
        if let Some(reign) = self.reign.take() {
            log::info!("leader=false transitions={} why={why:?}", reign.tenure.transitions);
            self.world.outbox.clear();
            self.world.board.stepped_down();
        } else if self.queue.is_empty() {
            return;
        }
        self.queue.clear();
        self.world.desk.stepped_down();
    }

    fn next_due(&self) -> Duration {
        let Some(reign) = &self.reign else { return IDLE };
        let now = self.world.clock.monotonic();
        let gather = (!reign.acknowledged.is_empty()).then_some(reign.gather_until);
        let judge = (!self.queue.is_empty()).then_some(self.judge_at);
        let due =
            reign.tasks.iter().map(Task::due).chain(gather).chain(judge).chain(reign.keeper.due()).min();
        due.map_or(self.link.due(), |due| due.min(self.link.due())).saturating_sub(now).min(IDLE)
    }

    fn write_acknowledgements(&mut self) -> Result<(), Stop> {
        let Some(reign) = &mut self.reign else { return Ok(()) };
        let now = self.world.clock.monotonic();
        if reign.acknowledged.is_empty() || now < reign.gather_until {
            return Ok(());
        }
        let mut next = reign.store.state().clone();
        for nonce in reign.acknowledged.drain(..) {
            next.acknowledge(&nonce);
        }
        next.prune(self.world.clock.wall(), self.world.contact.clock_trusted(now));
        reign.store.commit(&self.world, &reign.tenure, next)?;
        self.world.board.publish(reign.store.shared());
        Ok(())
    }
}
