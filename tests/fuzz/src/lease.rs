//! A Lease as it is found in the cluster, read at any time after it was first seen.
//!
//! - Whoever holds it is left it for as long as the longer of the two terms, and for 300 seconds at the most;
//!   nobody's is taken at once.
//! - A number of transitions that is written fits into the API's, and is another than what was read.
//! - A hold of our own is given up where the Lease is another's, and is never renewed after two thirds of its term.

use navin_cluster_agent::rules::election::{Action, Candidate, Hold, LeaseRecord, Observer, Tenure};
use navin_cluster_agent::rules::json::parse_foreign;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Larger than any text here.
const ANY_SIZE: usize = 64 * 1024 * 1024;
/// Our term.
const TERM: Duration = Duration::from_secs(15);

/// Checks bytes as a Lease.
pub fn check(bytes: &[u8]) {
    let Ok(lease) = parse_foreign(bytes, ANY_SIZE) else { return };
    let record = LeaseRecord::read(&lease);
    let me = Candidate { holder: "agent-0_u1".to_owned(), duration: TERM };
    taken(&lease, &record, &me);
    held(&record, &me);
}

fn taken(lease: &Value, record: &LeaseRecord, me: &Candidate) {
    let told = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_u64).unwrap_or(0);
    let term = TERM.max(Duration::from_secs(told.min(300)));
    let free = record.holder.is_empty() || record.holder == me.holder;
    let mut observer = Observer::default();
    observer.observe(Some(record.clone()), Duration::from_secs(100));
    for passed in [0, 1, 14, 15, 299, 300, 100_000] {
        let passed = Duration::from_secs(passed);
        match observer.decide(me, None, true, Duration::from_secs(100) + passed) {
            Action::Take { transitions } => {
                assert!(free || passed >= term, "taken after {passed:?} of {term:?}");
                assert!(i32::try_from(transitions).is_ok() && transitions != record.transitions);
            }
            Action::Wait(rest) => {
                assert!(!free && passed + rest == term, "{rest:?} after {passed:?} of {term:?}");
            }
            action @ (Action::Create | Action::Renew | Action::StepDown) => panic!("{action:?}"),
        }
    }
}

fn held(record: &LeaseRecord, me: &Candidate) {
    let (sent, s) = (Duration::from_secs(100), Duration::from_secs);
    let tenure = Tenure {
        holder: me.holder.clone(),
        transitions: record.transitions,
        lease_uid: record.uid.clone(),
        first_start: false,
        since: sent,
    };
    let hold = Hold { tenure: Arc::new(tenure), renewed: sent };
    let mut observer = Observer::default();
    observer.observe(Some(record.clone()), sent);
    for (passed, ours) in
        [(0, Action::Wait(s(5))), (5, Action::Renew), (9, Action::Renew), (10, Action::StepDown)]
    {
        let action = observer.decide(me, Some(&hold), true, sent + s(passed));
        let wanted = if record.holder == me.holder { ours } else { Action::StepDown };
        assert_eq!(action, wanted, "after {passed} s");
    }
}
