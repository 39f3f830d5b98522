//! Keeping what was approved: what to do about one component, given how it stands (CONTRACT sections 6, 7).
//!
//! Drift is judged by uid and generation: the generation of our own last write is the reference, so that
//! what the CRD's defaults or an admission webhook made of the spec is no drift, and every later change is.

use super::backoff::{Backoff, retry_after};
use super::component::{self, Author, CONFLICTS, Write};
use super::kubernetes::{KubeError, Object};
use super::messages::Operation;
use super::names::ComponentName;
use super::state::{Desired, State};
use super::verdict::Accepted;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Repairs of one component within [`WINDOW`] after which it counts as contested.
const REPAIRS: usize = 5;
/// The pause between two repairs of a contested component; a component that stood as long is not contested.
pub const WINDOW: Duration = Duration::from_mins(10);
/// Pause after an answer that will not soon be another (403, 422, a namespace that is ending), and before
/// the next look at an object that is being deleted: the watch says sooner.
pub const SLOW: Duration = Duration::from_secs(30);

/// An object as our last write left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
}

impl Reference {
    /// The object as it is now.
    #[must_use]
    pub fn of(object: &Object) -> Self {
        Self { uid: object.uid().unwrap_or("").to_owned(), generation: object.generation() }
    }

    /// The object as the command's own write left it.
    #[must_use]
    pub fn of_write(desired: &Desired) -> Self {
        Self { uid: desired.uid.clone(), generation: desired.generation }
    }
}

/// What a component is to be; its envelope was verified just now.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The signed spec.
    pub spec: Map<String, Value>,
    /// The command that asked for it.
    pub author: Author,
}

impl Wanted {
    /// What an apply of `name` asks for; none of any other command.
    #[must_use]
    pub fn of(accepted: Accepted, name: &ComponentName) -> Option<Self> {
        match accepted.into_parts() {
            (command, Operation::Apply { name: signed, spec }) if signed == *name => {
                Some(Self { spec, author: Author::of(command.value()) })
            }
            (_, Operation::Apply { .. } | Operation::Delete { .. } | Operation::InventoryReport) => None,
        }
    }
}

/// What to do about a component.
#[derive(Clone, Debug, PartialEq)]
pub enum Upkeep {
    /// It is as it should be.
    InSync,
    /// Nothing is wanted, and what is there, if anything, is not ours to remove.
    Leave,
    /// It is being deleted, and not written to until it is gone.
    Wait,
    /// A create of ours that landed late: to be deleted.
    RemoveLate(Write),
    /// To be made what was signed.
    Restore(Write),
}

/// Decides, given a fresh reading of the component; `bare` where its metadata takes nothing of ours.
#[must_use]
pub fn decide(
    name: &ComponentName,
    live: Option<&Object>,
    state: &State,
    wanted: Option<&Wanted>,
    reference: Option<&Reference>,
    (namespace, bare): (&str, bool),
) -> Upkeep {
    if let Some(live) = live
        && component::created_by(live).is_some_and(|created| state.is_late_create(name, created))
    {
        return remove(live);
    }
    let Some(Wanted { spec, author }) = wanted else { return Upkeep::Leave };
    let Some(live) = live else {
        return Upkeep::Restore(Write::Create(component::created(namespace, name, spec, author)));
    };
    if live.terminating() {
        return Upkeep::Wait;
    }
    if component::same_spec(live, spec) || reference == Some(&Reference::of(live)) {
        return Upkeep::InSync;
    }
    Upkeep::Restore(Write::Replace(component::replaced(live, spec, author, bare)))
}

fn remove(live: &Object) -> Upkeep {
    match (live.terminating(), live.uid(), live.resource_version()) {
        (false, Some(uid), Some(version)) => {
            Upkeep::RemoveLate(Write::Delete { uid: uid.to_owned(), resource_version: version.to_owned() })
        }
        (_, _, _) => Upkeep::Wait,
    }
}

/// How the writes of one component fare.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    conflicts: u32,
    backoff: Backoff,
    /// Its metadata takes nothing of ours.
    pub bare: bool,
}

impl Attempts {
    /// It stands as it should.
    pub fn succeeded(&mut self) {
        *self = Self { bare: self.bare, ..Self::default() };
    }

    /// The pause after the failure of `write`, or of the reading before it; none where it is looked at again at once.
    pub fn pause(
        &mut self,
        error: &KubeError,
        write: Option<&Write>,
        now: Timestamp,
        random: u64,
    ) -> Option<Duration> {
        match (error, write) {
            (KubeError::Refused { .. }, Some(Write::Replace(_)))
                if error.annotations_full() && !self.bare =>
            {
                self.bare = true;
                None
            }
            (KubeError::Conflict(_) | KubeError::NotFound(_), Some(_)) if self.conflicts < CONFLICTS => {
                self.conflicts = self.conflicts.saturating_add(1);
                None
            }
            (KubeError::Refused { .. } | KubeError::NotFound(_), _) => Some(SLOW),
            (
                KubeError::Conflict(_)
                | KubeError::Gone(_)
                | KubeError::Unavailable { .. }
                | KubeError::Unanswered { .. },
                _,
            ) => retry_after(error.retry_after(), now).or_else(|| Some(self.backoff.next(random))),
        }
    }
}

/// A component as the watch saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Glimpse {
    /// It is not there.
    Gone,
    /// It is being deleted.
    Going,
    /// The object, and the `created` that it carries.
    There(Reference, Option<u64>),
}

/// Whether what was seen of `name` asks for a fresh reading: it is not as our last write left it, and not older.
#[must_use]
pub fn asks_for_a_look(
    name: &ComponentName,
    glimpse: &Glimpse,
    state: &State,
    reference: Option<&Reference>,
) -> bool {
    let desired = state.component(name).is_some_and(|component| component.desired.is_some());
    match (glimpse, reference) {
        (Glimpse::Gone | Glimpse::Going, _) => desired,
        (Glimpse::There(_, created), _) if !desired => created.is_some_and(|c| state.is_late_create(name, c)),
        (Glimpse::There(seen, _), Some(reference)) if seen.uid == reference.uid => {
            seen.generation > reference.generation
        }
        (Glimpse::There(..), _) => true,
    }
}

/// The repairs of one component: a hand that changes it again and again is met with pauses.
#[derive(Clone, Debug, Default)]
pub struct Repairs {
    recent: Vec<Duration>,
    contested: bool,
}

impl Repairs {
    /// When a drift that was noticed at `noticed` may be repaired.
    pub fn due(&mut self, noticed: Duration) -> Duration {
        let Some(again) = self.recent.last().map(|last| last.saturating_add(WINDOW)) else { return noticed };
        if noticed >= again {
            *self = Self::default();
        }
        if self.contested { again } else { noticed }
    }

    /// Notes a repair.
    pub fn made(&mut self, at: Duration) {
        self.recent.retain(|repair| at.saturating_sub(*repair) < WINDOW);
        self.recent.push(at);
        self.contested |= self.recent.len() >= REPAIRS;
    }

    /// Whether somebody keeps changing the component.
    #[must_use]
    pub fn contested(&self) -> bool {
        self.contested
    }
}
