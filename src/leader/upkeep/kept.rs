//! One component that is kept: how it stands, and what follows from a look and from a write's answer.

use super::super::World;
use crate::board::Condition;
use crate::kube::{KubeError, Object, components};
use crate::notices::About;
use crate::rules::backoff::{Backoff, retry_after};
use crate::rules::component::Write;
use crate::rules::messages::Command;
use crate::rules::names::ComponentName;
use crate::rules::state::State;
use crate::rules::upkeep::{self, Glimpse, Reference, Repairs, Upkeep, Wanted};
use crate::rules::verdict;
use std::time::Duration;

/// Pause after an answer that will not soon be another (403, 422, a namespace that is ending), and before
/// the next look at an object that is being deleted: the watch says sooner.
const SLOW: Duration = Duration::from_secs(30);
/// Conflicts that are answered at once; somebody who writes all the time is met with pauses.
const CONFLICTS: u32 = 3;

#[derive(Default)]
pub(super) struct Kept {
    /// The object as our last write left it.
    pub(super) reference: Option<Reference>,
    /// When to look at it; none while nothing says that it differs.
    pub(super) due: Option<Duration>,
    /// What was last seen while a command of this name was under way.
    pub(super) missed: Option<Glimpse>,
    /// Since when it differs.
    pub(super) noticed: Option<Duration>,
    pub(super) repairs: Repairs,
    pub(super) backoff: Backoff,
    pub(super) conflicts: u32,
    /// Its metadata takes nothing of ours.
    pub(super) bare: bool,
    /// Nothing is done until the object that is being deleted is gone.
    pub(super) waits: bool,
    pub(super) trouble: Option<String>,
}

/// A write that is planned, and the generation of the reading that it rests on.
pub(super) struct Check {
    pub(super) name: ComponentName,
    pub(super) write: Write,
    pub(super) before: Option<i64>,
    pub(super) late: bool,
}

/// Reads one component and decides; what needs no write is done at once.
pub(super) fn look(world: &World, state: &State, name: &ComponentName, kept: &mut Kept) -> Option<Check> {
    let now = world.clock.monotonic();
    kept.due = None;
    kept.waits = false;
    if state.busy(name).is_some() {
        return None;
    }
    let live = match components::get(&world.kube, name) {
        Ok(live) => live,
        Err(error) => {
            kept.trouble(name, &error.to_string());
            kept.retry(world, &error);
            publish(world, state, name, kept);
            return None;
        }
    };
    let wanted = wanted(world, state, name);
    let broken = wanted.as_ref().err().cloned();
    let before = live.as_ref().map(Object::generation);
    let metadata = (world.kube.namespace(), kept.bare);
    let wanted = wanted.ok().flatten();
    let step = upkeep::decide(name, live.as_ref(), state, wanted.as_ref(), kept.reference.as_ref(), metadata);
    let check = match step {
        Upkeep::InSync => {
            kept.in_sync(live.as_ref());
            None
        }
        Upkeep::Leave => {
            if let Some(broken) = broken {
                kept.trouble(name, &broken);
            }
            None
        }
        Upkeep::Wait => {
            kept.trouble(name, "waits for the former object to be deleted");
            kept.due = Some(now.saturating_add(SLOW));
            kept.waits = true;
            None
        }
        Upkeep::RemoveLate(write) => {
            kept.due = Some(now);
            Some(Check { name: name.clone(), write, before, late: true })
        }
        Upkeep::Restore(write) => {
            let due = kept.repairs.due(*kept.noticed.get_or_insert(now));
            if now < due {
                kept.due = Some(due);
                kept.trouble(name, "contested: changed again and again; restored every 10 minutes");
                None
            } else {
                // Until it is answered, or dropped for lack of time, it is to be done.
                kept.due = Some(now);
                Some(Check { name: name.clone(), write, before, late: false })
            }
        }
    };
    publish(world, state, name, kept);
    check
}

