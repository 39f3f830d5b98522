//! Accepted commands on their way through the cluster: read the components, read the Lease, write, record.

use super::store::{self, Stop};
use super::{Leader, Reign, World};
use crate::kube::components;
use crate::rules::backoff::{Backoff, retry_after};
use crate::rules::component::Write;
use crate::rules::envelope::Verified;
use crate::rules::execution::{Ending, Execution, Step, TRY_FOR};
use crate::rules::messages::{Command, Reason, Receipt, Source};
use crate::rules::names::ComponentName;
use crate::rules::state::Effect;
use crate::rules::verdict::Accepted;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Most commands that are carried out between two writes of the state, so that none waits long for others.
pub(super) const TOGETHER: usize = 32;

/// How long components are read before the writes that follow are sent.
pub(super) const READ_FOR: Duration = Duration::from_secs(1);

/// Most JSON values in the objects of one batch before it is sent: about 32 MiB.
pub(super) const HELD_MOST: usize = 1_000_000;

/// Pause before a batch is begun again whose reading of the Lease got no answer.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// How long an outcome waits for others to be recorded with it.
pub(super) const HELD_BACK: Duration = Duration::from_millis(200);

/// One accepted command.
pub(super) struct Task {
    command: Verified<Command>,
    source: Source,
    kind: Kind,
    due: Duration,
    backoff: Backoff,
    ended: Option<Ended>,
}

enum Kind {
    Component(Box<Execution>),
    /// Waits for the reporter since this time; for the reading that answers this call, once asked.
    Inventory {
        since: Duration,
        asked: Option<u64>,
    },
}

struct Ended {
    receipt: Receipt,
    effect: Effect,
    /// For the inbox alone.
    inventory: Option<Arc<Value>>,
}

impl Task {
    pub(super) fn new(accepted: Accepted, source: Source, now: Duration, recovered: bool) -> Self {
        let (command, operation) = accepted.into_parts();
        let kind = match Execution::new(operation, command.value(), now, recovered) {
            Some(execution) => Kind::Component(Box::new(execution)),
            None => Kind::Inventory { since: now, asked: None },
        };
        Self { command, source, kind, due: now, backoff: Backoff::default(), ended: None }
    }

    /// See [`Execution::note_kept`].
    pub(super) fn note_kept(&mut self) {
        if let Kind::Component(execution) = &mut self.kind {
            execution.note_kept();
        }
    }

    /// The component that it writes.
    pub(super) fn name(&self) -> Option<&ComponentName> {
        match &self.kind {
            Kind::Component(execution) => Some(execution.name()),
            Kind::Inventory { .. } => None,
        }
    }

    /// When to go on with it.
    pub(super) fn due(&self) -> Duration {
        self.due
    }
}

/// A write that is planned, and the generation of the reading that it rests on.
struct Planned {
    index: usize,
    write: Write,
    before: Option<i64>,
}

impl Leader {
    /// Goes on with the commands that are due; true where more are due at once.
    pub(super) fn execute(&mut self) -> Result<bool, Stop> {
        let Some(reign) = &mut self.reign else { return Ok(false) };
        let world = &self.world;
        let now = world.clock.monotonic();
        // Those that have waited longest go first.
        reign.tasks.sort_by_key(Task::due);
        let (mut planned, mut held) = (Vec::new(), 0_usize);
        let due = reign.tasks.iter_mut().enumerate().filter(|(_, task)| task.due <= now);
        for (index, task) in due.take(TOGETHER) {
            store::may_act(world, &reign.tenure)?;
            if let Some(write) = plan(world, index, task) {
                held = held.saturating_add(write.write.weight());
                planned.push(write);
            }
            if world.clock.monotonic().saturating_sub(now) >= READ_FOR || held >= HELD_MOST {
                break;
            }
        }
        if !planned.is_empty() && !store::lease_read(world, &reign.tenure)? {
            let again = world.clock.monotonic().saturating_add(AGAIN);
            for Planned { index, .. } in planned.drain(..) {
                if let Some(task) = reign.tasks.get_mut(index) {
                    task.due = again;
                }
            }
        }
        let mut first_ended = None;
        for Planned { index, write, before } in planned {
            let Some(task) = reign.tasks.get_mut(index) else { continue };
            store::may_act(world, &reign.tenure)?;
            send(world, task, &write, before);
            let now = world.clock.monotonic();
            let since = *first_ended.get_or_insert(now);
            // What has ended is recorded before it has waited long; the rest is read anew.
            if now.saturating_sub(since) >= HELD_BACK {
                break;
            }
        }
        if record(world, reign)? {
            self.judge_at = Duration::ZERO;
        }
        let now = world.clock.monotonic();
        Ok(reign.tasks.iter().any(|task| task.due <= now))
    }

    /// Ends the commands that wait for the inventory.
    pub(super) fn inventory_read(&mut self, result: &Value, answered: u64, whole: &Arc<Value>) {
        let Some(reign) = &mut self.reign else { return };
        for task in &mut reign.tasks {
            let waits = |asked: &u64| *asked <= answered;
            if matches!(&task.kind, Kind::Inventory { asked, .. } if asked.as_ref().is_some_and(waits)) {
                let stamp = self.world.stamp(task.source);
                let receipt = Receipt::succeeded(&stamp, task.command.value(), result.clone());
                let inventory = Some(Arc::clone(whole));
                task.ended = Some(Ended { receipt, effect: Effect::None, inventory });
                task.due = Duration::ZERO;
            }
        }
    }
}

