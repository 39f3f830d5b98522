//! The table of who may take the Lease, and when.

use super::*;
use crate::rules::json::parse_foreign;
use serde_json::json;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn me() -> Candidate {
    Candidate { holder: "a_1".into(), duration: s(15) }
}

fn lease(holder: &str, transitions: u32, version: &str) -> LeaseRecord {
    LeaseRecord {
        holder: holder.into(),
        duration_s: Some(15),
        transitions,
        resource_version: version.into(),
        uid: "u".into(),
        ..LeaseRecord::default()
    }
}

fn held(renewed: Duration) -> Hold {
    let (holder, lease_uid) = (me().holder, "u".into());
    let tenure = Tenure { holder, transitions: 7, lease_uid, first_start: false, since: s(90) };
    Hold { tenure: Arc::new(tenure), renewed }
}

fn seen(record: Option<LeaseRecord>, now: Duration) -> Observer {
    let mut observer = Observer::default();
    observer.observe(record, now);
    observer
}

#[test]
fn a_foreign_lease_is_claimed_only_after_a_full_term_unchanged() {
    let mut observer = seen(Some(lease("b_1", 4, "1")), s(100));
    assert_eq!(observer.decide(&me(), None, true, s(100)), Action::Wait(s(15)));
    assert_eq!(observer.decide(&me(), None, true, s(114)), Action::Wait(s(1)));
    observer.observe(Some(lease("b_1", 4, "2")), s(114));
    assert_eq!(observer.decide(&me(), None, true, s(116)), Action::Wait(s(13)));
    observer.observe(Some(lease("b_1", 4, "2")), s(120));
    assert_eq!(observer.decide(&me(), None, true, s(129)), Action::Take { transitions: 5 });
}

#[test]
fn the_longer_term_counts_and_a_foreign_one_is_bounded() {
    for (theirs, term) in
        [(None, 15), (Some(0), 15), (Some(3), 15), (Some(60), 60), (Some(301), 300), (Some(u64::MAX), 300)]
    {
        let record = LeaseRecord { duration_s: theirs, ..lease("b_1", 0, "1") };
        let observer = seen(Some(record), s(0));
        assert_eq!(observer.decide(&me(), None, true, s(1)), Action::Wait(s(term - 1)), "{theirs:?}");
        assert_eq!(observer.decide(&me(), None, true, s(term)), Action::Take { transitions: 1 });
    }
}

#[test]
fn a_lease_without_holder_or_of_our_earlier_self_is_taken_at_once_as_a_takeover() {
    for holder in ["", "a_1"] {
        let observer = seen(Some(lease(holder, 7, "1")), s(0));
        assert_eq!(observer.decide(&me(), None, true, s(0)), Action::Take { transitions: 8 });
    }
}

#[test]
fn a_take_without_an_answer_is_taken_again_with_transitions_raised_again() {
    let mut observer = seen(Some(lease("", 7, "1")), s(0));
    observer.attempt(8);
    assert_eq!(observer.decide(&me(), None, true, s(1)), Action::Take { transitions: 9 });
    observer.observe(Some(lease("a_1", 8, "2")), s(2));
    assert_eq!(observer.decide(&me(), None, true, s(2)), Action::Take { transitions: 9 });
    let observer = seen(Some(lease("", MAX_TRANSITIONS, "1")), s(0));
    assert_eq!(observer.decide(&me(), None, true, s(0)), Action::Take { transitions: 0 });
}

#[test]
fn a_hold_is_renewed_every_third_and_given_up_after_two() {
    let observer = seen(Some(lease("a_1", 7, "1")), s(0));
    let hold = held(s(100));
    for (now, wanted) in [
        (100, Action::Wait(s(5))),
        (104, Action::Wait(s(1))),
        (105, Action::Renew),
        (109, Action::Renew),
        (110, Action::StepDown),
        (1000, Action::StepDown),
    ] {
        assert_eq!(observer.decide(&me(), Some(&hold), true, s(now)), wanted, "{now}");
    }
    assert_eq!(hold.deadline(s(15)), s(110));
}

#[test]
fn a_hold_ends_when_the_lease_is_anothers_gone_made_anew_or_taken_again() {
    let hold = held(s(100));
    let anew = LeaseRecord { uid: "v".into(), ..lease("a_1", 7, "1") };
    for record in
        [None, Some(lease("b_1", 8, "1")), Some(lease("", 7, "1")), Some(lease("a_1", 8, "1")), Some(anew)]
    {
        let observer = seen(record, s(100));
        assert_eq!(observer.decide(&me(), Some(&hold), true, s(101)), Action::StepDown);
    }
}

#[test]
fn a_missing_lease_is_made_at_once_only_on_a_first_start() {
    let mut observer = seen(None, s(10));
    assert_eq!(observer.decide(&me(), None, false, s(10)), Action::Create);
    assert_eq!(observer.decide(&me(), None, true, s(10)), Action::Wait(s(15)));
    observer.observe(None, s(20));
    assert_eq!(observer.decide(&me(), None, true, s(25)), Action::Create);
    assert_eq!(Observer::default().decide(&me(), None, false, s(0)), Action::Wait(s(0)));
}

#[test]
fn a_lease_of_garbage_is_read_without_a_panic() {
    let blank = LeaseRecord::default();
    for lease in [
        json!(null),
        json!([]),
        json!({"spec": null, "metadata": 1}),
        json!({"spec": {"holderIdentity": null, "leaseDurationSeconds": "x", "leaseTransitions": -1}}),
        json!({"spec": {"holderIdentity": 5, "leaseDurationSeconds": 1.5, "leaseTransitions": 1e300}}),
    ] {
        assert_eq!(LeaseRecord::read(&lease), blank, "{lease}");
    }
    let lease = json!({
        "metadata": {"uid": "u", "resourceVersion": "9"},
        "spec": {"holderIdentity": "b_1", "leaseDurationSeconds": 15.0, "leaseTransitions": 3,
                 "acquireTime": "2026-11-30T12:00:00.000000Z", "renewTime": "x"}
    });
    let read = parse_foreign(lease.to_string().as_bytes(), 1_000).unwrap();
    let record = LeaseRecord::read(&read);
    assert_eq!((record.duration_s, record.transitions, record.uid.as_str()), (Some(15), 3, "u"));
}

#[test]
fn lease_times_have_exactly_six_digits_of_fraction() {
    for (time, text) in [
        ("2026-11-30T12:00:00Z", "2026-11-30T12:00:00.000000Z"),
        ("2026-11-30T12:00:00.5Z", "2026-11-30T12:00:00.500000Z"),
        ("2026-11-30T12:00:00.123456789Z", "2026-11-30T12:00:00.123456Z"),
    ] {
        assert_eq!(micro_time(time.parse().unwrap()), text);
    }
}
