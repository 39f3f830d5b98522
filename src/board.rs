//! What the reporter shows: put there by the leader (the state, the counts, how each component stands) and
//! by the watch (what is there).
//!
//! For the report alone: nothing that is written to the cluster rests on it. Of what no command names nothing is kept.

use crate::kube::watch::{Listed, STATUSES_BYTES, Sighting, Status};
use crate::rules::json::{parse_foreign, weight};
use crate::rules::link::Link;
use crate::rules::messages::{self, Receipt};
use crate::rules::names::ComponentName;
use crate::rules::state::State;
use crate::rules::upkeep::Reference;
use crate::threads::Shared;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What all statuses of a report may weigh, in units of 32 bytes ([`weight()`]): 16 MiB. Others are left out and marked.
const STATUSES_WEIGHT: usize = 512 * 1024;

/// The board, shared by the threads of one process.
#[derive(Default)]
pub struct Board {
    /// Told of by the leader and the watch. The reporter waits for its news, and is the only one that heeds it; the watch
    /// waits for the beginning of a leadership, and looks after its pause whether it has ended.
    pub shown: Shared<Shown>,
    /// What the watch saw last of the components that [`Board::wants`]; none until it has seen all.
    live: Mutex<Option<BTreeMap<String, Live>>>,
}

/// Since when a replica leads (wall, monotonic).
pub type Since = (Timestamp, Duration);

/// What the leader shows.
#[derive(Clone, Default)]
pub struct Shown {
    /// Since when this replica leads.
    pub reign: Option<Since>,
    /// The state as it was last written here.
    pub state: Option<Arc<State>>,
    /// How many inventories were asked for so far; see [`Board::ask_inventory`].
    pub asked: u64,
    /// The status of a component that is kept has changed, or the manager is back.
    pub status_changed: bool,
    /// The state takes no more commands.
    pub full: bool,
    /// Commands that ended, other than by a refusal.
    pub executed: u64,
    /// Refusals by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Components that were restored.
    pub repaired: u64,
    /// Periods without the manager.
    pub offline_periods: u64,
    conditions: Arc<BTreeMap<ComponentName, Condition>>,
}

/// How a component stands, as the leader found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The object that is in sync.
    pub reference: Option<Reference>,
    /// Why it is not, where something is in the way.
    pub trouble: Option<String>,
}

#[derive(PartialEq)]
struct Live {
    reference: Reference,
    status: Status,
}

impl From<(Sighting, Status)> for Live {
    fn from((sighting, status): (Sighting, Status)) -> Self {
        let reference = Reference { uid: sighting.uid, generation: sighting.generation };
        Self { reference, status }
    }
}

impl Board {
    fn live(&self) -> MutexGuard<'_, Option<BTreeMap<String, Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This replica leads since `wall` and `since` (monotonic), with this state.
    pub fn lead(&self, wall: Timestamp, since: Duration, state: Arc<State>) {
        self.shown.tell(|shown| {
            shown.reign = Some((wall, since));
            shown.state = Some(state);
            shown.conditions = Arc::default();
        });
    }

    /// This replica does not lead any more.
    pub fn stepped_down(&self) {
        self.shown.lock().reign = None;
    }

    /// The state as it was last written.
    pub fn publish(&self, state: Arc<State>) {
        self.shown.lock().state = Some(state);
    }

    /// Whether the state takes no more commands; whether that is new.
    pub fn full(&self, full: bool) -> bool {
        std::mem::replace(&mut self.shown.lock().full, full) != full
    }

    /// Counts an outcome.
    pub fn count(&self, receipt: &Receipt) {
        let mut shown = self.shown.lock();
        let count = match (receipt.status, receipt.reason) {
            (messages::Status::Refused, Some(reason)) => shown.refused.entry(reason.as_str()).or_default(),
            (messages::Status::Succeeded | messages::Status::Failed | messages::Status::Refused, _) => {
                &mut shown.executed
            }
        };
        *count = count.saturating_add(1);
    }

    /// The link has changed: periods without the manager are counted, and a report is due once it is back.
    pub fn link(&self, link: Link) {
        let mut shown = self.shown.lock();
        match link {
            Link::Offline => shown.offline_periods = shown.offline_periods.saturating_add(1),
            Link::Connecting => {}
            Link::Online => {
                shown.status_changed = true;
                drop(shown);
                self.shown.notify();
            }
        }
    }

    /// Counts a component that was restored.
    pub fn count_repair(&self) {
        let mut shown = self.shown.lock();
        shown.repaired = shown.repaired.saturating_add(1);
    }

    /// How `name` stands; none where nothing is wanted of it any more.
    pub fn stands(&self, name: &ComponentName, condition: Option<Condition>) {
        let mut shown = self.shown.lock();
        let conditions = Arc::make_mut(&mut shown.conditions);
        if conditions.get(name) == condition.as_ref() {
            return;
        }
        match condition {
            Some(condition) => conditions.insert(name.clone(), condition),
            None => conditions.remove(name),
        };
        shown.status_changed = true;
        drop(shown);
        self.shown.notify();
    }

