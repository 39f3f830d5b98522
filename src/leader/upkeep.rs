//! What was approved is kept: a component that was changed or deleted by hand is restored, a create of ours
//! that landed late is removed (CONTRACT sections 6 and 7).
//!
//! A sighting is a hint only: whatever is done rests on a fresh reading of the component, then of the Lease.
//! A name with an accepted command is left alone until the command has ended.

use super::execute::{AGAIN, HELD_BACK, HELD_MOST, READ_FOR, TOGETHER};
use super::store::{self, Stop};
use super::{Leader, World};
use crate::board::Condition;
use crate::event::Event;
use crate::kube::watch::Sighting;
use crate::kube::{KubeError, Object, components};
use crate::notices::About;
use crate::rules::backoff::{Backoff, retry_after};
use crate::rules::component::{Author, Write};
use crate::rules::messages::Operation;
use crate::rules::names::ComponentName;
use crate::rules::state::{Component, Effect, State};
use crate::rules::upkeep::{self, Reference, Repairs, Upkeep, Wanted};
use crate::rules::verdict;
use std::collections::BTreeMap;
use std::time::Duration;

/// Pause after an answer that will not soon be another (403, 422, a namespace that is ending), and before
/// the next look at an object that is being deleted: the watch says sooner.
const SLOW: Duration = Duration::from_secs(30);
/// Conflicts that are answered at once; somebody who writes all the time is met with pauses.
const CONFLICTS: u32 = 3;

/// All names that commands were about, and how each stands.
pub(super) struct Keeper(BTreeMap<ComponentName, Kept>);

#[derive(Default)]
struct Kept {
    /// The object as our last write left it.
    reference: Option<Reference>,
    /// When to look at it; none while nothing says that it differs.
    due: Option<Duration>,
    /// What was last seen while a command of this name was under way.
    missed: Option<Glimpse>,
    /// Since when it differs.
    noticed: Option<Duration>,
    repairs: Repairs,
    backoff: Backoff,
    conflicts: u32,
    /// Its metadata takes nothing of ours.
    bare: bool,
    /// Nothing is done until the object that is being deleted is gone.
    waits: bool,
    trouble: Option<String>,
}

/// A sighting of one name.
enum Glimpse {
    /// It is not there.
    Gone,
    /// It is being deleted.
    Going,
    /// The object, and the `created` that it carries.
    There(Reference, Option<u64>),
}

/// A write that is planned, and the generation of the reading that it rests on.
struct Check {
    name: ComponentName,
    write: Write,
    before: Option<i64>,
    late: bool,
}

impl Keeper {
    /// A new leader looks at everything once.
    pub(super) fn new(state: &State, now: Duration) -> Self {
        let kept = |component: &Component| {
            let desired = component.desired.as_ref();
            let reference = desired.map(|d| Reference { uid: d.uid.clone(), generation: d.generation });
            Kept { reference, due: Some(now), ..Kept::default() }
        };
        Self(state.components().map(|(name, component)| (name.clone(), kept(component))).collect())
    }

    /// When the next name is to be looked at.
    pub(super) fn due(&self) -> Option<Duration> {
        self.0.values().filter_map(|kept| kept.due).min()
    }

    fn sighted(&mut self, state: &State, name: &ComponentName, glimpse: Glimpse, now: Duration) {
        if state.busy(name).is_some() {
            self.0.entry(name.clone()).or_default().missed = Some(glimpse);
        } else if let Some(kept) = self.0.get_mut(name)
            && differs(state, name, kept, &glimpse)
        {
            let over = kept.waits && !matches!(glimpse, Glimpse::Going);
            kept.due = Some(kept.due.filter(|_| !over).unwrap_or(now));
        }
    }

    /// Other keys count from now on: whatever was left for its envelope is looked at again.
    pub(super) fn look_again(&mut self, now: Duration) {
        self.0.values_mut().for_each(|kept| kept.due = Some(kept.due.unwrap_or(now)));
    }

    /// Takes note of a command's end.
    pub(super) fn ended(
        &mut self,
        world: &World,
        state: &State,
        effect: &Effect,
        name: Option<&ComponentName>,
    ) {
        let Some(name) = name else { return };
        if state.component(name).is_none() {
            self.0.remove(name);
            return;
        }
        let kept = self.0.entry(name.clone()).or_default();
        let missed = kept.missed.take();
        kept.trouble = None;
        match effect {
            Effect::Applied { uid, generation, .. } => {
                kept.reference = Some(Reference { uid: uid.clone(), generation: *generation });
                kept.due = (*generation == 0).then_some(Duration::ZERO);
            }
            Effect::Deleted { .. } => {
                kept.reference = None;
                kept.due = None;
            }
            // Whatever it was about to do, what stands is what succeeded before it.
            Effect::FailedAbsent { .. } | Effect::None => kept.due = Some(Duration::ZERO),
        }
        if missed.is_some_and(|glimpse| differs(state, name, kept, &glimpse)) {
            kept.due = Some(Duration::ZERO);
        }
        publish(world, state, name, kept);
    }

    /// The names that are due at `now`, those that have waited longest first.
    fn all_due(&self, now: Duration) -> Vec<ComponentName> {
        let due = self.0.iter().filter_map(|(name, kept)| Some((kept.due.filter(|due| *due <= now)?, name)));
        let mut due: Vec<_> = due.collect();
        due.sort();
        due.into_iter().take(TOGETHER).map(|(_, name)| name.clone()).collect()
    }

