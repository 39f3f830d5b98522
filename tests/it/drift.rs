//! What was approved is kept: by hand changed or deleted, a component comes back.

use crate::lab::{
    BOUND, POD, add_finalizer, applied, assert_kept_of_another, let_go, live, patch, queue, succeeded,
    touch_by_another, until_event, until_spec,
};
use crate::wired::Wired;
use navin_test_support::{Fate, World, until};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_component_that_was_changed_by_hand_is_restored_and_what_is_of_others_stays() {
    let world = World::start("drift-patch", &json!({}));
    let _agent = world.agent(POD);
    let spec = json!({ "replicas": 2, "image": "a" });
    applied(&world, "ingress", &spec);
    touch_by_another(&world, "ingress", &json!({ "replicas": 9, "added": true, "image": null }));
    assert_kept_of_another(&until_spec(&world, "ingress", &spec));
    let_go(&world, "ingress");
}

#[test]
fn a_component_that_was_deleted_by_hand_is_made_anew() {
    let world = World::start("drift-delete", &json!({}));
    let _agent = world.agent(POD);
    let spec = json!({ "replicas": 2 });
    applied(&world, "ingress", &spec);
    let uid = live(&world, "ingress")["metadata"]["uid"].clone();
    world.cluster.admin().delete(&world.namespace.component_path("ingress"));
    let object = until("the component to be there again", BOUND, || {
        world.namespace.component("ingress").filter(|object| object["metadata"]["uid"] != uid)
    });
    assert_eq!(object["spec"], spec);
}

#[test]
fn a_deleted_component_that_a_finalizer_holds_is_made_anew_when_it_is_gone() {
    let world = World::start("drift-finalizer", &json!({}));
    let _agent = world.agent(POD);
    let spec = json!({ "replicas": 2 });
    applied(&world, "ingress", &spec);
    add_finalizer(&world, "ingress");
    let uid = live(&world, "ingress")["metadata"]["uid"].clone();
    world.cluster.admin().delete(&world.namespace.component_path("ingress"));
    // Another command is carried out meanwhile, after the agent has seen the deletion.
    applied(&world, "other", &spec);
    assert_eq!(live(&world, "ingress")["metadata"]["uid"], uid, "not written to while it is going");
    let_go(&world, "ingress");
    until("the component to be there again", BOUND, || {
        world.namespace.component("ingress").filter(|object| object["metadata"]["uid"] != uid)
    });
}

#[test]
fn what_no_command_asked_for_is_left_alone() {
    let world = World::start("drift-foreign", &json!({}));
    let _agent = world.agent(POD);
    world.namespace.create_component("foreign", &json!({ "by": "hand" }));
    applied(&world, "ingress", &json!({ "replicas": 2 }));
    succeeded(&world.delete("ingress", BOUND));
    world.namespace.create_component("ingress", &json!({ "by": "hand" }));
    // Whatever the agent does about the two, it has done before it does this.
    patch(&world, "foreign", &json!({ "spec": { "by": "another" } }));
    applied(&world, "other", &json!({}));
    until_spec(&world, "other", &json!({}));
    assert_eq!(live(&world, "foreign")["spec"], json!({ "by": "another" }));
    assert_eq!(live(&world, "ingress")["spec"], json!({ "by": "hand" }));
}

