//! What apply and delete do to a component, and what they leave alone.

use crate::lab::{
    BOUND, FINALIZER, POD, add_finalizer, applied, assert_kept_of_another, let_go, live, outcome, queue,
    succeeded, touch_by_another, until_accepted,
};
use navin_test_support::{World, until};
use serde_json::{Value, json};
use std::time::Instant;

fn annotation<'v>(object: &'v Value, name: &str) -> &'v Value {
    &object["metadata"]["annotations"][format!("platform.navin.ai/{name}")]
}

#[test]
fn an_apply_creates_the_component_exactly_as_signed() {
    let world = World::start("create", &json!({}));
    let _agent = world.agent(POD);
    let spec = json!({ "replicas": 2, "ratio": 1.5, "nothing": null, "list": [{ "a": "ü" }, []] });
    let command = world.apply("ingress", &spec, BOUND);
    let receipt = succeeded(&command);

    let object = live(&world, "ingress");
    assert_eq!(object["spec"], spec);
    assert_eq!(
        object["metadata"]["labels"],
        json!({ "app.kubernetes.io/managed-by": "navin-cluster-agent" })
    );
    let sequence = command["sequence"].as_u64().expect("a sequence").to_string();
    assert_eq!(
        object["metadata"]["annotations"],
        json!({
            "platform.navin.ai/command-id": command["command_id"],
            "platform.navin.ai/sequence": sequence,
            "platform.navin.ai/created": sequence,
        })
    );
    assert_eq!(
        receipt["result"],
        json!({ "name": "ingress", "uid": object["metadata"]["uid"], "generation": 1, "changed": true })
    );
    assert_eq!(receipt["recorded"], true);
    assert_eq!(receipt["source"], "gateway");
    assert_eq!(receipt["replica"], POD);
    assert_eq!(receipt.get("reason"), None);
}

#[test]
fn a_second_apply_replaces_the_whole_spec_and_leaves_what_is_of_others() {
    let world = World::start("replace", &json!({}));
    let _agent = world.agent(POD);
    applied(&world, "ingress", &json!({ "replicas": 2, "image": "a" }));
    let created = annotation(&live(&world, "ingress"), "created").clone();
    touch_by_another(&world, "ingress", &json!({ "by-hand": { "deep": true } }));
    let path = format!("{}/status", world.namespace.component_path("ingress"));
    let (status, answer) = world.cluster.admin().patch(&path, &json!({ "status": { "phase": "Ready" } }));
    assert_eq!(status, 200, "{answer}");

    let spec = json!({ "replicas": 3 });
    let command = world.apply("ingress", &spec, BOUND);
    let receipt = succeeded(&command);
    let object = live(&world, "ingress");
    assert_eq!(object["spec"], spec);
    assert_eq!(object["status"], json!({ "phase": "Ready" }));
    assert_kept_of_another(&object);
    assert_eq!(*annotation(&object, "created"), created);
    assert_eq!(*annotation(&object, "command-id"), command["command_id"]);
    assert_eq!(receipt["result"]["changed"], true);
    assert_eq!(receipt["result"]["generation"], object["metadata"]["generation"]);
}

#[test]
fn an_apply_of_the_same_spec_says_that_nothing_changed_and_signs_the_component_anew() {
    let world = World::start("unchanged", &json!({}));
    let _agent = world.agent(POD);
    let first = applied(&world, "ingress", &json!({ "replicas": 2, "ratio": 1.0 }));
    let command = world.apply("ingress", &json!({ "ratio": 1, "replicas": 2 }), BOUND);
    let second = succeeded(&command);
    assert_eq!(second["result"]["changed"], false);
    assert_eq!(second["result"]["generation"], first["result"]["generation"]);
    assert_eq!(second["result"]["uid"], first["result"]["uid"]);
    assert_eq!(*annotation(&live(&world, "ingress"), "command-id"), command["command_id"]);
}

