//! What an apply does about what it finds: creates, replaces, meets other hands, and fails in time.

use super::*;

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
            (Reads(0, None), "failed kubernetes_refused marked (not there)"),
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
            (Reads(0, None), "failed kubernetes_refused marked (no (422))"),
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
                "failed kubernetes_refused marked (Invalid: metadata.annotations: Too long (422))",
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
            (Reads(300, None), "failed kubernetes_unavailable marked (busy)"),
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
    // A lost write conflicts with what it has become since.
    play(
        apply(),
        [
            (Reads(0, Some(object("u1", "5", 1, 1))), "replace u1@5"),
            (unanswered(), "retry"),
            (Reads(301, going()), "failed kubernetes_unavailable (no answer)"),
        ],
    );
    let expired = "failed expired marked (found by a new leader after its window, and not done)";
    play(recovered_apply(), [(Reads(WINDOW + 1, going()), expired)]);
}
