//! An `inventory.report` whose inventory does not come.

use super::*;

const NONCE: &str = "nonce-of-the-test-000001";

/// A leader that has accepted one a minute before its window is over.
fn asked() -> Bench {
    let mut bench = Bench::new();
    bench.advance(Duration::from_mins(8));
    let mut payload = apply("a", 1, &json!({}));
    payload["operation"] = "inventory.report".into();
    payload["arguments"] = json!({});
    bench.deliver(&sign(&payload));
    bench
}

impl Bench {
    /// How the command ended, if it has.
    fn outcome(&self) -> Option<String> {
        let state = self.leader.reign.as_ref().unwrap().store.shared();
        let receipt = state.waiting_receipts().find(|(nonce, _)| nonce.as_str() == NONCE);
        receipt.map(|(_, receipt)| receipt.reason.map_or("", Reason::as_str).to_owned())
    }
}

#[test]
fn one_that_cannot_be_answered_fails_when_its_window_is_over_and_not_minutes_later() {
    let mut bench = asked();
    assert!(bench.leader.work() <= IDLE);
    bench.advance(Duration::from_mins(1));
    assert_eq!(bench.outcome(), None, "its window's last moment");
    let pause = bench.leader.work();
    bench.advance(pause);
    assert_eq!(bench.outcome().as_deref(), Some("kubernetes_unavailable"));
}

#[test]
fn only_a_new_leader_says_that_one_has_expired() {
    for (new, wanted) in [(false, "kubernetes_unavailable"), (true, "expired")] {
        let mut bench = asked();
        // The state's write takes longer than what is left of the window.
        *bench.api.latency.lock().unwrap() = Duration::from_mins(2);
        if new {
            bench.leader.intake().unwrap();
            bench.begin_anew(|_| ());
        } else {
            bench.leader.work();
        }
        assert_eq!(bench.outcome().as_deref(), Some(wanted));
    }
}
