//! A state that somebody has altered by hand: what stands in it is signed, and not for where it stands.

use super::*;

const STATE: &str = "/api/v1/namespaces/navin-platform/configmaps/navin-cluster-agent-state";

impl Bench {
    /// Alters the state, and lets the leader begin anew from it.
    pub(super) fn begin_anew(&mut self, alter: impl FnOnce(&mut Value)) {
        self.permit.revoke();
        self.leader.work();
        let mut objects = self.api.objects.lock().unwrap();
        let mut object = objects.0.remove(STATE).unwrap();
        let mut state = serde_json::from_str(object["data"]["state.json"].as_str().unwrap()).unwrap();
        alter(&mut state);
        object["data"]["state.json"] = state.to_string().into();
        FakeApi::put(&mut objects, STATE.to_owned(), object);
        drop(objects);
        self.grant(false);
        (0..9).find(|_| !self.leader.work().is_zero()).expect("it comes to rest");
    }

    pub(super) fn applied(sequence: u64) -> Self {
        let mut bench = Self::new();
        bench.leader.world.contact.note_answered(bench.clock.monotonic());
        bench.deliver(&sign(&apply("a", sequence, &json!({ "of": sequence }))));
        bench.leader.work();
        bench
    }

    fn standing(&self) -> Vec<String> {
        let objects = self.api.objects.lock().unwrap();
        let names = objects.0.keys().filter_map(|path| path.strip_prefix(COMPONENTS));
        names.map(str::to_owned).collect()
    }
}

#[test]
fn a_record_with_the_envelope_of_another_command_is_ended_and_that_one_is_not_carried_out() {
    let mut bench = Bench::applied(1);
    let nonce = "nonce-of-the-test-000001";
    // Of another nonce, and of another command of the same nonce.
    let mut same_nonce = apply("b", 1, &json!({}));
    same_nonce["command_id"] = "c5cefdd8-0273-45c9-821e-000000000009".into();
    for other in [apply("b", 2, &json!({})), same_nonce] {
        bench.begin_anew(|state| {
            state["components"] = json!({});
            state["commands"][nonce]["phase"] = json!({ "accepted": { "envelope": sign(&other) } });
        });
        assert_eq!(bench.standing(), ["/a"]);
        let state = bench.leader.reign.as_ref().unwrap().store.shared();
        assert_eq!(state.counts().accepted, 0, "its name is free, and nobody begins it again");
        let (_, receipt) = state.waiting_receipts().next().unwrap();
        let text = serde_json::to_value(receipt).unwrap();
        assert_eq!((text["nonce"].as_str(), text["status"].as_str()), (Some(nonce), Some("failed")));
        assert_eq!(text["reason"], "invalid_envelope");
    }
}

#[test]
fn what_is_desired_is_the_command_of_its_sequence_and_no_older_one() {
    for (sequence, restored) in [(5, vec!["/a"]), (4, vec![])] {
        let mut bench = Bench::applied(5);
        bench.api.objects.lock().unwrap().0.retain(|path, _| !path.starts_with(COMPONENTS));
        bench.begin_anew(|state| {
            let envelope = sign(&apply("a", sequence, &json!({ "of": sequence })));
            state["components"]["a"]["desired"]["envelope"] = envelope;
        });
        assert_eq!(bench.standing(), restored, "{sequence}");
    }
}

#[test]
fn a_mark_that_was_written_into_the_state_removes_nothing_of_a_component_whose_command_stands_there() {
    for sequence in [0, 1] {
        let mut bench = Bench::applied(1);
        assert_eq!(bench.standing(), ["/a"]);
        bench.begin_anew(|state| {
            let mark =
                json!({ "sequence": 9_007_199_254_740_991_u64, "forget_after": "2099-01-01T00:00:00Z" });
            state["components"]["a"]["mark"] = mark;
            state["components"]["a"]["desired"]["sequence"] = json!(sequence);
        });
        bench.advance(Duration::from_mins(1));
        assert_eq!(bench.standing(), ["/a"], "desired.sequence {sequence}");
    }
}