#[test]
fn an_apply_over_a_component_made_by_hand_takes_it_over_without_claiming_to_have_created_it() {
    let world = World::start("adopt", &json!({}));
    let _agent = world.agent(POD);
    let by_hand = world.namespace.create_component("ingress", &json!({ "by": "hand" }));
    let receipt = applied(&world, "ingress", &json!({ "by": "command" }));
    let object = live(&world, "ingress");
    assert_eq!(object["spec"], json!({ "by": "command" }));
    assert_eq!(object["metadata"]["uid"], by_hand["metadata"]["uid"]);
    assert_eq!(*annotation(&object, "created"), Value::Null);
    assert_eq!(receipt["result"]["uid"], object["metadata"]["uid"]);
    assert_eq!(receipt["result"]["changed"], true);
}

#[test]
fn a_component_that_no_command_asked_for_is_left_alone() {
    let world = World::start("bystander", &json!({}));
    let _agent = world.agent(POD);
    let before = world.namespace.create_component("other", &json!({ "by": "hand" }));
    applied(&world, "ingress", &json!({ "replicas": 1 }));
    succeeded(&world.delete("ingress", BOUND));
    assert_eq!(live(&world, "other"), before);
}

#[test]
fn a_delete_removes_the_component_and_one_of_a_missing_name_succeeds_too() {
    let world = World::start("delete", &json!({}));
    let _agent = world.agent(POD);
    applied(&world, "ingress", &json!({ "replicas": 2 }));
    let receipt = succeeded(&world.delete("ingress", BOUND));
    assert_eq!(receipt["result"], json!({ "name": "ingress", "existed": true, "finalizing": false }));
    assert_eq!(world.namespace.component("ingress"), None);

    let receipt = succeeded(&world.delete("ingress", BOUND));
    assert_eq!(receipt["result"], json!({ "name": "ingress", "existed": false, "finalizing": false }));
    let receipt = succeeded(&world.delete("never-was", BOUND));
    assert_eq!(receipt["result"], json!({ "name": "never-was", "existed": false, "finalizing": false }));
}

#[test]
fn a_delete_that_a_finalizer_holds_says_so_after_ten_seconds_and_holds_up_no_other_command() {
    let world = World::start("finalizer", &json!({}));
    let _agent = world.agent(POD);
    applied(&world, "held", &json!({ "replicas": 2 }));
    add_finalizer(&world, "held");

    let started = Instant::now();
    let delete = queue(&world, "managedcomponent.delete", &json!({ "name": "held" }));
    until_accepted(&world, &delete);
    applied(&world, "meanwhile", &json!({ "replicas": 1 }));
    succeeded(&world.delete("meanwhile", BOUND));
    let status = world.manager.command_status(world.cluster_id(), &delete)["status"].clone();
    assert_eq!(status, "delivered", "two commands ran while the delete waits");

    let receipt = succeeded(&outcome(&world, &delete));
    let took = started.elapsed().as_secs();
    assert!((9..20).contains(&took), "it waited for about ten seconds, not {took}");
    assert_eq!(receipt["result"], json!({ "name": "held", "existed": true, "finalizing": true }));
    let message = receipt["message"].as_str().expect("a message");
    assert!(message.contains(FINALIZER), "the finalizer is named: {message}");
    let object = live(&world, "held");
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]));
    assert!(object["metadata"]["deletionTimestamp"].is_string());
}

#[test]
fn an_apply_over_a_component_that_is_being_deleted_waits_and_then_creates() {
    let world = World::start("reborn", &json!({}));
    let _agent = world.agent(POD);
    let former = applied(&world, "held", &json!({ "replicas": 1 }));
    add_finalizer(&world, "held");
    world.cluster.admin().delete(&world.namespace.component_path("held"));
    let before = live(&world, "held");

    let apply =
        queue(&world, "managedcomponent.apply", &json!({ "name": "held", "spec": { "replicas": 2 } }));
    until_accepted(&world, &apply);
    applied(&world, "meanwhile", &json!({}));
    assert_eq!(live(&world, "held"), before, "what is being deleted is not written to");
    let_go(&world, "held");
    let receipt = succeeded(&outcome(&world, &apply));
    assert_ne!(receipt["result"]["uid"], former["result"]["uid"]);
    assert_eq!(receipt["result"]["changed"], true);
    let object = until("the new component", BOUND, || world.namespace.component("held"));
    assert_eq!(object["spec"], json!({ "replicas": 2 }));
    assert_eq!(object["metadata"]["uid"], receipt["result"]["uid"]);
}
