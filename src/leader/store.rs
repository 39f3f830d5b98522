//! The state on its way to the cluster: one write, repeated as it was until it is answered or conflicts.
//!
//! Invariant: memory holds what the cluster holds. A change is made to a copy, and the copy takes the place
//! of the state only when its write was answered.

use super::World;
use crate::kube::{KubeError, Object, state as configmap};
use crate::rules::backoff::{Backoff, retry_after};
use crate::rules::election::{LeaseRecord, Tenure};
use crate::rules::said::Said;
use crate::rules::state::State;
use crate::say::say;
use std::sync::Arc;
use std::time::Duration;

/// Longest pause between two tries of a state write where the server asks for none, and between two looks at the
/// permission: the end of the process is noticed within it.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Conflicts of one write that are answered at once.
const CONFLICTS: u32 = 3;
/// Conflicts of one write after which somebody else is let try.
const CONFLICTS_MOST: u32 = 100;
/// Pause before a write is tried again after more than [`CONFLICTS`].
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);

/// Why the leader stops what it is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The permission to act has run out, or the Lease is another's.
    Deposed,
    /// The state is not what we wrote: read and decide again.
    StateChanged(String),
    /// The API server does not let us keep the state, or an agent of another version wrote it: another may have more luck.
    Unusable(String),
    /// The API server does not answer, or does not do it now: to be tried again, at once or when it asks for it.
    Unavailable {
        /// What happened.
        what: String,
        /// How long it asks to be left alone, if it does.
        told: Option<Duration>,
    },
    /// The manager is out of reach: another may have a way to it.
    HandOver,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Deposed => f.write_str("the permission to act has ended"),
            Self::StateChanged(what) => write!(f, "the state was changed by another: {what:?}"),
            Self::Unusable(what) => write!(f, "the state is not usable: {what:?}"),
            Self::HandOver => {
                f.write_str("the manager has been out of reach for long: another replica may have a way out")
            }
            Self::Unavailable { what, .. } => write!(f, "the API server does not do it now: {what:?}"),
        }
    }
}

impl Stop {
    /// The API server did not answer, or not now.
    pub(super) fn unavailable(world: &World, error: &KubeError) -> Self {
        Self::Unavailable {
            what: error.to_string(),
            told: retry_after(error.retry_after(), world.clock.wall()),
        }
    }
}

/// The state as the cluster holds it.
pub(super) struct Store {
    /// The ConfigMap without its text, which is `state`.
    object: Object,
    state: Arc<State>,
}

