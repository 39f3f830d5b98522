//! Another identity is taken while the leader leads.

use super::*;
use crate::rules::envelope::KeyRing;
use crate::rules::names::ComponentName;
use crate::rules::vectors::load;

#[test]
fn what_a_withdrawn_key_has_signed_and_is_not_done_is_ended_and_with_the_same_keys_goes_on() {
    let other = KeyRing::from_pem(load("envelopes.json")["manager_pem"].as_str().unwrap()).unwrap();
    assert_ne!(other, trust().ring);
    for (ring, accepted) in [(trust().ring, 1), (other, 0)] {
        let mut bench = Bench::new();
        bench.leader.world.contact.note_answered(bench.clock.monotonic());
        *bench.api.broken.lock().unwrap() = Some("/a");
        bench.deliver(&sign(&apply("a", 1, &json!({}))));
        bench.leader.work();
        bench.leader.handle(Event::Trust(Box::new(Trust { ring, ..trust() })));
        bench.leader.work();
        let state = bench.leader.reign.as_ref().expect("it leads on").store.shared();
        assert_eq!(state.counts().accepted, accepted);
        let outcome = state.waiting_receipts().next().and_then(|(_, receipt)| receipt.reason);
        assert_eq!(outcome, (accepted == 0).then_some(Reason::UnknownKey));
        let name = ComponentName::parse("a").unwrap();
        assert_eq!(state.is_late_create(&name, 1), accepted == 0, "its create may land, or has landed");
    }
}
