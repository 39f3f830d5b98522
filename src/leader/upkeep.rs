//! What was approved is kept: a component that was changed or deleted by hand is restored, a create of ours
//! that landed late is removed (CONTRACT sections 6 and 7).
//!
//! A sighting is a hint only: whatever is done rests on a fresh reading of the component, then of the Lease.
//! A name with an accepted command is left alone until the command has ended.

mod kept;

use super::batch::{self, AGAIN, Planned, TOGETHER};
use super::store::Stop;
use super::{Leader, World};
use crate::kube::components;
use crate::kube::watch::Sighting;
use crate::notices::About;
use crate::rules::component::Write;
use crate::rules::names::ComponentName;
use crate::rules::state::{Component, Effect, State};
use crate::rules::upkeep::{Glimpse, Reference, asks_for_a_look};
use kept::{Kept, look, publish};
use std::collections::BTreeMap;
use std::time::Duration;

/// All names that commands were about, and how each stands.
pub(super) struct Keeper(BTreeMap<ComponentName, Kept>);

impl Keeper {
    /// A new leader looks at everything once.
    pub(super) fn new(state: &State, now: Duration) -> Self {
        let kept = |component: &Component| {
            let reference = component.desired.as_ref().map(Reference::of_write);
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
            && asks_for_a_look(name, &glimpse, state, kept.reference.as_ref())
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
    pub(super) fn ended(&mut self, world: &World, state: &State, effect: &Effect, name: &ComponentName) {
        if state.component(name).is_none() {
            self.0.remove(name);
            return;
        }
        let kept = self.0.entry(name.clone()).or_default();
        let missed = kept.missed.take();
        kept.trouble = None;
        match effect {
            Effect::Applied(_, desired) => {
                kept.reference = Some(Reference::of_write(desired));
                kept.due = (desired.generation == 0).then_some(Duration::ZERO);
            }
            Effect::Deleted(..) => {
                kept.reference = None;
                kept.due = None;
            }
            // Whatever it was about to do, what stands is what succeeded before it.
            Effect::FailedMarked(..) | Effect::None => kept.due = Some(Duration::ZERO),
        }
        if missed.is_some_and(|glimpse| asks_for_a_look(name, &glimpse, state, kept.reference.as_ref())) {
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

    /// Sends a planned write: a delete is that of a late create.
    fn send(&mut self, world: &World, planned: &Planned<ComponentName>) {
        let Planned { key: name, write, before } = planned;
        let Some(kept) = self.0.get_mut(name) else { return };
        match components::send(&world.kube, name, write) {
            Ok(_) if matches!(write, Write::Delete { .. }) => {
                log::warn!("late create removed component={name}");
                let message = "a create of a command that is over landed late and was removed";
                world.notices.warning("LateCreateRemoved", About::Component(name.to_string()), message);
                kept.due = Some(world.clock.monotonic());
            }
            Ok(object) => kept.restored(world, name, *before, &object),
            Err(error) => kept.failed(world, name, Some(write), &error),
        }
    }
}

impl Leader {
    /// Looks at what is due, and restores it; true where more is due at once.
    pub(super) fn keep(&mut self) -> Result<bool, Stop> {
        let Some(reign) = &mut self.reign else { return Ok(false) };
        let (world, state) = (&self.world, reign.store.shared());
        let due = reign.keeper.all_due(world.clock.monotonic());
        let unread = batch::run(
            world,
            &reign.tenure,
            &mut reign.keeper,
            due,
            |keeper, name| look(world, &state, &name, keeper.0.get_mut(&name)?),
            |keeper, planned| keeper.send(world, &planned),
        )?;
        for name in unread {
            if let Some(kept) = reign.keeper.0.get_mut(&name) {
                kept.due = Some(world.clock.monotonic().saturating_add(AGAIN));
            }
        }
        let now = world.clock.monotonic();
        Ok(reign.keeper.due().is_some_and(|due| due <= now))
    }

    /// Takes in what the watch saw of one component.
    pub(super) fn sighted(&mut self, name: &str, glimpse: Glimpse) {
        if let (Some(reign), Some(name)) = (&mut self.reign, ComponentName::parse(name)) {
            reign.keeper.sighted(reign.store.state(), &name, glimpse, self.world.clock.monotonic());
        }
    }

    /// Takes in what the watch saw of all.
    pub(super) fn listed(&mut self, all: &[Sighting]) {
        let Some(reign) = &mut self.reign else { return };
        let (state, now) = (reign.store.state(), self.world.clock.monotonic());
        let all: BTreeMap<&str, &Sighting> = all.iter().map(|seen| (&*seen.name, seen)).collect();
        reign.keeper.0.retain(|name, _| state.component(name).is_some() || state.busy(name).is_some());
        let names: Vec<ComponentName> = reign.keeper.0.keys().cloned().collect();
        for name in names {
            let seen = all.get(name.as_str()).map_or(Glimpse::Gone, |seen| glimpse(seen));
            reign.keeper.sighted(state, &name, seen, now);
        }
    }
}

/// A component as the watch saw it.
pub(super) fn glimpse(seen: &Sighting) -> Glimpse {
    let reference = Reference { uid: seen.uid.clone(), generation: seen.generation };
    if seen.terminating { Glimpse::Going } else { Glimpse::There(reference, seen.created) }
}
