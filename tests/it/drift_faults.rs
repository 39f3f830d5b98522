//! What looks like drift and is none, and what keeps the agent from seeing or repairing it: no fight, no
//! flood, nothing taken for "all deleted", and the repair when it is over. The public reports that some of
//! these come from are named.

use crate::lab::{
    BOUND, Changed, POD, applied, changed, live, patch, succeeded, until_spec, with_crd_again, without_crd,
};
use crate::webhook::Webhook;
use crate::wired::{COMPONENTS, Wired, writes_component};
use navin_test_support::{Call, Fate, Server, World, until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn lists(call: &Call) -> bool {
    call.server == Server::Api && call.is("GET", COMPONENTS) && !call.path.contains("watch=")
}

fn watches(call: &Call) -> bool {
    call.server == Server::Api && call.is("GET", COMPONENTS) && call.path.contains("watch=")
}

fn answer(status: u16, body: &Value) -> Fate {
    Fate::Answer { status, body: format!("{body}\n"), retry_after_s: None }
}

fn status(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "message": "as the scenario wants it", "code": code })
}

/// cloudnative-pg#10418: an endless tug-of-war between an operator and a webhook.
#[test]
fn what_a_mutating_webhook_makes_of_a_spec_is_no_drift_and_a_hand_still_is() {
    let wired = Wired::start("webhook", &json!({}));
    let world = &wired.world;
    let webhook = Webhook::start(world.cluster, &world.namespace.name, |object| {
        let image = object["spec"]["image"].as_str().unwrap_or("none");
        let image = format!("mirror/{}", image.trim_start_matches("mirror/"));
        json!([{ "op": "add", "path": "/spec/image", "value": image },
            { "op": "add", "path": "/spec/injected", "value": true }])
    });
    let _replica = wired.replica(POD);
    // The API server takes a moment to know of a webhook.
    until("the webhook to be asked", BOUND, || {
        applied(world, "probe", &json!({ "image": "a", "at": webhook.asked() }));
        (webhook.asked() > 0).then_some(())
    });
    applied(world, "ingress", &json!({ "image": "a" }));
    let mutated = json!({ "image": "mirror/a", "injected": true });
    assert_eq!(live(world, "ingress")["spec"], mutated);

    patch(world, "ingress", &json!({ "spec": { "image": "by-hand" } }));
    until_spec(world, "ingress", &mutated);
    let from = wired.wire.len();
    // A relist, a report and a command later nothing has been written again.
    succeeded(&world.manager.execute(world.cluster_id(), "inventory.report", &json!({}), BOUND));
    applied(world, "other", &json!({ "image": "b" }));
    let fight = |exchange: &navin_test_support::Exchange| {
        writes_component(exchange) && exchange.call.resource().ends_with("/ingress")
    };
    assert_eq!(wired.wire.since(from).iter().filter(|exchange| fight(exchange)).count(), 0);
}

/// headlamp#7451, kdashboard#59: both forms of 410 lead to one fresh list, and a watch from its version.
#[test]
fn a_watch_whose_version_is_too_old_is_begun_anew_from_a_list() {
    for (name, status_code, body) in [
        ("gone-event", 200, json!({ "type": "ERROR", "object": status(410, "Expired") })),
        ("gone-status", 410, status(410, "Expired")),
    ] {
        let wired = Wired::start(name, &json!({}));
        let gone = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&gone);
        wired.wire.rule(move |call, reply| {
            if reply.is_none() && watches(call) && counted.fetch_add(1, Ordering::Relaxed) == 0 {
                return answer(status_code, &body);
            }
            Fate::Pass
        });
        let _replica = wired.replica(POD);
        let first = wired.wire.wait("a watch", 0, BOUND, |exchange| watches(&exchange.call)).call;
        let again = wired
            .wire
            .wait("a list", first.number, BOUND, |exchange| lists(&exchange.call) && exchange.took_effect());
        let version = again.reply.expect("an answer").json()["metadata"]["resourceVersion"].clone();
        let next = wired.wire.wait("another watch", again.call.number, BOUND, |exchange| {
            watches(&exchange.call) && exchange.took_effect()
        });
        let from = format!("resourceVersion={}", version.as_str().expect("a version"));
        assert!(next.call.path.contains(&from), "{name}: {} from {from}", next.call.path);
        let calls = wired.wire.since(first.number);
        assert_eq!(calls.iter().filter(|exchange| lists(&exchange.call)).count(), 1, "{name}");
        let spec = json!({ "replicas": 2 });
        applied(&wired.world, "ingress", &spec);
        patch(&wired.world, "ingress", &json!({ "spec": { "replicas": 9 } }));
        until_spec(&wired.world, "ingress", &spec);
    }
}

