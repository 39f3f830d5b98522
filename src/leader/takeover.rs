//! Becoming the leader (CONTRACT section 6, "Takeover"): read the state, write it with a higher `term` and
//! oneself as `holder`, take up what is `accepted`, send what is not acknowledged.

use super::execute::Task;
use super::store::{self, Stop, Store};
use super::upkeep::Keeper;
use super::{Leader, Reign, World};
use crate::kube::{KubeError, Object, state as configmap};
use crate::notices::About;
use crate::rules::election::Tenure;
use crate::rules::messages::{Command, Receipt};
use crate::rules::state::{State, StateError};
use crate::rules::verdict;
use std::sync::Arc;
use std::time::Duration;

impl Leader {
    /// Takes over for `tenure`; afterwards this replica leads.
    pub(super) fn take_over(&mut self, tenure: &Arc<Tenure>) -> Result<(), Stop> {
        let world = &self.world;
        let first_start = tenure.first_start && self.opened.as_ref() != Some(tenure);
        let found = configmap::get(&world.kube).map_err(|error| match error {
            KubeError::Refused { .. } => Stop::Unusable(error.to_string()),
            KubeError::NotFound(_)
            | KubeError::Conflict(_)
            | KubeError::Gone(_)
            | KubeError::Unavailable { .. }
            | KubeError::Unanswered { .. } => Stop::unavailable(world, &error),
        })?;
        store::still_ours(world, tenure)?;
        self.opened = Some(Arc::clone(tenure));
        let mut store = open(world, tenure, found, first_start)?;
        let mut next = store.state().clone();
        next.term = next.term.saturating_add(1);
        next.holder.clone_from(&tenure.holder);
        next.prune(world.clock.wall(), world.contact.clock_trusted(world.clock.monotonic()));
        store.commit(world, tenure, next)?;

        let now = world.clock.monotonic();
        let tasks = recover(world, tenure, &mut store, now)?;
        for (_, receipt) in store.state().waiting_receipts() {
            world.outbox.push(receipt.clone());
        }
        log::info!(
            "leader=true transitions={} term={} accepted={} receipts={}",
            tenure.transitions,
            store.state().term,
            tasks.len(),
            world.outbox.len()
        );
        let message = format!("leads with leaseTransitions {}", tenure.transitions);
        world.notices.normal("LeaderElected", About::Pod, &message);
        world.board.lead(world.clock.wall(), tenure.since, store.shared());
        world.desk.begun();
        self.reign = Some(Reign {
            tenure: Arc::clone(tenure),
            keeper: Keeper::new(store.state(), now),
            store,
            tasks,
            acknowledged: Vec::new(),
            gather_until: Duration::ZERO,
        });
        Ok(())
    }
}

/// The commands that a former leader accepted; each envelope is verified again before it is used. Those that do not
/// verify any more, after a key was withdrawn, or are not their record's, are ended: nobody waits for them.
fn recover(world: &World, tenure: &Tenure, store: &mut Store, now: Duration) -> Result<Vec<Task>, Stop> {
    let (mut tasks, state) = (Vec::new(), store.shared());
    let mut next = store.state().clone();
    for (nonce, record, envelope) in state.accepted() {
        let is_its = |command: &Command| command.nonce == *nonce && command.command_id == record.command_id;
        match verdict::reverify(envelope, &world.trust, is_its) {
            Ok(accepted) => {
                let mut task = Task::new(accepted, record.source, now, true);
                let component = task.name().and_then(|name| state.component(name));
                if component.is_some_and(|component| component.desired.is_some()) {
                    task.note_kept();
                }
                tasks.push(task);
            }
            Err(refusal) => {
                log::error!("state record={nonce} does not verify: reason={}", refusal.reason.as_str());
                let ids = (record.command_id.clone(), nonce.clone());
                let receipt = Receipt::broken(&world.stamp(record.source), ids, refusal);
                let effect = record.left_behind(world.trust.config.max_validity_s);
                if let Err(error) = next.finish(nonce, receipt, effect) {
                    log::error!("not recorded nonce={nonce} error={error}");
                }
            }
        }
    }
    store.commit(world, tenure, next)?;
    Ok(tasks)
}

/// Reads the state, or makes it in two steps where there is none that can be read.
fn open(world: &World, tenure: &Tenure, found: Option<Object>, first_start: bool) -> Result<Store, Stop> {
    let Some(object) = found else { return make(world, tenure, None, first_start) };
    match State::from_json(configmap::text(&object).unwrap_or("")) {
        Ok(state) if state.unfinished => finish(world, tenure, object, &state, false),
        Ok(state) => Ok(Store::new(object, state)),
        Err(error @ StateError::OfVersion(_)) => Err(Stop::Unusable(error.to_string())),
        Err(error @ StateError::Unreadable(_)) => {
            log::error!("state lost: {error}");
            make(world, tenure, Some(object), false)
        }
    }
}

/// First step: a state that is marked `unfinished`.
fn make(world: &World, tenure: &Tenure, read: Option<Object>, first_start: bool) -> Result<Store, Stop> {
    let state = State::new(0, &tenure.holder);
    let object = store::write(world, tenure, read, &state, &state.to_json())?;
    finish(world, tenure, object, &state, first_start)
}

/// Second step: the mark goes, and but on a first start everything up to now counts as lost.
fn finish(
    world: &World,
    tenure: &Tenure,
    object: Object,
    unfinished: &State,
    first_start: bool,
) -> Result<Store, Stop> {
    let lost_at = if first_start { None } else { Some(world.clock.wall()) };
    let mut state = unfinished.clone();
    state.unfinished = false;
    state.lost_at = lost_at;
    let object = store::write(world, tenure, Some(object), unfinished, &state.to_json())?;
    log::info!("state made first_start={first_start}");
    if !first_start {
        let message = "the state was lost; sensitive commands from before now are refused as state_lost: issue them anew";
        world.notices.warning("StateLost", About::Pod, message);
    }
    Ok(Store::new(object, state))
}
