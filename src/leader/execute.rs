//! Accepted commands on their way through the cluster: read the components, read the Lease, write, record.
//!
//! No write but by `batch::run`; no receipt, and nothing told to upkeep, before the outcome is committed.

use super::batch::{self, AGAIN, Planned};
use super::store::Stop;
use super::{Leader, Reign, World};
use crate::kube::{KubeError, components};
use crate::notices::About;
use crate::rules::backoff::{Backoff, retry_after};
use crate::rules::component::Write;
use crate::rules::envelope::Verified;
use crate::rules::execution::{Aim, Before, Ending, Execution, Failure, Step, TimeLimit};
use crate::rules::messages::{Command, Operation, Reason, Receipt, Source};
use crate::rules::names::ComponentName;
use crate::rules::report::Inventory;
use crate::rules::state::Effect;
use crate::rules::verdict::Accepted;
use serde_json::Value;
use std::time::Duration;

/// Why an `inventory.report` fails.
const NOT_IN_TIME: &str = "the inventory could not be read in time";

/// Why a write without an answer is not settled, and what to do about it.
const NOT_WHOLE: &str =
    "cannot be read whole, so that a write without an answer is not settled: delete it, or make it smaller";
/// The same where the API server refuses the reading.
const NOT_ALLOWED: &str =
    "may not be read, so that a write without an answer is not settled: apply the rights (manifests)";

/// One accepted command.
pub(super) struct Task {
    command: Verified<Command>,
    name: Option<ComponentName>,
    source: Source,
    kind: Kind,
    due: Duration,
    backoff: Backoff,
    ended: Option<Ended>,
}

enum Kind {
    Component(Box<Execution>),
    /// Waits for the reporter; for the reading that answers this call, once asked.
    Inventory {
        limit: TimeLimit,
        asked: Option<u64>,
    },
}

struct Ended {
    receipt: Receipt,
    effect: Effect,
    /// For the inbox alone.
    inventory: Option<Inventory>,
}

impl Task {
    pub(super) fn new(accepted: Accepted, source: Source, now: Duration, recovered: bool) -> Self {
        let (command, operation) = accepted.into_parts();
        let name = operation.name().cloned();
        let before = Before::of(&operation, recovered);
        let written =
            |name, aim| Kind::Component(Box::new(Execution::new(name, aim, command.value(), now, before)));
        let kind = match operation {
            Operation::Apply { name, spec } => written(name, Aim::Apply(spec)),
            Operation::Delete { name } => written(name, Aim::Delete),
            Operation::InventoryReport => {
                Kind::Inventory { limit: TimeLimit::new(command.value(), now, recovered), asked: None }
            }
        };
        Self { command, name, source, kind, due: now, backoff: Backoff::default(), ended: None }
    }

    /// See [`Execution::note_kept`].
    pub(super) fn note_kept(&mut self) {
        if let Kind::Component(execution) = &mut self.kind {
            execution.note_kept();
        }
    }

    /// Says that it is recorded, and begun.
    pub(super) fn begun(&self) {
        let command = self.command.value();
        let component = self.name().map_or("-", ComponentName::as_str);
        log::info!(
            "accepted command={} operation={} component={component} sequence={}",
            command.command_id,
            command.operation,
            command.sequence
        );
    }

    /// The component that it writes.
    pub(super) fn name(&self) -> Option<&ComponentName> {
        self.name.as_ref()
    }

    /// When to go on with it.
    pub(super) fn due(&self) -> Duration {
        self.due
    }
}

impl Leader {
    /// Goes on with the commands that are due; true where more are due at once.
    pub(super) fn execute(&mut self) -> Result<bool, Stop> {
        let Some(reign) = &mut self.reign else { return Ok(false) };
        let world = &self.world;
        let now = world.clock.monotonic();
        // Those that have waited longest go first.
        reign.tasks.sort_by_key(Task::due);
        let due = reign.tasks.partition_point(|task| task.due <= now);
        let unread = batch::run(
            world,
            &reign.tenure,
            &mut reign.tasks,
            0..due,
            |tasks, index| plan(world, index, tasks.get_mut(index)?),
            |tasks, planned| {
                if let Some(task) = tasks.get_mut(planned.key) {
                    send(world, task, &planned.write, planned.before);
                }
            },
        )?;
        for index in unread {
            if let Some(task) = reign.tasks.get_mut(index) {
                task.due = world.clock.monotonic().saturating_add(AGAIN);
            }
        }
        if record(world, reign)? {
            self.judge_at = Duration::ZERO;
        }
        let now = world.clock.monotonic();
        Ok(reign.tasks.iter().any(|task| task.due <= now))
    }

