//! What has no answer: a write is settled before anything is concluded, and a reading that fails is tried again.

use super::*;

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
            (Reads(300, None), "failed kubernetes_unavailable marked (no answer)"),
        ],
    );
}

#[test]
fn a_lost_create_leaves_a_mark_also_where_another_made_the_component_meanwhile() {
    let live = |version: &str| Some(object("u1", version, 1, 1));
    for (turn, then) in [
        (Reads(301, live("6")), "failed kubernetes_unavailable marked (no answer)"),
        (Unreadable(301, lost()), "failed kubernetes_unavailable marked (no answer)"),
    ] {
        play(
            apply(),
            [
                (Reads(299, None), "create ingress"),
                (unanswered(), "retry"),
                (Reads(300, live("5")), "settle u1@5"),
                (Answered(Ok(object("u1", "6", 1, 1))), "again"),
                (turn, then),
            ],
        );
    }
    // One that was answered is not lost.
    play(
        apply(),
        [
            (Reads(299, None), "create ingress"),
            (conflict(), "again"),
            (Reads(300, live("5")), "failed kubernetes_unavailable (it changed)"),
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
fn nothing_is_concluded_from_no_reading_while_a_write_is_unanswered() {
    let forbidden = || KubeError::Refused { status: 403, message: "no".into() };
    for (play_, mark) in [(recovered_apply(), " marked"), (recovered_delete(), "")] {
        let expired = format!("failed expired{mark} (found by a new leader after its window, and not done)");
        play(
            play_,
            [
                (Unreadable(0, forbidden()), "retry"),
                (Unreadable(WINDOW + 1, forbidden()), "retry"),
                (Unreadable(WINDOW + 2, busy()), "retry 7"),
                (Reads(WINDOW + 3, Some(object("u1", "5", 1, 1))), "settle u1@5"),
                (Answered(Ok(object("u1", "6", 1, 1))), "again"),
                (Unreadable(WINDOW + 4, lost()), &expired),
            ],
        );
    }
}