    /// Asks for an inventory whose reading begins after this; the number that its
    /// [`Event::Inventory`](crate::event::Event::Inventory) will have reached.
    pub fn ask_inventory(&self) -> u64 {
        let mut asked = 0;
        self.shown.tell(|shown| {
            shown.asked = shown.asked.wrapping_add(1);
            asked = shown.asked;
        });
        asked
    }

    /// All components that [`Board::wants`], as the watch found them.
    pub fn listed(&self, components: Vec<Listed>) {
        let named = |listed: Listed| (listed.0.name.clone(), listed.into());
        let found: BTreeMap<String, Live> = components.into_iter().map(named).collect();
        let differs = self.live().as_ref() != Some(&found);
        *self.live() = Some(found);
        if differs {
            self.shown.tell(|shown| shown.status_changed = true);
        }
    }

    /// The components cannot be read.
    pub fn unlisted(&self) {
        *self.live() = None;
    }

    /// One component as the watch saw it.
    pub fn seen(&self, sighting: Sighting, status: Status) {
        let name = sighting.name.clone();
        let wanted = self.wants(&name);
        let mut live = self.live();
        let Some(live_now) = live.as_mut().filter(|_| wanted) else { return };
        let others = live_now.iter().filter(|(other, _)| **other != name);
        let left = others.map(|(_, live)| live.status.bytes()).fold(STATUSES_BYTES, usize::saturating_sub);
        let found = Live::from((sighting, status.within(left)));
        let before = live_now.insert(name.clone(), found);
        let differs = before.map(|before| before.status) != live_now.get(&name).map(|now| now.status.clone());
        drop(live);
        if differs && self.kept(&name) {
            self.shown.tell(|shown| shown.status_changed = true);
        }
    }

    /// One component is gone.
    pub fn gone(&self, name: &str) {
        if let Some(live) = self.live().as_mut() {
            live.remove(name);
        }
        if self.kept(name) {
            self.shown.tell(|shown| shown.status_changed = true);
        }
    }

    /// Whether the state knows of the component, or a command that is being executed names it: of no other is
    /// anything kept here, or in a list on its way to the leader, however many there are.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.asks(name, |state, name| state.component(name).is_some() || state.busy(name).is_some())
    }

    /// Whether a command asked for the component.
    fn kept(&self, name: &str) -> bool {
        self.asks(name, |state, name| state.component(name).is_some_and(|known| known.desired.is_some()))
    }

    fn asks(&self, name: &str, what: impl FnOnce(&State, &ComponentName) -> bool) -> bool {
        let state = self.shown.lock().state.clone();
        state.zip(ComponentName::parse(name)).is_some_and(|(state, name)| what(&state, &name))
    }

    /// What is shown now; nothing of it is new after that.
    #[must_use]
    pub fn take(&self) -> Shown {
        self.shown.heed();
        let mut shown = self.shown.lock();
        let copy = shown.clone();
        shown.status_changed = false;
        copy
    }

    /// The report's `components`: those that commands asked for, as they stand; null where they could not
    /// be read (CONTRACT section 5).
    #[must_use]
    pub fn components(&self, shown: &Shown, state: &State) -> Value {
        let live = self.live();
        let Some(live) = live.as_ref() else { return Value::Null };
        let mut left = STATUSES_WEIGHT;
        let mut read = |text: &str| {
            let status = parse_foreign(text.as_bytes(), text.len()).ok()?;
            left = left.checked_sub(weight(&status))?;
            Some(status)
        };
        let row = |(name, component): (&ComponentName, &crate::rules::state::Component)| {
            let desired = component.desired.as_ref()?;
            let live = live.get(name.as_str());
            let condition = shown.conditions.get(name);
            let reference = condition.and_then(|condition| condition.reference.as_ref());
            let trouble = condition.and_then(|condition| condition.trouble.as_deref());
            let in_sync = trouble.is_none() && live.is_some_and(|live| reference == Some(&live.reference));
            let (status, left_out) = match live.map(|live| &live.status) {
                Some(Status::Here(text)) => read(text).map_or((None, true), |status| (Some(status), false)),
                Some(Status::TooLarge) => (None, true),
                Some(Status::Absent) | None => (None, false),
            };
            let reason = match (trouble, live) {
                (Some(trouble), _) => Some(trouble),
                (None, None) => Some("absent"),
                (None, Some(_)) => left_out.then_some("status_too_large"),
            };
            let mut row = json!({ "name": name, "sequence": desired.sequence, "in_sync": in_sync });
            let members = [
                ("reason", reason.map(Value::from)),
                ("generation", live.map(|live| Value::from(live.reference.generation))),
                ("status", status),
            ];
            for (member, value) in members {
                if let (Some(value), Some(row)) = (value, row.as_object_mut()) {
                    row.insert(member.to_owned(), value);
                }
            }
            Some(row)
        };
        Value::Array(state.components().filter_map(row).collect())
    }
}

#[cfg(test)]
mod tests;
