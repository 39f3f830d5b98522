//! Scripts: what the cluster shows and answers, and what the command does about it, step by step.

mod apply;
mod delete;
mod recovered;
mod unanswered;

use super::super::component::{COMMAND_ID, CREATED, SEQUENCE, SETTLED};
use super::*;
use crate::rules::vectors;

const ID: &str = "c5cefdd8-0273-45c9-821e-000000000007";
/// The window's end, in seconds from the beginning: later than [`TRY_FOR`].
const WINDOW: u64 = 600;

fn command(not_after: Timestamp) -> Command {
    let command = Command::from_payload(&vectors::apply("ingress", 7, &json!({})), None).unwrap();
    Command { not_after, ..command }
}

/// What happens to the command.
enum Turn {
    /// At this second it reads the component.
    Reads(u64, Option<Object>),
    /// At this second the component cannot be read.
    Unreadable(u64, KubeError),
    /// Its last write is answered.
    Answered(Result<Object, KubeError>),
}

/// A command on its way, and what it said last.
struct Play {
    execution: Execution,
    at: u64,
    before: Option<Object>,
    write: Option<Write>,
}

impl Play {
    fn new(spec: Option<Value>, recovered: bool) -> Self {
        let name = ComponentName::parse("ingress").unwrap();
        let (aim, before) = match spec {
            Some(spec) => (Aim::Apply(spec.as_object().unwrap().clone()), Before::MayHaveCreated),
            None => (Aim::Delete, Before::MayHaveWritten),
        };
        let before = if recovered { before } else { Before::Nothing };
        let execution = Execution::new(name, aim, &command(second(WINDOW)), s(0), before);
        Self { execution, at: 0, before: None, write: None }
    }

    fn turn(&mut self, turn: Turn) -> Step {
        let step = match turn {
            Turn::Reads(at, live) => {
                self.at = at;
                let step = self.execution.next(live.as_ref(), "navin", second(at), s(at));
                self.before = live;
                step
            }
            Turn::Unreadable(at, error) => {
                self.at = at;
                self.execution.unreadable(&error, second(at), s(at))
            }
            Turn::Answered(answer) => {
                let write = self.write.take().expect("a write that can be answered");
                self.execution.answered(
                    &write,
                    self.before.as_ref().map(Object::generation),
                    answer,
                    s(self.at),
                )
            }
        };
        if let Step::Write(write) = &step {
            self.write = Some(write.clone());
        }
        step
    }
}

/// Plays a script: each turn with the step that must follow.
#[track_caller]
fn play<'a>(mut play: Play, script: impl IntoIterator<Item = (Turn, &'a str)>) {
    for (number, (turn, wanted)) in script.into_iter().enumerate() {
        assert_eq!(told(&play.turn(turn)), wanted, "turn {number}");
    }
}

/// A step in words.
fn told(step: &Step) -> String {
    match step {
        Step::Write(Write::Create(object)) => format!("create {}", object.name().unwrap()),
        Step::Write(Write::Replace(object)) => {
            let bare = if object.label(COMMAND_ID) == Some(ID) { " bare" } else { "" };
            format!("replace {}{bare}", target(object))
        }
        Step::Write(Write::Settle(object)) => {
            let settled = object.0["metadata"]["labels"][SETTLED].as_str();
            assert!(settled.is_some_and(|text| text.starts_with(ID)));
            format!("settle {}", target(object))
        }
        Step::Write(Write::Delete { uid, resource_version }) => format!("delete {uid}@{resource_version}"),
        Step::Again => "again".into(),
        Step::Wait(pause) => format!("wait {pause:?}"),
        Step::Retry(None) => "retry".into(),
        Step::Retry(Some(told)) => format!("retry {told}"),
        Step::End(Ending::Applied { result, uid, generation }) => {
            let (shown, changed) = (&result["generation"], &result["changed"]);
            let wanted = json!({ "name": "ingress", "uid": uid, "generation": shown, "changed": changed });
            assert_eq!(result, &wanted);
            let kept = if shown == generation { String::new() } else { format!(" kept as {generation}") };
            format!("applied {uid} generation {shown} changed {changed}{kept}")
        }
        Step::End(Ending::Deleted { result, message }) => {
            let (existed, finalizing) = (&result["existed"], &result["finalizing"]);
            assert_eq!(result, &json!({"name": "ingress", "existed": existed, "finalizing": finalizing}));
            format!("deleted existed {existed} finalizing {finalizing} {message}").trim_end().to_owned()
        }
        Step::End(Ending::Failed { reason, message, marked }) => {
            format!("failed {reason}{} ({message})", if *marked { " marked" } else { "" })
        }
    }
}

/// What a write is bound to.
fn target(object: &Object) -> String {
    format!("{}@{}", object.uid().unwrap(), object.resource_version().unwrap())
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn second(count: u64) -> Timestamp {
    "2026-11-30T12:00:00Z".parse::<Timestamp>().unwrap().checked_add(s(count)).unwrap()
}

fn spec() -> Value {
    json!({"replicas": 2})
}

fn apply() -> Play {
    Play::new(Some(spec()), false)
}

fn delete() -> Play {
    Play::new(None, false)
}

/// An apply that a former leader may have begun.
fn recovered_apply() -> Play {
    Play::new(Some(spec()), true)
}

/// A delete that a former leader may have begun.
fn recovered_delete() -> Play {
    Play::new(None, true)
}

/// Somebody's object: uid, resourceVersion, generation, replicas.
fn object(uid: &str, version: &str, generation: i64, replicas: i64) -> Object {
    Object(json!({
        "metadata": {"name": "ingress", "uid": uid, "resourceVersion": version, "generation": generation},
        "spec": {"replicas": replicas}
    }))
}

/// As [`object`], written by this command.
fn ours(uid: &str, version: &str, generation: i64, replicas: i64) -> Object {
    let mut object = object(uid, version, generation, replicas);
    object.set_metadata_entry("annotations", COMMAND_ID, ID);
    object.set_metadata_entry("annotations", SEQUENCE, "7");
    object
}

/// As it is while it is being deleted.
fn terminating(mut object: Object, finalizers: &[&str]) -> Object {
    object.0["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z");
    object.0["metadata"]["finalizers"] = json!(finalizers);
    object
}

fn conflict() -> Turn {
    Turn::Answered(Err(KubeError::Conflict("it changed".into())))
}

fn not_found() -> Turn {
    Turn::Answered(Err(KubeError::NotFound("not there".into())))
}

fn refused(status: u16, message: &str) -> Turn {
    Turn::Answered(Err(KubeError::Refused { status, message: message.into() }))
}

fn lost() -> KubeError {
    KubeError::Unanswered { message: "no answer".into(), retry_after: None }
}

fn busy() -> KubeError {
    KubeError::Unavailable { status: Some(429), message: "busy".into(), retry_after: Some("7".into()) }
}

fn unanswered() -> Turn {
    Turn::Answered(Err(lost()))
}

fn unavailable() -> Turn {
    Turn::Answered(Err(busy()))
}

use Turn::{Answered, Reads, Unreadable};
