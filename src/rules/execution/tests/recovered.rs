//! What a former leader may have begun: done, completed, or expired.

use super::*;

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
    for (play_, mark) in [(recovered_apply(), " marked"), (recovered_delete(), "")] {
        let expired = format!("failed expired{mark} (found by a new leader after its window, and not done)");
        play(
            play_,
            [
                (Reads(late, Some(object("u1", "5", 1, 1))), "settle u1@5"),
                (Answered(Ok(object("u1", "6", 1, 1))), "again"),
                (Reads(late, Some(object("u1", "6", 1, 1))), &expired),
            ],
        );
    }
    play(
        recovered_apply(),
        [(Reads(late, None), "failed expired marked (found by a new leader after its window, and not done)")],
    );
}

/// Of a state that was lost: nothing is desired there, and a mark would have the component deleted.
#[test]
fn an_older_create_of_ours_that_stands_is_not_marked_for_a_late_one() {
    let late = WINDOW + 1;
    let standing = |version, created| {
        let mut object = object("u1", version, 1, 1);
        object.set_metadata_entry("annotations", CREATED, created);
        object
    };
    for (created, mark) in [("6", ""), ("7", " marked")] {
        let expired = format!("failed expired{mark} (found by a new leader after its window, and not done)");
        play(
            recovered_apply(),
            [
                (Reads(late, Some(standing("5", created))), "settle u1@5"),
                (Answered(Ok(standing("6", created))), "again"),
                (Reads(late, Some(standing("6", created))), &expired),
            ],
        );
    }
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
            (Reads(50_300, Some(object("u1", "6", 1, 1))), "failed kubernetes_unavailable marked (busy)"),
        ],
    );
}
