//! From a delivery to a recorded command: what came together is judged one by one against one copy of the
//! state, recorded in one write, and only then begun or answered.

use super::execute::Task;
use super::store::Stop;
use super::{Delivery, JUDGE_AGAIN, Leader, World};
use crate::event::Ticket;
use crate::inbox::{Answer, Reply};
use crate::notices::About;
use crate::rules::json::MAX_ENVELOPE_BYTES;
use crate::rules::link::Link;
use crate::rules::messages::{Receipt, Source, Stamp};
use crate::rules::state::State;
use crate::rules::verdict::{self, Accepted, Refused, Verdict, Why};
use crate::say::say;
use std::collections::VecDeque;
use std::time::Duration;

/// Most deliveries that wait to be judged; more are left to the gateway, which delivers them again.
const QUEUE_MOST: usize = 256;
/// Bytes of deliveries from which on no more are taken, likewise: 16 MiB.
const QUEUE_BYTES: usize = 16 * 1024 * 1024;
/// How long the state counts as full after a command was left for lack of room: it is delivered again sooner.
const LEFT: Duration = Duration::from_secs(30);

/// What a batch of deliveries led to, before anything of it is written.
struct Batch {
    next: State,
    tasks: Vec<Task>,
    receipts: Vec<Receipt>,
    /// What becomes of the files of the inbox.
    replies: Vec<(Ticket, Reply)>,
    later: VecDeque<Delivery>,
    /// One was left for lack of room.
    full: bool,
    refused: Vec<Told>,
}

/// What people are told of a refusal once it is recorded.
struct Told {
    /// It is signed, and this its one outcome.
    recorded: bool,
    /// Of the same envelope the same.
    digest: String,
    line: String,
    event: String,
}

impl Leader {
    /// A command that waits already is not queued twice, however often it is delivered; of what is too long to be
    /// one, only as much is kept as shows that.
    pub(super) fn enqueue(&mut self, mut delivery: Delivery) {
        if let Ok(envelope) = &mut delivery.envelope {
            envelope.truncate(MAX_ENVELOPE_BYTES.saturating_add(1));
            envelope.shrink_to_fit();
        }
        let same = |waiting: &Delivery| {
            waiting.ticket.is_none() && delivery.ticket.is_none() && waiting.envelope == delivery.envelope
        };
        if self.queue.iter().any(same) {
            return;
        }
        let held: usize = self.queue.iter().map(|waiting| waiting.bytes().len()).sum();
        if self.queue.len() >= QUEUE_MOST || held >= QUEUE_BYTES {
            self.warn("queue full: commands are left to their sender");
            if let Some(ticket) = delivery.ticket {
                self.world.desk.reply(ticket, Reply::Later);
            }
            return;
        }
        self.queue.push_back(delivery);
    }

    /// Judges what was delivered and records it. On an error nothing was begun and nothing answered.
    pub(super) fn intake(&mut self) -> Result<(), Stop> {
        let Some(reign) = &mut self.reign else { return Ok(()) };
        let world = &self.world;
        let now = world.clock.monotonic();
        if self.queue.is_empty() || now < self.judge_at {
            return Ok(());
        }
        self.judge_at = now.saturating_add(JUDGE_AGAIN);
        let link = super::link::judge(world, reign, now);
        let mut batch = Batch {
            next: reign.store.state().clone(),
            tasks: Vec::new(),
            receipts: Vec::new(),
            replies: Vec::new(),
            later: VecDeque::new(),
            full: false,
            refused: Vec::new(),
        };
        batch.next.prune(world.clock.wall(), world.contact.clock_trusted(now));
        // The gateway's commands first.
        self.queue.make_contiguous().sort_by_key(|delivery| delivery.ticket.is_some());
        for delivery in self.queue.drain(..) {
            // The file was taken back or rewritten since: nobody wants it begun.
            if delivery.ticket.is_some_and(|ticket| !world.desk.is_open(ticket)) {
                log::debug!("delivery dropped: its file is not what it was");
                continue;
            }
            batch.judge(world, delivery, link, now);
        }
        self.queue = batch.later;
        if batch.full {
            self.left_until = now.saturating_add(LEFT);
        }
        reign.store.commit(world, &reign.tenure, batch.next)?;
        world.board.publish(reign.store.shared());
        for told in batch.refused {
            if told.recorded {
                log::warn!("{}", told.line);
            } else {
                say(&mut self.refused, now, log::Level::Warn, &told.digest, &told.line);
            }
            world.notices.warning("CommandRefused", About::Pod, &told.event);
        }
        batch.tasks.iter().for_each(Task::begun);
        reign.tasks.extend(batch.tasks);
        for receipt in batch.receipts {
            world.board.count(&receipt);
            if receipt.is_for_the_manager() {
                world.outbox.push(receipt);
            }
        }
        for (ticket, reply) in batch.replies {
            world.desk.reply(ticket, reply);
        }
        Ok(())
    }

