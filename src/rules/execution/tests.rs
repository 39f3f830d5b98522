//! Scripts: what the cluster shows and answers, and what the command does about it, step by step.

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
        let operation = match spec {
            Some(spec) => Operation::Apply { name, spec: spec.as_object().unwrap().clone() },
            None => Operation::Delete { name },
        };
        let execution = Execution::new(operation, &command(second(WINDOW)), s(0), recovered).unwrap();
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
fn play(mut play: Play, script: impl IntoIterator<Item = (Turn, &'static str)>) {
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
        Step::End(Ending::Failed { reason, message, absent }) => {
            format!("failed {reason}{} ({message})", if *absent { " absent" } else { "" })
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
    KubeError::Unavailable { message: "busy".into(), retry_after: Some("7".into()) }
}

fn unanswered() -> Turn {
    Turn::Answered(Err(lost()))
}

fn unavailable() -> Turn {
    Turn::Answered(Err(busy()))
}

use Turn::{Answered, Reads, Unreadable};

#[test]
fn an_absent_component_is_created() {
    play(
        apply(),
        [
            (Reads(0, None), "create ingress"),
            (Answered(Ok(ours("u1", "1", 1, 2))), "applied u1 generation 1 changed true"),
        ],
    );
}

#[test]
fn a_create_says_who_created_and_where() {
    let step = apply().turn(Reads(0, None));
    let Step::Write(Write::Create(object)) = step else { panic!("{step:?}") };
    assert_eq!(object.annotation(CREATED), Some("7"));
    assert_eq!(object.0.pointer("/metadata/namespace"), Some(&json!("navin")));
    assert_eq!(object.0["spec"], json!({"replicas": 2}));
}

#[test]
fn a_live_component_is_replaced_as_it_was_read() {
    play(
        apply(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (Answered(Ok(ours("u1", "6", 2, 2))), "applied u1 generation 2 changed true"),
        ],
    );
}

#[test]
fn an_equal_component_is_written_still_and_not_called_changed() {
    play(
        apply(),
        [
            (Reads(0, Some(object("u1", "5", 1, 2))), "replace u1@5"),
            (Answered(Ok(ours("u1", "6", 1, 2))), "applied u1 generation 1 changed false"),
        ],
    );
}

#[test]
fn what_this_command_wrote_already_is_not_written_again() {
    play(apply(), [(Reads(0, Some(ours("u1", "5", 4, 2))), "applied u1 generation 4 changed true")]);
    // Another hand was there since: while there is time it is made exact.
    play(apply(), [(Reads(0, Some(ours("u1", "5", 4, 9))), "replace u1@5")]);
}

#[test]
fn a_conflict_is_read_again_and_a_hand_that_writes_all_the_time_is_met_with_pauses() {
    play(
        apply(),
        [
            (Reads(0, None), "create ingress"),
            (conflict(), "again"),
            (Reads(0, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (conflict(), "again"),
            (Reads(0, Some(object("u1", "6", 2, 3))), "replace u1@6"),
            (conflict(), "again"),
            (Reads(0, Some(object("u1", "7", 3, 4))), "replace u1@7"),
            (conflict(), "retry"),
            (Reads(1, Some(object("u1", "8", 4, 5))), "replace u1@8"),
            (Answered(Ok(ours("u1", "9", 5, 2))), "applied u1 generation 5 changed true"),
        ],
    );
}

#[test]
fn a_component_that_goes_before_the_put_is_created() {
    play(
        apply(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (not_found(), "again"),
            (Reads(0, None), "create ingress"),
            (Answered(Ok(ours("u2", "8", 1, 2))), "applied u2 generation 1 changed true"),
        ],
    );
}

#[test]
fn a_create_that_finds_no_kind_or_namespace_fails_and_leaves_a_mark() {
    play(
        apply(),
        [
            (Reads(0, None), "create ingress"),
            (not_found(), "again"),
            (Reads(0, None), "failed kubernetes_refused absent (not there)"),
        ],
    );
}

#[test]
fn a_refused_write_fails_with_the_servers_words() {
    for (status, wanted) in [
        (400, "failed kubernetes_refused (no (400))"),
        (403, "failed kubernetes_refused (no (403))"),
        (405, "failed kubernetes_refused (no (405))"),
        (413, "failed kubernetes_refused (no (413))"),
        (422, "failed kubernetes_refused (no (422))"),
    ] {
        let live = || Some(object("u1", "5", 1, 1));
        play(
            apply(),
            [
                (Reads(0, live()), "replace u1@5"),
                (refused(status, "no"), "again"),
                (Reads(0, live()), wanted),
            ],
        );
        play(
            delete(),
            [(Reads(0, live()), "delete u1@5"), (refused(status, "no"), "again"), (Reads(0, live()), wanted)],
        );
    }
    play(
        apply(),
        [
            (Reads(0, None), "create ingress"),
            (refused(422, "no"), "again"),
            (Reads(0, None), "failed kubernetes_refused absent (no (422))"),
        ],
    );
}

#[test]
fn full_metadata_is_left_alone_and_the_spec_written_without_it() {
    let live = || Some(object("u1", "5", 1, 1));
    let full = || refused(422, "Invalid: metadata.annotations: Too long");
    play(
        apply(),
        [
            (Reads(0, live()), "replace u1@5"),
            (full(), "again"),
            (Reads(0, live()), "replace u1@5 bare"),
            (Answered(Ok(object("u1", "6", 2, 2))), "applied u1 generation 2 changed true"),
        ],
    );
    // Once only: what is refused without our metadata is refused.
    play(
        apply(),
        [
            (Reads(0, live()), "replace u1@5"),
            (full(), "again"),
            (Reads(0, live()), "replace u1@5 bare"),
            (full(), "again"),
            (Reads(0, live()), "failed kubernetes_refused (Invalid: metadata.annotations: Too long (422))"),
        ],
    );
    // Of a create it cannot be somebody else's doing.
    play(
        apply(),
        [
            (Reads(0, None), "create ingress"),
            (full(), "again"),
            (
                Reads(0, None),
                "failed kubernetes_refused absent (Invalid: metadata.annotations: Too long (422))",
            ),
        ],
    );
}

#[test]
fn what_the_server_cannot_take_is_tried_for_five_minutes() {
    play(
        apply(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (unavailable(), "retry 7"),
            (Reads(299, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (unavailable(), "retry 7"),
            // It was surely not acted on: nothing needs to be settled.
            (Reads(300, Some(object("u1", "5", 1, 1))), "failed kubernetes_unavailable (busy)"),
        ],
    );
    play(
        apply(),
        [
            (Reads(299, None), "create ingress"),
            (unavailable(), "retry 7"),
            (Reads(300, None), "failed kubernetes_unavailable absent (busy)"),
        ],
    );
}

#[test]
fn a_command_is_not_begun_or_repeated_after_its_window() {
    // Both ends of the window are included.
    let mut short = apply();
    short.execution.limit.not_after = second(20);
    play(
        short,
        [
            (Reads(20, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (unavailable(), "retry 7"),
            (Reads(21, Some(object("u1", "5", 1, 1))), "failed kubernetes_unavailable (busy)"),
        ],
    );
}

#[test]
fn an_unanswered_write_is_settled_before_it_is_called_failed() {
    play(
        apply(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (unanswered(), "retry"),
            (Reads(300, Some(object("u1", "5", 1, 1))), "settle u1@5"),
            (Answered(Ok(object("u1", "6", 1, 1))), "again"),
            (Reads(300, Some(object("u1", "6", 1, 1))), "failed kubernetes_unavailable (no answer)"),
        ],
    );
}

#[test]
fn a_lost_write_that_lands_before_it_is_settled_is_a_success() {
    play(
        apply(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (unanswered(), "retry"),
            (Reads(300, Some(object("u1", "5", 1, 1))), "settle u1@5"),
            (conflict(), "again"),
            (Reads(300, Some(ours("u1", "6", 2, 2))), "applied u1 generation 2 changed true"),
        ],
    );
}

#[test]
fn settling_goes_on_until_it_is_answered() {
    let live = |version: &str| Some(object("u1", version, 1, 1));
    play(
        apply(),
        [
            (Reads(0, live("5")), "replace u1@5"),
            (unanswered(), "retry"),
            (Reads(300, live("5")), "settle u1@5"),
            (unavailable(), "retry 7"),
            (Reads(310, live("5")), "settle u1@5"),
            (unanswered(), "retry"),
            (Reads(320, live("5")), "settle u1@5"),
            (refused(422, "full"), "retry"),
            (Reads(330, live("5")), "settle u1@5"),
            (conflict(), "again"),
            (Reads(330, live("6")), "settle u1@6"),
            (not_found(), "again"),
            (Reads(330, live("7")), "settle u1@7"),
            (Answered(Ok(object("u1", "8", 1, 1))), "again"),
            (Reads(330, live("8")), "failed kubernetes_unavailable (no answer)"),
        ],
    );
}

#[test]
fn a_refusal_too_waits_for_the_unanswered_write_before_it() {
    let live = |version: &str| Some(object("u1", version, 1, 1));
    play(
        apply(),
        [
            (Reads(0, live("5")), "replace u1@5"),
            (unanswered(), "retry"),
            (Reads(1, live("5")), "replace u1@5"),
            (refused(403, "no"), "again"),
            (Reads(1, live("5")), "settle u1@5"),
            (Answered(Ok(object("u1", "6", 1, 1))), "again"),
            (Reads(1, live("6")), "failed kubernetes_refused (no (403))"),
        ],
    );
}

#[test]
fn no_answer_and_then_our_own_write_is_a_success() {
    for (first, wanted) in [(None, "create ingress"), (Some(object("u1", "5", 1, 1)), "replace u1@5")] {
        play(
            apply(),
            [
                (Reads(0, first), wanted),
                (unanswered(), "retry"),
                (Reads(1, Some(ours("u1", "6", 2, 2))), "applied u1 generation 2 changed true"),
            ],
        );
    }
    // After the time is over too, and where defaults of the schema have been added to the spec.
    let mut defaulted = ours("u1", "6", 1, 2);
    defaulted.0["spec"]["tier"] = json!("small");
    play(
        apply(),
        [
            (Reads(299, None), "create ingress"),
            (unanswered(), "retry"),
            (Reads(300, Some(defaulted)), "applied u1 generation 1 changed true kept as 0"),
        ],
    );
}

#[test]
fn a_lost_create_that_is_not_seen_leaves_a_mark() {
    play(
        apply(),
        [
            (Reads(299, None), "create ingress"),
            (unanswered(), "retry"),
            (Reads(300, None), "failed kubernetes_unavailable absent (no answer)"),
        ],
    );
}

#[test]
fn an_object_that_is_being_deleted_is_not_written_to() {
    let going = || Some(terminating(object("u1", "5", 1, 1), &["a/b"]));
    play(
        apply(),
        [
            (Reads(0, going()), "wait 500ms"),
            (Reads(299, going()), "wait 500ms"),
            (Reads(299, None), "create ingress"),
            (Answered(Ok(ours("u2", "9", 1, 2))), "applied u2 generation 1 changed true"),
        ],
    );
    play(
        apply(),
        [
            (Reads(0, going()), "wait 500ms"),
            (
                Reads(300, going()),
                "failed kubernetes_unavailable (waits for the former object to be deleted; finalizers: a/b)",
            ),
        ],
    );
    // A lost write may still land on it: nothing is concluded until it is gone.
    play(
        apply(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (unanswered(), "retry"),
            (Reads(301, going()), "wait 500ms"),
            (Reads(302, None), "failed kubernetes_unavailable absent (no answer)"),
        ],
    );
}

#[test]
fn a_new_leader_completes_what_it_finds_in_its_window() {
    play(recovered_apply(), [(Reads(0, None), "create ingress")]);
    play(recovered_apply(), [(Reads(WINDOW - 301, Some(object("u1", "5", 1, 1))), "replace u1@5")]);
    play(
        recovered_delete(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "delete u1@5"),
            (Answered(Ok(object("u1", "5", 1, 1))), "again"),
            (Reads(0, None), "deleted existed true finalizing false"),
        ],
    );
}

#[test]
fn what_a_new_leader_finds_after_its_window_and_not_done_is_expired() {
    let late = WINDOW + 1;
    for play_ in [recovered_apply(), recovered_delete()] {
        play(
            play_,
            [
                (Reads(late, Some(object("u1", "5", 1, 1))), "settle u1@5"),
                (Answered(Ok(object("u1", "6", 1, 1))), "again"),
                (
                    Reads(late, Some(object("u1", "6", 1, 1))),
                    "failed expired (found by a new leader after its window, and not done)",
                ),
            ],
        );
    }
    play(
        recovered_apply(),
        [(Reads(late, None), "failed expired absent (found by a new leader after its window, and not done)")],
    );
}

#[test]
fn what_a_new_leader_finds_after_its_window_and_done_is_a_success() {
    let late = WINDOW + 1;
    play(
        recovered_apply(),
        [(Reads(late, Some(ours("u1", "5", 3, 2))), "applied u1 generation 3 changed true")],
    );
    // Our marks were taken off by a hand, and the spec stands: as long as a write may have been ours.
    let unmarked = object("u1", "5", 3, 2);
    play(recovered_apply(), [(Reads(late, Some(unmarked)), "applied u1 generation 3 changed false")]);
    play(recovered_delete(), [(Reads(late, None), "deleted existed false finalizing false")]);
    let mut kept = recovered_delete();
    kept.execution.note_kept();
    play(kept, [(Reads(late, None), "deleted existed true finalizing false")]);
    play(
        recovered_delete(),
        [
            (Reads(late, Some(object("u1", "5", 1, 1))), "settle u1@5"),
            (not_found(), "again"),
            (Reads(late, None), "deleted existed true finalizing false"),
        ],
    );
}

#[test]
fn a_new_leader_counts_both_ends_of_the_window() {
    for (play_, wanted) in [(recovered_apply(), "replace u1@5"), (recovered_delete(), "delete u1@5")] {
        let mut play_ = play_;
        play_.execution.limit.began = s(WINDOW - 1);
        play(play_, [(Reads(WINDOW, Some(object("u1", "5", 1, 1))), wanted)]);
    }
}

#[test]
fn a_new_leaders_five_minutes_begin_with_it() {
    let mut play_ = recovered_apply();
    play_.execution.limit.not_after = second(100_000);
    play_.execution.limit.began = s(50_000);
    play(
        play_,
        [
            (Reads(50_299, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (unavailable(), "retry 7"),
            (Reads(50_300, Some(object("u1", "5", 1, 1))), "settle u1@5"),
            (Answered(Ok(object("u1", "6", 1, 1))), "again"),
            (Reads(50_300, Some(object("u1", "6", 1, 1))), "failed kubernetes_unavailable (busy)"),
        ],
    );
}

#[test]
fn a_delete_names_exactly_what_was_read_and_says_that_it_existed() {
    play(
        delete(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "delete u1@5"),
            (Answered(Ok(object("u1", "5", 1, 1))), "again"),
            (Reads(0, None), "deleted existed true finalizing false"),
        ],
    );
    play(delete(), [(Reads(0, None), "deleted existed false finalizing false")]);
}

#[test]
fn a_delete_whose_object_changed_is_decided_again() {
    play(
        delete(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "delete u1@5"),
            (conflict(), "again"),
            (Reads(0, Some(object("u1", "6", 2, 3))), "delete u1@6"),
            (not_found(), "again"),
            (Reads(0, None), "deleted existed true finalizing false"),
        ],
    );
}

#[test]
fn an_object_without_uid_or_version_is_not_deleted() {
    for member in ["uid", "resourceVersion"] {
        let mut odd = object("u1", "5", 1, 1);
        odd.0["metadata"].as_object_mut().unwrap().remove(member);
        play(delete(), [(Reads(0, Some(odd)), "retry")]);
    }
}

#[test]
fn a_finalizer_is_waited_for_ten_seconds_and_then_named() {
    let held = || Some(terminating(object("u1", "6", 2, 1), &["example.com/hold", "b/c"]));
    play(
        delete(),
        [
            (Reads(3, Some(object("u1", "5", 1, 1))), "delete u1@5"),
            (Answered(Ok(object("u1", "6", 2, 1))), "again"),
            (Reads(3, held()), "wait 500ms"),
            (Reads(12, held()), "wait 500ms"),
            (
                Reads(13, held()),
                "deleted existed true finalizing true is being deleted; finalizers: example.com/hold, b/c",
            ),
        ],
    );
    // Somebody else's delete counts as well, from when it was seen.
    play(
        delete(),
        [
            (Reads(3, held()), "wait 500ms"),
            (Reads(12, held()), "wait 500ms"),
            (Reads(12, None), "deleted existed true finalizing false"),
        ],
    );
    // The end of the window does not turn a delete that is under way into a failure.
    play(
        delete(),
        [
            (Reads(299, Some(object("u1", "5", 1, 1))), "delete u1@5"),
            (Answered(Ok(object("u1", "6", 2, 1))), "again"),
            (Reads(305, held()), "wait 500ms"),
            (Reads(306, None), "deleted existed true finalizing false"),
        ],
    );
}

#[test]
fn a_delete_that_was_answered_and_did_nothing_is_not_called_done() {
    let live = || Some(object("u1", "5", 1, 1));
    play(
        delete(),
        [
            (Reads(0, live()), "delete u1@5"),
            (unanswered(), "retry"),
            (Reads(1, live()), "delete u1@5"),
            (Answered(Ok(object("u1", "5", 1, 1))), "again"),
            (Reads(20, live()), "delete u1@5"),
            (unavailable(), "retry 7"),
            // The answer to the second has taken the first one's uid and version away.
            (Reads(300, live()), "failed kubernetes_unavailable (busy)"),
        ],
    );
}

#[test]
fn what_is_made_anew_after_our_delete_is_not_deleted() {
    play(
        delete(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "delete u1@5"),
            (Answered(Ok(object("u1", "5", 1, 1))), "again"),
            (Reads(0, Some(object("u2", "9", 1, 1))), "deleted existed true finalizing false"),
        ],
    );
}

#[test]
fn an_unanswered_delete_is_settled_before_it_is_called_failed() {
    play(
        delete(),
        [
            (Reads(299, Some(object("u1", "5", 1, 1))), "delete u1@5"),
            (unanswered(), "retry"),
            (Reads(300, Some(object("u1", "5", 1, 1))), "settle u1@5"),
            (Answered(Ok(object("u1", "6", 1, 1))), "again"),
            (Reads(300, Some(object("u1", "6", 1, 1))), "failed kubernetes_unavailable (no answer)"),
        ],
    );
    play(
        delete(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "delete u1@5"),
            (unanswered(), "retry"),
            (Reads(1, None), "deleted existed true finalizing false"),
        ],
    );
}

#[test]
fn a_component_that_cannot_be_read_ends_its_command_in_time() {
    play(
        apply(),
        [
            (Unreadable(0, lost()), "retry"),
            (Unreadable(1, busy()), "retry 7"),
            (Unreadable(299, KubeError::Conflict("odd".into())), "retry"),
            (Unreadable(300, lost()), "failed kubernetes_unavailable (no answer)"),
        ],
    );
    let forbidden = || KubeError::Refused { status: 403, message: "no".into() };
    play(delete(), [(Unreadable(0, forbidden()), "failed kubernetes_refused (no (403))")]);
}

#[test]
fn a_delete_that_was_taken_is_no_failure_when_the_object_cannot_be_read_any_more() {
    let forbidden = || KubeError::Refused { status: 403, message: "no".into() };
    for (at, error, wanted) in [
        (
            WINDOW + 1,
            lost(),
            "deleted existed true finalizing true is being deleted; not readable any more: no answer",
        ),
        (
            2,
            forbidden(),
            "deleted existed true finalizing true is being deleted; not readable any more: no (403)",
        ),
    ] {
        play(
            delete(),
            [
                (Reads(0, Some(object("u1", "5", 1, 1))), "delete u1@5"),
                (Answered(Ok(object("u1", "6", 2, 1))), "again"),
                (Unreadable(1, busy()), "retry 7"),
                (Unreadable(at, error), wanted),
            ],
        );
    }
}

#[test]
fn nothing_is_concluded_from_no_reading_while_a_write_is_unanswered() {
    let forbidden = || KubeError::Refused { status: 403, message: "no".into() };
    for play_ in [recovered_apply(), recovered_delete()] {
        play(
            play_,
            [
                (Unreadable(0, forbidden()), "retry"),
                (Unreadable(WINDOW + 1, forbidden()), "retry"),
                (Unreadable(WINDOW + 2, busy()), "retry 7"),
                (Reads(WINDOW + 3, Some(object("u1", "5", 1, 1))), "settle u1@5"),
                (Answered(Ok(object("u1", "6", 1, 1))), "again"),
                (
                    Unreadable(WINDOW + 4, lost()),
                    "failed expired (found by a new leader after its window, and not done)",
                ),
            ],
        );
    }
}

#[test]
fn an_inventory_writes_no_component() {
    let execution = Execution::new(Operation::InventoryReport, &command(second(0)), s(0), false);
    assert!(execution.is_none());
}
