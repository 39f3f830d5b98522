//! What a delete does about what it finds: exactly that object goes, and its finalizers are waited for.

use super::*;

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