/// What is desired of `name`, its envelope verified again; or why it cannot be used.
fn wanted(world: &World, state: &State, name: &ComponentName) -> Result<Option<Wanted>, String> {
    let Some(desired) = state.component(name).and_then(|component| component.desired.as_ref()) else {
        return Ok(None);
    };
    let is_its = |command: &Command| command.sequence.get() == desired.sequence;
    match verdict::reverify(&desired.envelope, &world.trust, is_its) {
        Ok(accepted) => match Wanted::of(accepted, name) {
            Some(wanted) => Ok(Some(wanted)),
            None => Err("its envelope is of another command: left as it is".to_owned()),
        },
        Err(refusal) => {
            Err(format!("its envelope does not verify ({}): left as it is", refusal.reason.as_str()))
        }
    }
}

impl Kept {
    fn in_sync(&mut self, live: Option<&Object>) {
        self.reference = live.map(Reference::of);
        self.noticed = None;
        self.bare = false;
        self.settle_down();
    }

    fn settle_down(&mut self) {
        self.trouble = None;
        self.conflicts = 0;
        self.backoff.reset();
        self.due = None;
    }

    pub(super) fn restored(
        &mut self,
        world: &World,
        name: &ComponentName,
        before: Option<i64>,
        object: &Object,
    ) {
        self.reference = Some(Reference::of(object));
        self.settle_down();
        self.noticed = None;
        // A write that changed nothing found the defaults of the CRD, not a drift.
        if before != Some(object.generation()) {
            self.repairs.made(world.clock.monotonic());
            world.board.count_repair();
            log::warn!("component restored component={name} generation={}", object.generation());
            let about = || About::Component(name.to_string());
            world.notices.normal("ComponentRestored", about(), "restored to its signed spec");
            if self.repairs.contested() {
                let message = "changed again and again: restored every 10 minutes from now on";
                world.notices.warning("Contested", about(), message);
            }
        }
        let condition = Condition { reference: self.reference.clone(), trouble: None };
        world.board.stands(name, Some(condition));
    }

    pub(super) fn refused(&mut self, world: &World, name: &ComponentName, write: &Write, error: &KubeError) {
        let now = world.clock.monotonic();
        let full = matches!(error, KubeError::Refused { status: 422, message }
            if message.contains("metadata.annotations"));
        if matches!(write, Write::Replace(_)) && full && !self.bare {
            self.bare = true;
            self.due = Some(now);
            return;
        }
        if matches!(error, KubeError::Conflict(_) | KubeError::NotFound(_)) && self.conflicts < CONFLICTS {
            self.conflicts = self.conflicts.saturating_add(1);
            self.due = Some(now);
            return;
        }
        self.trouble(name, &error.to_string());
        self.retry(world, error);
    }

    fn retry(&mut self, world: &World, error: &KubeError) {
        let pause = match error {
            KubeError::Refused { .. } | KubeError::NotFound(_) => SLOW,
            KubeError::Conflict(_) | KubeError::Gone(_) => self.backoff.next(world.clock.random()),
            KubeError::Unavailable { retry_after: told, .. }
            | KubeError::Unanswered { retry_after: told, .. } => {
                let told = retry_after(told.as_deref(), world.clock.wall());
                told.unwrap_or_else(|| self.backoff.next(world.clock.random()))
            }
        };
        self.due = Some(world.clock.monotonic().saturating_add(pause));
    }

    /// Says once what is in the way.
    fn trouble(&mut self, name: &ComponentName, why: &str) {
        if self.trouble.as_deref() != Some(why) {
            log::warn!("component not kept as signed component={name} why={why:?}");
            self.trouble = Some(why.to_owned());
        }
    }
}

pub(super) fn publish(world: &World, state: &State, name: &ComponentName, kept: &Kept) {
    let desired = state.component(name).is_some_and(|component| component.desired.is_some());
    let condition = Condition { reference: kept.reference.clone(), trouble: kept.trouble.clone() };
    world.board.stands(name, desired.then_some(condition));
}