    /// Sends a planned write.
    fn send(&mut self, world: &World, check: Check) {
        let Check { name, write, before, late } = check;
        let Some(kept) = self.0.get_mut(&name) else { return };
        let kube = &world.kube;
        let answer = match &write {
            Write::Create(object) => components::create(kube, object),
            Write::Replace(object) | Write::Settle(object) => components::replace(kube, &name, object),
            Write::Delete { uid, resource_version } => components::delete(kube, &name, uid, resource_version),
        };
        let now = world.clock.monotonic();
        match answer {
            Ok(_) if late => {
                log::warn!("late create removed component={name}");
                let message = "a create of a command that is over landed late and was removed";
                world.notices.warning("LateCreateRemoved", About::Component(name.to_string()), message);
                kept.due = Some(now);
            }
            Ok(object) => kept.restored(world, &name, before, &object),
            Err(error) => kept.refused(world, &name, &write, &error),
        }
    }
}

/// Whether what was seen asks for a look.
fn differs(state: &State, name: &ComponentName, kept: &Kept, glimpse: &Glimpse) -> bool {
    let desired = state.component(name).is_some_and(|component| component.desired.is_some());
    match (glimpse, &kept.reference) {
        (Glimpse::Gone | Glimpse::Going, _) => desired,
        (Glimpse::There(_, created), _) if !desired => created.is_some_and(|c| state.is_late_create(name, c)),
        (Glimpse::There(seen, _), Some(reference)) if seen.uid == reference.uid => {
            seen.generation > reference.generation
        }
        (Glimpse::There(..), _) => true,
    }
}

/// Reads one component and decides; what needs no write is done at once.
fn look(world: &World, state: &State, name: &ComponentName, kept: &mut Kept) -> Option<Check> {
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
    match verdict::reverify(&desired.envelope, &world.trust) {
        Ok((command, Operation::Apply { name: signed, spec })) if signed == *name => {
            let command = command.value();
            let author = Author { command_id: command.command_id.clone(), sequence: command.sequence };
            Ok(Some(Wanted { spec, author }))
        }
        Ok(_) => Err("its envelope is of another command: left as it is".to_owned()),
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

    fn restored(&mut self, world: &World, name: &ComponentName, before: Option<i64>, object: &Object) {
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

    fn refused(&mut self, world: &World, name: &ComponentName, write: &Write, error: &KubeError) {
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

fn publish(world: &World, state: &State, name: &ComponentName, kept: &Kept) {
    let desired = state.component(name).is_some_and(|component| component.desired.is_some());
    let condition = Condition { reference: kept.reference.clone(), trouble: kept.trouble.clone() };
    world.board.stands(name, desired.then_some(condition));
}

impl Leader {
    /// Looks at what is due, and restores it; true where more is due at once.
    pub(super) fn keep(&mut self) -> Result<bool, Stop> {
        let Some(reign) = &mut self.reign else { return Ok(false) };
        let world = &self.world;
        let (now, mut checks, mut held) = (world.clock.monotonic(), Vec::new(), 0_usize);
        for name in reign.keeper.all_due(now) {
            store::may_act(world, &reign.tenure)?;
            let Some(kept) = reign.keeper.0.get_mut(&name) else { continue };
            if let Some(check) = look(world, reign.store.state(), &name, kept) {
                held = held.saturating_add(check.write.weight());
                checks.push(check);
            }
            if world.clock.monotonic().saturating_sub(now) >= READ_FOR || held >= HELD_MOST {
                break;
            }
        }
        if !checks.is_empty() && !store::lease_read(world, &reign.tenure)? {
            let again = world.clock.monotonic().saturating_add(AGAIN);
            for Check { name, .. } in checks.drain(..) {
                if let Some(kept) = reign.keeper.0.get_mut(&name) {
                    kept.due = Some(again);
                }
            }
        }
        let began = world.clock.monotonic();
        for check in checks {
            store::may_act(world, &reign.tenure)?;
            reign.keeper.send(world, check);
            // Commands come first: the rest is read anew.
            if world.clock.monotonic().saturating_sub(began) >= HELD_BACK {
                break;
            }
        }
        let now = world.clock.monotonic();
        Ok(reign.keeper.due().is_some_and(|due| due <= now))
    }

    /// Takes in what the watch saw.
    pub(super) fn sighted(&mut self, event: &Event) {
        let Some(reign) = &mut self.reign else { return };
        let now = self.world.clock.monotonic();
        let state = reign.store.state();
        let glimpse = |seen: &Sighting| {
            let reference = Reference { uid: seen.uid.clone(), generation: seen.generation };
            if seen.terminating { Glimpse::Going } else { Glimpse::There(reference, seen.created) }
        };
        match event {
            Event::Seen(seen) => {
                if let Some(name) = ComponentName::parse(&seen.name) {
                    reign.keeper.sighted(state, &name, glimpse(seen), now);
                }
            }
            Event::Gone(name) => {
                if let Some(name) = ComponentName::parse(name) {
                    reign.keeper.sighted(state, &name, Glimpse::Gone, now);
                }
            }
            Event::Listed(all) => {
                let all: BTreeMap<&str, &Sighting> = all.iter().map(|seen| (&*seen.name, seen)).collect();
                reign
                    .keeper
                    .0
                    .retain(|name, _| state.component(name).is_some() || state.busy(name).is_some());
                let names: Vec<ComponentName> = reign.keeper.0.keys().cloned().collect();
                for name in names {
                    let seen = all.get(name.as_str()).map_or(Glimpse::Gone, |seen| glimpse(seen));
                    reign.keeper.sighted(state, &name, seen, now);
                }
            }
            Event::Leadership
            | Event::Trust(_)
            | Event::Delivered { .. }
            | Event::Acknowledged(_)
            | Event::Filed(_)
            | Event::Inventory { .. } => {}
        }
    }
}
