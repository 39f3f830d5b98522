//! One component that is kept: how it stands, and what follows from a look and from a write's answer.
//!
//! Nothing of a name with a command under way. What is wanted is verified again at each look; where it is not what
//! the state says, the component is left as it is, whatever the marks say. No write here: one is planned, and sent by `batch::run`.

use super::super::World;
use super::super::batch::Planned;
use crate::board::Condition;
use crate::kube::{KubeError, Object, components};
use crate::notices::About;
use crate::rules::component::Write;
use crate::rules::messages::Command;
use crate::rules::names::ComponentName;
use crate::rules::state::State;
use crate::rules::upkeep::{self, Attempts, Glimpse, Reference, Repairs, SLOW, Upkeep, WINDOW, Wanted};
use crate::rules::verdict;
use std::time::Duration;

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
    pub(super) attempts: Attempts,
    /// Nothing is done until the object that is being deleted is gone.
    pub(super) waits: bool,
    pub(super) trouble: Option<String>,
}

/// Reads one component and decides; what needs no write is done at once.
pub(super) fn look(
    world: &World,
    state: &State,
    name: &ComponentName,
    kept: &mut Kept,
) -> Option<Planned<ComponentName>> {
    let now = world.clock.monotonic();
    kept.due = None;
    kept.waits = false;
    if state.busy(name).is_some() {
        return None;
    }
    let live = match components::get(&world.kube, name) {
        Ok(live) => live,
        Err(error) => {
            kept.failed(world, name, None, &error);
            publish(world, state, name, kept);
            return None;
        }
    };
    let before = live.as_ref().map(Object::generation);
    let metadata = (world.kube.namespace(), kept.attempts.bare);
    let step = match wanted(world, state, name) {
        Ok(wanted) => {
            upkeep::decide(name, live.as_ref(), state, wanted.as_ref(), kept.reference.as_ref(), metadata)
        }
        Err(broken) => {
            kept.trouble(name, &broken);
            Upkeep::Leave
        }
    };
    let planned = match step {
        Upkeep::InSync => {
            kept.in_sync(live.as_ref());
            None
        }
        Upkeep::Leave => None,
        Upkeep::Wait => {
            kept.trouble(name, "waits for the former object to be deleted");
            kept.due = Some(now.saturating_add(SLOW));
            kept.waits = true;
            None
        }
        Upkeep::RemoveLate(write) => {
            kept.due = Some(now);
            Some(Planned { key: name.clone(), write, before })
        }
        Upkeep::Restore(write) => {
            let due = kept.repairs.due(*kept.noticed.get_or_insert(now));
            if now < due {
                kept.due = Some(due);
                kept.trouble(
                    name,
                    &format!("contested: changed again and again; restored {}", every_window()),
                );
                None
            } else {
                // Until it is answered, or dropped for lack of time, it is to be done.
                kept.due = Some(now);
                Some(Planned { key: name.clone(), write, before })
            }
        }
    };
    publish(world, state, name, kept);
    planned
}

/// What is desired of `name`, its envelope verified again; or why it cannot be used.
fn wanted(world: &World, state: &State, name: &ComponentName) -> Result<Option<Wanted>, String> {
    let Some(desired) = state.component(name).and_then(|component| component.desired.as_ref()) else {
        return Ok(None);
    };
    let is_its = |command: &Command| command.sequence.get() == desired.sequence;
    let accepted = verdict::reverify(&desired.envelope, &world.trust, is_its)
        .map_err(|refusal| format!("its envelope does not verify ({}): left as it is", refusal.reason))?;
    let wanted = Wanted::of(accepted, name);
    wanted.map(Some).ok_or_else(|| "its envelope is of another command: left as it is".to_owned())
}

impl Kept {
    fn in_sync(&mut self, live: Option<&Object>) {
        self.reference = live.map(Reference::of);
        self.noticed = None;
        self.attempts.bare = false;
        self.settle_down();
    }

    fn settle_down(&mut self) {
        self.trouble = None;
        self.attempts.succeeded();
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
                let message = format!(
                    "changed again and again: restored {} from now on; find who else writes it",
                    every_window()
                );
                world.notices.warning("Contested", about(), &message);
            }
        }
        let condition = Condition { reference: self.reference.clone(), trouble: None };
        world.board.stands(name, Some(condition));
    }

    /// Takes note that `write`, or the reading before it, failed.
    pub(super) fn failed(
        &mut self,
        world: &World,
        name: &ComponentName,
        write: Option<&Write>,
        error: &KubeError,
    ) {
        let pause = self.attempts.pause(error, write, world.clock.wall(), world.clock.random());
        if pause.is_some() {
            self.trouble(name, &error.to_string());
        }
        self.due = Some(world.clock.monotonic().saturating_add(pause.unwrap_or_default()));
    }

    /// Says once what is in the way.
    fn trouble(&mut self, name: &ComponentName, why: &str) {
        if self.trouble.as_deref() != Some(why) {
            log::warn!("component not kept as signed component={name} why={why:?}");
            self.trouble = Some(why.to_owned());
        }
    }
}

fn every_window() -> String {
    format!("every {} minutes", WINDOW.as_secs().div_euclid(60))
}

pub(super) fn publish(world: &World, state: &State, name: &ComponentName, kept: &Kept) {
    let desired = state.component(name).is_some_and(|component| component.desired.is_some());
    let condition = Condition { reference: kept.reference.clone(), trouble: kept.trouble.clone() };
    world.board.stands(name, desired.then_some(condition));
}