impl Store {
    /// The state that `object` holds.
    pub(super) fn new(mut object: Object, state: State) -> Self {
        configmap::forget_text(&mut object);
        Self { object, state: Arc::new(state) }
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// The state to share with other threads.
    pub(super) fn shared(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Writes `next` durably, then makes it the state. On an error nothing has changed here.
    pub(super) fn commit(&mut self, world: &World, tenure: &Tenure, next: State) -> Result<(), Stop> {
        if next == *self.state {
            return Ok(());
        }
        let text = next.to_json();
        let object = write(world, tenure, Some(self.object.clone()), &self.state, &text)?;
        *self = Self::new(object, next);
        Ok(())
    }
}

/// Writes `text` over `read` (or creates it) until the write is answered; `before` is the state in `read`.
pub(super) fn write(
    world: &World,
    tenure: &Tenure,
    mut read: Option<Object>,
    before: &State,
    text: &str,
) -> Result<Object, Stop> {
    let (mut backoff, mut conflicts, mut said) = (Backoff::default(), 0_u32, Said::default());
    loop {
        may_act(world, tenure)?;
        if conflicts >= CONFLICTS_MOST {
            return Err(Stop::Unusable("its writes conflict without end".to_owned()));
        }
        let mut pace = world.pace.take();
        pace.spend(text.len(), world.clock.monotonic());
        world.pace.set(pace);
        let answer = match &read {
            Some(object) => configmap::replace(&world.kube, object, text),
            None => configmap::create(&world.kube, text),
        };
        let (trouble, told) = match answer {
            Ok(object) if configmap::text(&object) == Some(text) => return Ok(object),
            // A success of something else says nothing about our write.
            Ok(_) => ("the answer is not what was written".to_owned(), None),
            Err(KubeError::Conflict(_)) => {
                conflicts = conflicts.saturating_add(1);
                // Somebody else's label conflicts once; what conflicts again and again is met with pauses, before
                // the reading: what is read is written at once.
                if conflicts > CONFLICTS {
                    world.clock.sleep(CONFLICT_PAUSE);
                }
                match reread(world, before, text)? {
                    Reread::Written(object) => return Ok(object),
                    Reread::Untouched(object) => read = Some(object),
                    Reread::Gone => {
                        still_ours(world, tenure)?;
                        read = None;
                    }
                }
                continue;
            }
            // Deleted under us: it is written again from memory, if we still lead.
            Err(KubeError::NotFound(_)) if read.is_some() => {
                conflicts = conflicts.saturating_add(1);
                still_ours(world, tenure)?;
                read = None;
                continue;
            }
            Err(error @ (KubeError::NotFound(_) | KubeError::Refused { .. })) => {
                return Err(Stop::Unusable(error.to_string()));
            }
            Err(
                error @ (KubeError::Gone(_) | KubeError::Unavailable { .. } | KubeError::Unanswered { .. }),
            ) => (error.to_string(), retry_after(error.retry_after(), world.clock.wall())),
        };
        let text = format!("state write repeated: error={trouble:?}");
        say(&mut said, world.clock.monotonic(), log::Level::Warn, &text, &text);
        let own = backoff.next(world.clock.random()).min(LONGEST_PAUSE);
        rest(world, tenure, told.unwrap_or(own))?;
    }
}

/// Sleeps, for as long as we may act.
fn rest(world: &World, tenure: &Tenure, mut pause: Duration) -> Result<(), Stop> {
    while !pause.is_zero() {
        may_act(world, tenure)?;
        let some = pause.min(LONGEST_PAUSE);
        world.clock.sleep(some);
        pause = pause.saturating_sub(some);
    }
    Ok(())
}

/// How long the next write of the state is to wait for its pace.
pub(super) fn pause(world: &World) -> Duration {
    let mut pace = world.pace.take();
    let pause = pace.pause(world.clock.monotonic());
    world.pace.set(pace);
    pause
}

enum Reread {
    /// It holds what we wrote: an earlier try landed.
    Written(Object),
    /// Only its metadata changed.
    Untouched(Object),
    Gone,
}

fn reread(world: &World, before: &State, text: &str) -> Result<Reread, Stop> {
    match configmap::get(&world.kube) {
        Ok(None) => Ok(Reread::Gone),
        Ok(Some(object)) => {
            let found = configmap::text(&object).unwrap_or("");
            if found == text {
                return Ok(Reread::Written(object));
            }
            match State::from_json(found) {
                Ok(state) if state == *before => Ok(Reread::Untouched(object)),
                Ok(state) => Err(Stop::StateChanged(format!("term={} holder={}", state.term, state.holder))),
                Err(error) => Err(Stop::StateChanged(error.to_string())),
            }
        }
        Err(error) => Err(Stop::unavailable(world, &error)),
    }
}

/// Whether the permission to act still stands; read before every write.
pub(super) fn may_act(world: &World, tenure: &Tenure) -> Result<(), Stop> {
    match world.permit.tenure(world.clock.monotonic()) {
        Some(current) if *current == *tenure => Ok(()),
        Some(_) | None => Err(Stop::Deposed),
    }
}

/// Reads the Lease and sees that it is still ours, unchanged but for our renewals.
pub(super) fn still_ours(world: &World, tenure: &Tenure) -> Result<(), Stop> {
    may_act(world, tenure)?;
    match crate::kube::lease::get(&world.kube) {
        Ok(Some(lease)) if tenure.owns(&LeaseRecord::read(&lease.0)) => may_act(world, tenure),
        Ok(_) => Err(Stop::Deposed),
        Err(error) => {
            log::warn!("lease not readable before a write: error={:?}", error.to_string());
            Err(Stop::unavailable(world, &error))
        }
    }
}