/// Reads what the command needs to know; a write is planned, everything else done at once.
fn plan(world: &World, index: usize, task: &mut Task) -> Option<Planned> {
    if task.ended.is_some() {
        return None;
    }
    let at = world.clock.monotonic();
    let execution = match &mut task.kind {
        Kind::Component(execution) => execution,
        Kind::Inventory { since, asked } => {
            if asked.is_none() && world.clock.wall() > task.command.value().not_after {
                let message = "found by a new leader after its window, and not done";
                end_failed(world, task, Reason::Expired, message, Effect::None);
            } else if asked.is_none() {
                task.due = since.saturating_add(TRY_FOR);
                *asked = Some(world.board.ask_inventory());
            } else if at.saturating_sub(*since) >= TRY_FOR {
                let message = "the inventory could not be read in time";
                end_failed(world, task, Reason::KubernetesUnavailable, message, Effect::None);
            }
            return None;
        }
    };
    let (step, before) = match components::get(&world.kube, execution.name()) {
        Ok(live) => {
            let step = execution.next(live.as_ref(), world.kube.namespace(), world.clock.wall(), at);
            (step, live)
        }
        Err(error) => (execution.unreadable(&error, world.clock.wall(), at), None),
    };
    match step {
        Step::Write(write) => Some(Planned { index, write, before: before.map(|live| live.generation()) }),
        step @ (Step::Again | Step::Wait(_) | Step::Retry(_) | Step::End(_)) => {
            follow(world, task, step);
            None
        }
    }
}

fn send(world: &World, task: &mut Task, write: &Write, before: Option<i64>) {
    let Kind::Component(execution) = &mut task.kind else { return };
    let answer = components::send(&world.kube, execution.name(), write);
    let step = execution.answered(write, before, answer, world.clock.monotonic());
    follow(world, task, step);
}

fn follow(world: &World, task: &mut Task, step: Step) {
    let now = world.clock.monotonic();
    match step {
        Step::Write(_) | Step::Again => task.due = now,
        Step::Wait(pause) => task.due = now.saturating_add(pause),
        Step::Retry(told) => {
            let told = retry_after(told.as_deref(), world.clock.wall());
            let pause = told.unwrap_or_else(|| task.backoff.next(world.clock.random()));
            task.due = now.saturating_add(pause);
        }
        Step::End(ending) => end(world, task, ending),
    }
}

fn end(world: &World, task: &mut Task, ending: Ending) {
    let Kind::Component(execution) = &task.kind else { return };
    let effect = ending.effect(execution.name(), &task.command, world.trust.config.max_validity_s);
    let (stamp, command) = (world.stamp(task.source), task.command.value());
    let receipt = match ending {
        Ending::Applied { result, .. } => Receipt::succeeded(&stamp, command, result),
        Ending::Deleted { result, message } if message.is_empty() => {
            Receipt::succeeded(&stamp, command, result)
        }
        Ending::Deleted { result, message } => {
            Receipt::succeeded(&stamp, command, result).with_message(&message)
        }
        Ending::Failed { reason, message, .. } => Receipt::failed(&stamp, command, reason, &message),
    };
    finish(task, receipt, effect);
}

fn end_failed(world: &World, task: &mut Task, reason: Reason, message: &str, effect: Effect) {
    let receipt = Receipt::failed(&world.stamp(task.source), task.command.value(), reason, message);
    finish(task, receipt, effect);
}

fn finish(task: &mut Task, receipt: Receipt, effect: Effect) {
    task.ended = Some(Ended { receipt, effect, inventory: None });
    task.due = Duration::ZERO;
}

/// Records what ended in one write of the state; only then are its receipts sent.
/// True where something did.
fn record(world: &World, reign: &mut Reign) -> Result<bool, Stop> {
    if reign.tasks.iter().all(|task| task.ended.is_none()) {
        return Ok(false);
    }
    let mut next = reign.store.state().clone();
    let mut receipts = Vec::new();
    for task in &reign.tasks {
        let Some(Ended { receipt, effect, inventory }) = &task.ended else { continue };
        match next.finish(&task.command.value().nonce, receipt.clone(), effect.clone()) {
            Ok(()) => receipts.push((receipt.clone(), inventory.clone())),
            Err(error) => log::error!("not recorded command={} error={error}", receipt.command()),
        }
    }
    for nonce in reign.acknowledged.drain(..) {
        next.acknowledge(&nonce);
    }
    let clock_trusted = world.contact.clock_trusted(world.clock.monotonic());
    next.prune(world.clock.wall(), clock_trusted);
    reign.store.commit(world, &reign.tenure, next)?;
    world.board.publish(reign.store.shared());
    for task in &reign.tasks {
        if let Some(ended) = &task.ended {
            reign.keeper.ended(world, reign.store.state(), &ended.effect, task.name());
        }
    }
    reign.tasks.retain(|task| task.ended.is_none());
    for (receipt, inventory) in receipts {
        let reason = receipt.reason.map_or("", Reason::as_str);
        log::info!("done command={} status={:?} reason={reason:?}", receipt.command(), receipt.status);
        world.board.count(&receipt);
        world.desk.ended(&receipt, inventory.as_ref());
        world.outbox.push(receipt);
    }
    Ok(true)
}