/// opentelemetry-collector-contrib#49962, kubernetes#110720: lists and watches of one kind fail for a while,
/// as behind a broken conversion webhook. Everything else goes on, and nothing is taken for deleted.
#[test]
fn components_that_cannot_be_listed_are_reported_so_and_repaired_when_they_can() {
    let wired = Wired::start("unlistable", &json!({ "report_interval_s": 10 }));
    let replica = wired.replica(POD);
    let (world, spec) = (&wired.world, json!({ "replicas": 2 }));
    applied(world, "ingress", &spec);
    wired.wire.rule(|call, reply| {
        if reply.is_none() && (lists(call) || watches(call)) {
            return answer(500, &status(500, "InternalError"));
        }
        Fate::Pass
    });
    let from = wired.wire.len();
    replica.reset_api();
    until("the report to say that the components are unreadable", BOUND, || {
        let report = world.manager.cluster(world.cluster_id())["report"].clone();
        (report["components"] == Value::Null).then_some(())
    });
    patch(world, "ingress", &json!({ "spec": { "replicas": 9 } }));
    applied(world, "other", &json!({ "commands": "go on" }));
    let written = wired.wire.since(from).into_iter().filter(writes_component);
    assert_eq!(written.filter(|exchange| exchange.call.resource().ends_with("/ingress")).count(), 0);
    wired.wire.pass_all();
    until_spec(world, "ingress", &spec);
}

/// gardener#4802: the CRD is deleted, and with it all components; it comes back.
#[test]
fn when_the_crd_is_back_so_are_the_components() {
    let (cluster, _turn) = changed(Changed::Schema);
    let world = World::start_in(cluster, "crd-back", &json!({ "report_interval_s": 10 }));
    let agent = world.agent(POD);
    let spec = json!({ "replicas": 2 });
    applied(&world, "ingress", &spec);
    let crd = without_crd(&world);
    let report = until("the report to say that the components are unreadable", BOUND, || {
        let report = world.manager.cluster(world.cluster_id())["report"].clone();
        (report["components"] == Value::Null).then_some(report)
    });
    assert_eq!(report["counters"]["drift_repaired"], 0, "{report}");
    with_crd_again(&world, &crd);
    until("the component to be there again", 3 * BOUND, || {
        (world.namespace.component("ingress")?["spec"] == spec).then_some(())
    });
    let lines = agent.process().stderr_text();
    let about = lines.lines().filter(|line| line.contains("components not watched")).count();
    assert!(about <= 5, "said when it changes, not at each try: {about} lines");
}

/// kubernetes#38612: creates in a namespace that is ending are refused; no spam.
#[test]
fn in_a_namespace_that_is_ending_nothing_is_tried_at_speed() {
    let wired = Wired::start("ending", &json!({}));
    let _replica = wired.replica(POD);
    applied(&wired.world, "ingress", &json!({ "replicas": 2 }));
    let admin = wired.world.cluster.admin();
    // No controller empties it here, so it stays in this phase.
    admin.delete(&format!("/api/v1/namespaces/{}", wired.world.namespace.name));
    let from = wired.wire.len();
    admin.delete(&wired.world.namespace.component_path("ingress"));
    wired.wire.wait("a create that is refused", from, BOUND, |exchange| {
        writes_component(exchange) && exchange.reply.as_ref().is_some_and(|reply| reply.status == 403)
    });
    let at = wired.wire.len();
    // The Lease goes on meanwhile: three renewals are time enough for a hot loop to show.
    for _ in 0..3 {
        let from = wired.wire.len();
        wired.wire.wait("a renewal", from, BOUND, |exchange| {
            exchange.call.is("PUT", crate::wired::LEASE) && exchange.took_effect()
        });
    }
    let tries = wired.wire.since(at).iter().filter(|exchange| writes_component(exchange)).count();
    assert!(tries <= 1, "{tries} tries while three renewals passed");
}
