//! One accepted command on its way: what to do next, given what the cluster shows (CONTRACT section 6).
//!
//! Invariants: nothing is concluded from a read while a write of this command is unanswered; what is being deleted is
//! not written to; every write but a create names uid and `resourceVersion`; a create that may land late leaves a mark.

use super::component::{self, Author, CONFLICTS, Write};
use super::envelope::Verified;
use super::kubernetes::{KubeError, Object};
use super::messages::{Command, Reason};
use super::names::ComponentName;
use super::state::{Desired, Effect, Mark};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::time::Duration;

mod aim;
mod deleting;
mod limit;
#[cfg(test)]
mod tests;

pub use aim::{Aim, Before};
use deleting::held;
pub use limit::{Failure, TimeLimit};

/// Pause between two looks at an object that is being deleted.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Read the Lease, check the deadline, then send this.
    Write(Write),
    /// Read again at once.
    Again,
    /// Read again after a pause.
    Wait(Duration),
    /// Try again after a pause that grows; the server may name it (`Retry-After`, as sent).
    Retry(Option<String>),
    /// Over.
    End(Ending),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The spec stands.
    Applied {
        /// `result` of the receipt.
        result: Value,
        /// The object's uid.
        uid: String,
        /// Its generation after our write; 0 where that is not known.
        generation: i64,
    },
    /// The object is gone or going.
    Deleted {
        /// `result` of the receipt.
        result: Value,
        /// Which finalizers hold it, for people.
        message: String,
    },
    /// It did not succeed.
    Failed {
        /// `kubernetes_refused`, `kubernetes_unavailable` or `expired`.
        reason: Reason,
        /// For people.
        message: String,
        /// The component did not exist, or a create got no answer, so that one may still land: leaves a mark.
        marked: bool,
    },
}

impl Ending {
    /// What it means for the component's name in the state, where `command` was about `name`.
    #[must_use]
    pub fn effect(&self, name: &ComponentName, command: &Verified<Command>, max_validity_s: u64) -> Effect {
        let mark = || Mark::of(command.value(), max_validity_s);
        match self {
            Self::Applied { uid, generation, .. } => {
                let (uid, generation) = (uid.clone(), *generation);
                let sequence = command.value().sequence.get();
                let desired = Desired { envelope: command.envelope().clone(), sequence, uid, generation };
                Effect::Applied(name.clone(), desired)
            }
            Self::Deleted { .. } => Effect::Deleted(name.clone(), mark()),
            Self::Failed { marked: true, .. } => Effect::FailedMarked(name.clone(), mark()),
            Self::Failed { marked: false, .. } => Effect::None,
        }
    }
}

/// An accepted command that writes a component.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each by itself is what an answer or a reading said")]
pub struct Execution {
    name: ComponentName,
    aim: Aim,
    author: Author,
    limit: TimeLimit,
    unanswered: bool,
    /// A create got no answer. No other write makes it conflict for good: what stands may go again.
    lost_create: bool,
    bare: bool,
    existed: bool,
    deleting: Option<(String, Duration)>,
    trouble: String,
    conflicts: u32,
    failing: Option<Failure>,
}

impl Execution {
    /// Begins at `began` (monotonic).
    #[must_use]
    pub fn new(name: ComponentName, aim: Aim, command: &Command, began: Duration, before: Before) -> Self {
        let recovered = before != Before::Nothing;
        Self {
            name,
            lost_create: before == Before::MayHaveCreated,
            aim,
            author: Author::of(command),
            limit: TimeLimit::new(command, began, recovered),
            unanswered: recovered,
            bare: false,
            existed: false,
            deleting: None,
            trouble: String::new(),
            conflicts: 0,
            failing: None,
        }
    }

    /// The component was kept until now: where a former leader began, and nothing is there, that was deleted.
    pub fn note_kept(&mut self) {
        self.existed = true;
    }

    /// The component's name.
    #[must_use]
    pub fn name(&self) -> &ComponentName {
        &self.name
    }

    /// What to do, given a fresh reading of the component.
    pub fn next(&mut self, live: Option<&Object>, namespace: &str, now: Timestamp, at: Duration) -> Step {
        self.watch_time(now, at);
        match self.aim.clone() {
            Aim::Apply(spec) => self.next_apply(live, &spec, namespace),
            Aim::Delete => self.next_delete(live, at),
        }
    }

    fn watch_time(&mut self, now: Timestamp, at: Duration) {
        if self.failing.is_none() {
            self.failing = self.limit.passed(now, at, &self.trouble);
        }
    }

