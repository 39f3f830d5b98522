//! What people see with `kubectl get events`.

use crate::lab::{BOUND, POD, applied, patch};
use navin_test_support::{World, until};
use serde_json::{Value, json};

fn until_event(world: &World, reason: &str, count: u64) -> Value {
    until(&format!("the Event {reason} to count {count}"), 2 * BOUND, || {
        let mut events = world.namespace.events().into_iter();
        events.find(|event| event["reason"] == reason && event["count"].as_u64() >= Some(count))
    })
}

#[test]
fn a_component_that_is_restored_again_and_again_is_told_in_one_event_that_counts() {
    let world = World::start("events", &json!({}));
    let _agent = world.agent(POD);
    applied(&world, "ingress", &json!({ "replicas": 2 }));
    let elected = until_event(&world, "LeaderElected", 1);
    assert_eq!(elected["involvedObject"]["kind"], "Pod");
    assert_eq!(elected["involvedObject"]["name"], POD);
    assert_eq!(elected["type"], "Normal");

    for round in 0..3 {
        patch(&world, "ingress", &json!({ "spec": { "replicas": 10 + round } }));
        until("the component to be restored", BOUND, || {
            let object = world.namespace.component("ingress")?;
            (object["spec"]["replicas"] == 2).then_some(())
        });
    }
    let restored = until_event(&world, "ComponentRestored", 3);
    assert_eq!(restored["involvedObject"]["kind"], "ManagedComponent");
    assert_eq!(restored["involvedObject"]["name"], "ingress");
    let alike = world.namespace.events().iter().filter(|e| e["reason"] == "ComponentRestored").count();
    assert_eq!(alike, 1, "counted, not repeated");
}