#[test]
fn a_create_that_lands_after_a_newer_delete_is_removed() {
    let world = World::start("drift-late", &json!({}));
    let _agent = world.agent(POD);
    applied(&world, "ingress", &json!({ "replicas": 2 }));
    // What a lost create would leave, were it to land now.
    let mut late = live(&world, "ingress");
    succeeded(&world.delete("ingress", BOUND));
    let metadata = late["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|member, _| ["name", "namespace", "labels", "annotations"].contains(&member.as_str()));
    let path = world.namespace.component_path("ingress");
    let collection = path.trim_end_matches("/ingress");
    let (status, answer) = world.cluster.admin().post(collection, &late);
    assert_eq!(status, 201, "{answer}");
    until("the late create to be removed", BOUND, || {
        world.namespace.component("ingress").is_none().then_some(())
    });
}

#[test]
fn a_new_leader_restores_what_was_changed_while_nobody_led() {
    let world = World::start("drift-nobody", &json!({}));
    let spec = json!({ "replicas": 2 });
    let agent = world.agent(POD);
    applied(&world, "changed", &spec);
    applied(&world, "gone", &spec);
    agent.process().terminate();
    assert_eq!(agent.process().wait_exit(BOUND), Some(0));
    patch(&world, "changed", &json!({ "spec": { "replicas": 9 } }));
    world.cluster.admin().delete(&world.namespace.component_path("gone"));
    let _next = world.agent("agent-b");
    until_spec(&world, "changed", &spec);
    until_spec(&world, "gone", &spec);
}

#[test]
fn repairs_are_reported_and_a_component_that_is_changed_again_and_again_is_contested() {
    let world = World::start("drift-contested", &json!({ "report_interval_s": 10 }));
    let _agent = world.agent(POD);
    let spec = json!({ "replicas": 2 });
    applied(&world, "ingress", &spec);
    for round in 0..5 {
        patch(&world, "ingress", &json!({ "spec": { "replicas": 10 + round } }));
        until_spec(&world, "ingress", &spec);
    }
    patch(&world, "ingress", &json!({ "spec": { "replicas": 99 } }));
    let report = until("the report to say that the component is contested", BOUND, || {
        let cluster = world.manager.cluster(world.cluster_id());
        let report = cluster["report"].clone();
        let reason = report["components"][0]["reason"].as_str().unwrap_or("").to_owned();
        reason.starts_with("contested").then_some(report)
    });
    assert_eq!(report["components"][0]["in_sync"], false);
    assert_eq!(report["counters"]["drift_repaired"], 5);
    assert_eq!(live(&world, "ingress")["spec"], json!({ "replicas": 99 }), "not restored at once");
    let told = until_event(&world, "Contested", 1);
    assert_eq!(told["involvedObject"]["name"], "ingress");
}

#[test]
fn a_component_whose_envelope_was_tampered_with_in_the_state_is_left_as_it_is_and_reported() {
    let world = World::start("drift-tampered", &json!({ "report_interval_s": 10 }));
    let agent = world.agent(POD);
    applied(&world, "ingress", &json!({ "replicas": 2 }));
    agent.process().kill9();
    let admin = world.cluster.admin();
    let mut state = crate::lab::state(&world);
    state["components"]["ingress"]["desired"]["envelope"]["payload"]["arguments"]["spec"] =
        json!({ "replicas": 666 });
    let change = json!({ "data": { "state.json": state.to_string() } });
    assert_eq!(admin.patch(&world.namespace.state_path(), &change).0, 200);
    patch(&world, "ingress", &json!({ "spec": { "replicas": 9 } }));
    agent.process().start_again();
    let reason = until("the report to say why", BOUND, || {
        let report = world.manager.cluster(world.cluster_id())["report"].clone();
        report["components"][0]["reason"].as_str().map(str::to_owned)
    });
    assert!(reason.contains("does not verify (invalid_signature)"), "{reason}");
    assert_eq!(live(&world, "ingress")["spec"], json!({ "replicas": 9 }), "neither spec is written");
    applied(&world, "other", &json!({}));
}

/// Thirty readings take longer than a batch of writes may: it must not be read anew for ever.
#[test]
fn many_components_that_are_gone_at_once_are_made_anew_over_a_slow_network() {
    const MANY: usize = 32;
    let wired = Wired::start("many-gone", &json!({}));
    let _replica = wired.replica(POD);
    let world = &wired.world;
    for number in 0..MANY {
        queue(world, "managedcomponent.apply", &json!({ "name": format!("c{number:02}"), "spec": {} }));
    }
    let admin = world.cluster.admin();
    let all_there = || (admin.list(&world.namespace.components_path()).len() == MANY).then_some(());
    until("all to be applied", BOUND, all_there);
    wired.wire.rule(|call, reply| {
        if reply.is_none() && call.method == "GET" && call.resource().contains("/managedcomponents/") {
            return Fate::Delay(Duration::from_millis(15));
        }
        Fate::Pass
    });
    let (status, answer) = admin.delete(&world.namespace.components_path());
    assert_eq!(status, 200, "{answer}");
    until("all to be there again", BOUND, all_there);
}