    fn next_apply(&mut self, live: Option<&Object>, spec: &Map<String, Value>, namespace: &str) -> Step {
        let Some(live) = live else {
            return match &self.failing {
                None => {
                    Step::Write(Write::Create(component::created(namespace, &self.name, spec, &self.author)))
                }
                Some(failure) => failed(failure, true),
            };
        };
        // Spec and annotation are written together: where ours stands, the write landed, whatever the
        // CRD's defaults made of it. While there is time it is made exact.
        let ours = component::written_by(live, &self.author);
        let exact = component::same_spec(live, spec);
        if ours && (self.failing.is_some() || exact) {
            // A hand may have changed it since: then the generation that is kept is nobody's, and upkeep looks.
            return self.applied(live, true, if exact { live.generation() } else { 0 });
        }
        if live.terminating() {
            self.trouble = held("waits for the former object to be deleted", live);
            // What was sent before it was to be deleted names a version of before, and conflicts.
            return match &self.failing {
                Some(failure) => failed(failure, self.lost_create),
                None => Step::Wait(LOOK_AGAIN),
            };
        }
        // Where an older create of ours stands, a mark would take that for the late one.
        self.lost_create &= !component::is_older_create(live, &self.author);
        match &self.failing {
            None => Step::Write(Write::Replace(component::replaced(live, spec, &self.author, self.bare))),
            Some(failure) if !self.unanswered => failed(failure, self.lost_create),
            // A hand may have taken our marks off: what is asked for stands, and nobody needs to know by whom.
            Some(_) if exact => self.applied(live, false, live.generation()),
            Some(_) => self.settle(live),
        }
    }

    /// What to do after `write` came back with `answer`; `before` is the generation that was replaced.
    pub fn answered(
        &mut self,
        write: &Write,
        before: Option<i64>,
        answer: Result<Object, KubeError>,
        at: Duration,
    ) -> Step {
        match answer {
            Ok(object) => self.accepted(write, before, &object, at),
            Err(error) => self.rejected(write, &error),
        }
    }

    fn accepted(&mut self, write: &Write, before: Option<i64>, object: &Object, at: Duration) -> Step {
        match write {
            Write::Create(_) | Write::Replace(_) => {
                let changed = before != Some(object.generation());
                self.applied(object, changed, object.generation())
            }
            Write::Settle(_) => {
                self.unanswered = false;
                Step::Again
            }
            Write::Delete { uid, .. } => {
                self.unanswered = false;
                self.deleting = Some((uid.clone(), at));
                Step::Again
            }
        }
    }

    fn rejected(&mut self, write: &Write, error: &KubeError) -> Step {
        self.lost_create |= matches!((error, write), (KubeError::Unanswered { .. }, Write::Create(_)));
        match (error, write) {
            (KubeError::Refused { .. }, Write::Settle(_)) => return Step::Retry(None),
            (KubeError::Refused { .. }, Write::Replace(_)) if error.annotations_full() && !self.bare => {
                self.bare = true;
                return Step::Again;
            }
            (KubeError::Refused { .. }, _) | (KubeError::NotFound(_), Write::Create(_)) => {
                let (reason, message) = (Reason::KubernetesRefused, error.to_string());
                self.failing = Some(Failure { reason, message });
                return Step::Again;
            }
            (KubeError::Conflict(_) | KubeError::NotFound(_), _) => {
                self.conflicts = self.conflicts.saturating_add(1);
            }
            (KubeError::Unanswered { .. }, _) => self.unanswered = true,
            (KubeError::Gone(_) | KubeError::Unavailable { .. }, _) => {}
        }
        self.trouble = error.to_string();
        let conflict = matches!(error, KubeError::Conflict(_) | KubeError::NotFound(_));
        if conflict && self.conflicts <= CONFLICTS { Step::Again } else { retry(error) }
    }

    /// What to do after the component could not be read.
    pub fn unreadable(&mut self, error: &KubeError, now: Timestamp, at: Duration) -> Step {
        self.trouble = error.to_string();
        self.watch_time(now, at);
        let last = self.failing.is_some() || matches!(error, KubeError::Refused { .. });
        if last && !self.unanswered && self.deleting.is_some() {
            return self.going();
        }
        if let Some(failure) = self.failing.as_ref().filter(|_| !self.unanswered) {
            return failed(failure, self.lost_create);
        }
        if matches!(error, KubeError::Refused { .. }) && !self.unanswered {
            let (reason, message) = (Reason::KubernetesRefused, self.trouble.clone());
            return Step::End(Ending::Failed { reason, message, marked: self.lost_create });
        }
        retry(error)
    }

    /// A spec that could not be read whole is not written back.
    fn settle(&self, live: &Object) -> Step {
        if live.is_shell() {
            return Step::Retry(None);
        }
        Step::Write(Write::Settle(component::settled(live, &self.author)))
    }

    fn applied(&self, object: &Object, changed: bool, generation: i64) -> Step {
        let uid = object.uid().unwrap_or("").to_owned();
        let result = json!({
            "name": self.name.as_str(), "uid": uid, "generation": object.generation(), "changed": changed
        });
        Step::End(Ending::Applied { result, uid, generation })
    }
}

fn failed(failure: &Failure, marked: bool) -> Step {
    let Failure { reason, message } = failure.clone();
    Step::End(Ending::Failed { reason, message, marked })
}

fn retry(error: &KubeError) -> Step {
    Step::Retry(error.retry_after().map(str::to_owned))
}