    /// Ends the commands that wait for the inventory.
    pub(super) fn inventory_read(&mut self, result: &Value, answered: u64, whole: &Inventory) {
        let Some(reign) = &mut self.reign else { return };
        for task in &mut reign.tasks {
            let waits = |asked: &u64| *asked <= answered;
            if matches!(&task.kind, Kind::Inventory { asked, .. } if asked.as_ref().is_some_and(waits)) {
                let stamp = self.world.stamp(task.source);
                let receipt = Receipt::succeeded(&stamp, task.command.value(), result.clone());
                finish(task, receipt, Effect::None, Some(whole.clone()));
            }
        }
    }
}

/// Reads what the command needs to know; a write is planned, everything else done at once.
fn plan(world: &World, key: usize, task: &mut Task) -> Option<Planned<usize>> {
    if task.ended.is_some() {
        return None;
    }
    let (wall, at) = (world.clock.wall(), world.clock.monotonic());
    let execution = match &mut task.kind {
        Kind::Component(execution) => execution,
        Kind::Inventory { limit, asked } => {
            if let Some(Failure { reason, message }) = limit.passed(wall, at, NOT_IN_TIME) {
                let (stamp, command) = (world.stamp(task.source), task.command.value());
                let receipt = Receipt::failed(&stamp, command, reason, &message);
                finish(task, receipt, Effect::None, None);
            } else {
                task.due = at.saturating_add(limit.rest(wall, at));
                asked.get_or_insert_with(|| world.board.ask_inventory());
            }
            return None;
        }
    };
    let (step, before, unsettled) = match components::get(&world.kube, execution.name()) {
        Ok(live) => {
            let step = execution.next(live.as_ref(), world.kube.namespace(), wall, at);
            let unsettled = matches!((&step, &live), (Step::Retry(_), Some(_))).then_some(NOT_WHOLE);
            (step, live, unsettled)
        }
        Err(error) => {
            let step = execution.unreadable(&error, wall, at);
            let refused = matches!((&step, &error), (Step::Retry(_), KubeError::Refused { .. }));
            (step, None, refused.then_some(NOT_ALLOWED))
        }
    };
    if let Some(message) = unsettled {
        log::warn!("component {message}: component={}", execution.name());
        world.notices.warning("NotSettled", About::Component(execution.name().to_string()), message);
    }
    match step {
        Step::Write(write) => Some(Planned { key, write, before: before.map(|live| live.generation()) }),
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
        Ending::Deleted { result, message } => {
            Receipt::succeeded(&stamp, command, result).with_message(&message)
        }
        Ending::Failed { reason, message, .. } => Receipt::failed(&stamp, command, reason, &message),
    };
    finish(task, receipt, effect, None);
}

fn finish(task: &mut Task, receipt: Receipt, effect: Effect, inventory: Option<Inventory>) {
    task.ended = Some(Ended { receipt, effect, inventory });
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
            Ok(()) => receipts.push((task.name().cloned(), receipt.clone(), inventory.clone())),
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
        if let (Some(ended), Some(name)) = (&task.ended, task.name()) {
            reign.keeper.ended(world, reign.store.state(), &ended.effect, name);
        }
    }
    reign.tasks.retain(|task| task.ended.is_none());
    for (name, receipt, inventory) in receipts {
        let (component, reason) =
            (name.as_ref().map_or("-", ComponentName::as_str), receipt.reason.map_or("-", Reason::as_str));
        let status = receipt.status.as_str();
        log::info!(
            "done command={} component={component} status={status} reason={reason}",
            receipt.command()
        );
        world.board.count(&receipt);
        world.desk.ended(&receipt, inventory.as_ref());
        world.outbox.push(receipt);
    }
    Ok(true)
}
