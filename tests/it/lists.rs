//! Lists that expire, fail, or hold what a strict reader would choke on. The public reports that these come from
//! are named.

use crate::lab::{BOUND, POD, applied, patch};
use crate::wired::{COMPONENTS, Wired};
use navin_test_support::{Call, Fate, Reading, Server, until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NODES: &str = "/api/v1/nodes";

fn lists(call: &Call, resource_end: &str) -> bool {
    call.server == Server::Api && call.is("GET", resource_end) && !call.path.contains("watch=")
}

fn watches(call: &Call) -> bool {
    call.server == Server::Api && call.is("GET", COMPONENTS) && call.path.contains("watch=")
}

fn gone() -> Fate {
    Fate::answer(410, "Expired")
}

/// The `inventory.report` of a leader whose lists go as `rule` wants: the kind `nodes`.
fn nodes(wired: &Wired) -> Value {
    let (world, cluster) = (&wired.world, wired.world.cluster_id());
    let outcome = world.manager.execute(cluster, "inventory.report", &json!({}), BOUND);
    assert_eq!(outcome["status"], "succeeded", "{outcome}");
    let revision = outcome["receipt"]["result"]["revision"].clone();
    let report = until("the report of it", BOUND, || {
        let inventory = world.manager.inventory(cluster)?;
        (inventory["revision"] == revision).then_some(inventory)
    });
    report["inventory"]["nodes"].clone()
}

/// opentelemetry-collector-contrib#49962: after a 410 the list fails a few times, and nobody tries again.
#[test]
fn a_list_that_fails_after_a_410_is_tried_until_it_works() {
    let wired = Wired::start("list-fails", &json!({}));
    let replica = wired.replica(POD);
    let spec = json!({ "replicas": 2 });
    applied(&wired.world, "ingress", &spec);
    let (watched, listed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    wired.wire.rule(move |call, reply| match reply {
        None if watches(call) && watched.fetch_add(1, Ordering::Relaxed) == 0 => gone(),
        None if lists(call, COMPONENTS) => match listed.fetch_add(1, Ordering::Relaxed) {
            0 => Fate::answer(500, "InternalError"),
            1 => Fate::Cut,
            _ => Fate::Pass,
        },
        _ => Fate::Pass,
    });
    replica.reset_api();
    patch(&wired.world, "ingress", &json!({ "spec": { "replicas": 9 } }));
    until("the repair", 2 * BOUND, || {
        (wired.world.namespace.component("ingress")?["spec"] == spec).then_some(())
    });
}

/// apisix#7489: an expired continue token is sent again and again; and part of a list passes for the whole.
#[test]
fn a_list_whose_continue_token_expires_is_begun_anew_and_at_last_called_incomplete() {
    let wired = Wired::start("list-expires", &json!({}));
    let pages = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&pages);
    wired.wire.rule(move |call, reply| {
        if reply.is_some() || !lists(call, NODES) {
            return Fate::Pass;
        }
        if call.path.contains("continue=") {
            return gone();
        }
        let number = counted.fetch_add(1, Ordering::Relaxed);
        let body = json!({ "kind": "NodeList", "items": [{ "metadata": { "name": "only-a-part" } }],
            "metadata": { "resourceVersion": "1", "continue": format!("token-{number}") } });
        Fate::Answer { status: 200, body: body.to_string(), retry_after_s: None }
    });
    let _replica = wired.replica(POD);
    let from = wired.wire.len();
    let found = nodes(&wired);
    assert_eq!(found, json!({ "state": "incomplete", "items": [] }));
    let calls = wired.wire.since(from);
    let tokens: Vec<&str> =
        calls.iter().filter_map(|e| Some(e.call.path.split_once("continue=")?.1)).collect();
    let mut once = tokens.clone();
    once.dedup();
    assert_eq!(tokens, once, "no token is sent twice");
}

/// kube#1199, kube#1492, k8s-openapi#97: null for an empty slice, and members that are missing or null.
#[test]
fn a_list_with_nulls_and_without_members_is_read() {
    let image_without_names = json!({ "metadata": { "name": "n", "labels": null, "unknown": [{}] },
        "status": { "images": [{ "names": null }], "conditions": null, "addresses": null } });
    for (number, (body, count)) in [
        (json!({ "items": null, "metadata": {} }), 0),
        (json!({ "metadata": {} }), 0),
        (json!({ "items": [] }), 0),
        (json!({ "items": null, "metadata": null }), 0),
        (json!({ "items": [image_without_names], "metadata": { "resourceVersion": "1" } }), 1),
    ]
    .into_iter()
    .enumerate()
    {
        let wired = Wired::start(&format!("list-odd-{number}"), &json!({}));
        let text = body.to_string();
        wired.wire.rule(move |call, reply| {
            if reply.is_none() && lists(call, NODES) {
                return Fate::Answer { status: 200, body: text.clone(), retry_after_s: None };
            }
            Fate::Pass
        });
        let _replica = wired.replica(POD);
        let found = nodes(&wired);
        assert_eq!(found["state"], "ok", "{body}");
        assert_eq!(found["items"].as_array().map(Vec::len), Some(count), "{body}");
    }
}

/// Objects, `count` of them, of so many bytes each.
fn padded(count: usize, bytes: usize) -> Vec<Value> {
    let pad = "x".repeat(bytes);
    let object =
        |number| json!({ "metadata": { "name": format!("n{number:04}"), "annotations": { "pad": pad } } });
    (0..count).map(object).collect()
}

fn page(items: &[Value], next: Option<usize>) -> Fate {
    let token = next.map_or_else(String::new, |next| next.to_string());
    let body = json!({ "items": items, "metadata": { "resourceVersion": "1", "continue": token } });
    Fate::Answer { status: 200, body: body.to_string(), retry_after_s: None }
}

/// The number behind `name=` in the query, or 0.
fn number(call: &Call, name: &str) -> usize {
    let mut pairs = call.path.split(['?', '&']).filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map_or(0, |(_, value)| value.parse().expect("a number"))
}

/// okxlabs/sonar#57: answers of more than ten megabytes failed.
#[test]
fn a_list_of_many_megabytes_is_whole_and_one_page_beyond_the_limit_makes_its_kind_too_large() {
    const CLASSES: &str = "/storageclasses";
    let wired = Wired::start("list-large", &json!({ "report_interval_s": 86_400 }));
    // 12 MB and 25 MB.
    let (nodes_, crds, classes) = (padded(400, 30_000), padded(500, 50_000), padded(500, 50_000));
    wired.wire.rule(move |call, reply| match reply {
        None if lists(call, NODES) => page(&nodes_, None),
        None if lists(call, "/customresourcedefinitions") => {
            let (from, most) = (number(call, "continue"), number(call, "limit"));
            let to = crds.len().min(from + most);
            page(&crds[from..to], (to < crds.len()).then_some(to))
        }
        // Whoever answers here does not know of pages.
        None if lists(call, CLASSES) => page(&classes, None),
        _ => Fate::Pass,
    });
    let replica = wired.replica(POD);
    // The first report has it, without being asked.
    let inventory =
        until("an inventory", 2 * BOUND, || wired.world.manager.inventory(wired.world.cluster_id()));
    let inventory = &inventory["inventory"];
    for (kind, state, count) in
        [("nodes", "ok", 400), ("crds", "ok", 500), ("storage_classes", "too_large", 0)]
    {
        assert_eq!(inventory[kind]["state"], state, "{kind}");
        assert_eq!(inventory[kind]["items"].as_array().map(Vec::len), Some(count), "{kind}");
    }
    let log = replica.agent.process().stderr_text();
    let named =
        |line: &&str| line.contains(CLASSES) && line.contains("too_large") && line.contains("16777216");
    assert!(log.lines().any(|line| named(&line)), "{log}");
    // Each of the pages is asked for smaller, and then no more.
    applied(&wired.world, "c", &json!({}));
    let asked = wired.wire.since(0).iter().filter(|exchange| lists(&exchange.call, CLASSES)).count();
    let inventories = wired.wire.since(0).iter().filter(|exchange| lists(&exchange.call, NODES)).count();
    assert!(asked <= 4 * inventories, "{asked} in {inventories}");
    let memory = Reading::of(replica.agent.process().pid()).peak_kib;
    assert!((1..128 * 1024).contains(&memory), "the pod's limit: {memory} KiB");
}