    /// Says whether the state is full: in the report, and once by log and Event.
    pub(super) fn watch_room(&mut self) {
        let Some(reign) = &self.reign else { return };
        let full = self.world.clock.monotonic() < self.left_until || reign.store.state().is_full();
        if self.world.board.full(full) && full {
            log::warn!("state full: commands are left to their sender");
            let message = "no room: commands are left to their sender until those under way have ended and receipts are taken";
            self.world.notices.warning("StateFull", About::Pod, message);
        }
    }
}

impl Batch {
    fn judge(&mut self, world: &World, delivery: Delivery, link: Link, now: Duration) {
        let wall = world.clock.wall();
        let verdict = match &delivery.envelope {
            Ok(envelope) => verdict::judge(envelope, &world.trust, &self.next, link, wall),
            Err(why) => verdict::unreadable(why),
        };
        match verdict {
            Verdict::Run(accepted) => {
                let nonce = accepted.command().value().nonce.clone();
                self.reply(delivery.ticket, || Reply::UnderWay(nonce));
                self.accept(*accepted, delivery.source(), now);
            }
            Verdict::Refuse(refused) => self.refuse(world, *refused, &delivery),
            Verdict::UnderWay(nonce) => {
                log::debug!("delivery dropped: the command is being executed");
                self.reply(delivery.ticket, || Reply::UnderWay(nonce));
            }
            Verdict::Later(why) => {
                self.full |= why == Why::Full;
                // A file waits in its folder, and for room the gateway's commands wait there.
                if delivery.ticket.is_some() || why == Why::Full {
                    log::debug!("delivery left to its sender: {why:?}");
                    self.reply(delivery.ticket, || Reply::Later);
                } else {
                    self.later.push_back(delivery);
                }
            }
        }
    }

    fn reply(&mut self, ticket: Option<Ticket>, reply: impl FnOnce() -> Reply) {
        if let Some(ticket) = ticket {
            self.replies.push((ticket, reply()));
        }
    }

    fn accept(&mut self, accepted: Accepted, source: Source, now: Duration) {
        if let Err(error) = self.next.accept(accepted.command(), source) {
            log::error!("not accepted command={} error={error}", accepted.command().value().command_id);
            return;
        }
        self.tasks.push(Task::new(accepted, source, now, false));
    }

    fn refuse(&mut self, world: &World, refused: Refused, delivery: &Delivery) {
        let (source, ticket) = (delivery.source(), delivery.ticket);
        let Refused { refusal, record, original } = refused;
        let (whose, what) = match &refusal.ids {
            Some((id, _)) => (format!("command={id}"), format!("command {id} was refused")),
            None => ("unreadable=true".to_owned(), "an unreadable command was refused".to_owned()),
        };
        let receipt = Receipt::refused(&world.stamp(source), &refusal, record.is_some(), original);
        if let Some(command) = record
            && let Err(error) = self.next.refuse(command.value(), receipt.clone())
        {
            log::error!("not recorded {whose} error={error}");
            self.reply(ticket, || Reply::Later);
            return;
        }
        self.refused.push(Told {
            recorded: receipt.recorded,
            digest: format!("{:?}", ring::digest::digest(&ring::digest::SHA256, delivery.bytes())),
            line: format!("refused {whose} reason={} message={:?}", refusal.reason, refusal.message),
            event: format!("{what}: {}", refusal.reason),
        });
        self.reply(ticket, || answer(receipt.clone()));
        self.receipts.push(receipt);
    }
}

fn answer(receipt: Receipt) -> Reply {
    Reply::Answer(Box::new(Answer { receipt, inventory: None }))
}

impl World {
    /// Who answers, when, and for whom.
    pub(super) fn stamp(&self, source: Source) -> Stamp {
        Stamp {
            tenant_id: self.trust.config.tenant_id.clone(),
            cluster_id: self.trust.config.cluster_id.clone(),
            replica: self.replica.clone(),
            source,
            executed_at: self.clock.wall(),
        }
    }
}
