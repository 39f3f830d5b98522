//! Without the manager (CONTRACT section 7): what the leader still does, what it refuses, and what it makes
//! up for when the manager is back.

use crate::cable::Cable;
use crate::inbox_lab::{agent, answer, id, put, receipt, receipt_now, signed};
use crate::lab::{
    BOUND, applied, hold_in_deletion, let_go, live, outcome, patch, queue, state, until_accepted,
};
use navin_test_support::{World, until};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest period after which the manager counts as out of reach, and so the quickest scenario.
const OFFLINE_AFTER_S: u64 = 5;

fn world(name: &str) -> World {
    World::start(name, &json!({ "offline_after_s": OFFLINE_AFTER_S, "report_interval_s": 10 }))
}

/// The identity that speaks to the manager through a proxy.
fn through_proxy(world: &World) -> Cable {
    let proxy = Cable::start(world.manager.gateway_url());
    let gateway = json!({ "gateway_url": proxy.url(), "offline_after_s": OFFLINE_AFTER_S });
    world.reissue_identity(&gateway);
    proxy
}

fn apply_file(world: &World, name: &str, spec: &Value) -> Value {
    signed(world, "managedcomponent.apply", &json!({ "name": name, "spec": spec }))
}

/// The report that the manager has last.
fn report(world: &World) -> Value {
    world.manager.cluster(world.cluster_id())["report"].clone()
}

#[track_caller]
fn assert_refused(receipt: &Value) {
    assert_eq!(receipt["status"], "refused", "{receipt}");
    assert_eq!(receipt["reason"], "manager_unreachable", "{receipt}");
    assert_eq!((&receipt["recorded"], &receipt["source"]), (&json!(true), &json!("inbox")), "{receipt}");
}

#[test]
fn while_the_manager_is_dead_sensitive_commands_are_refused_read_only_ones_run_and_all_receipts_follow() {
    let world = world("offline-dead");
    let agent = agent(&world);
    agent.wait_log("link=connecting was=none", BOUND);
    agent.wait_log("link=online was=connecting", BOUND);
    applied(&world, "ingress", &json!({ "replicas": 1 }));
    world.manager.process().kill9();
    let killed = Instant::now();
    agent.wait_log("link=offline was=online", BOUND);
    // A poll may have been answered a third of the period before, and the leader looks at least every 5 s.
    assert!(killed.elapsed() < Duration::from_secs(OFFLINE_AFTER_S + 6), "{:?}", killed.elapsed());
    assert!(agent.leads(&world.namespace), "it leads on");

    let mut files = vec![];
    for number in 1..=3 {
        let apply = apply_file(&world, "ingress", &json!({ "replicas": 10 + number }));
        assert_refused(&answer(&agent, &format!("apply-{number}"), &apply));
        let inventory = signed(&world, "inventory.report", &json!({}));
        let answered = answer(&agent, &format!("inventory-{number}"), &inventory);
        assert_eq!(answered["status"], "succeeded", "{answered}");
        assert_eq!(answered["result"]["inventory"]["namespaces"]["state"], "ok");
        files.extend([apply, inventory]);
    }
    let delete = signed(&world, "managedcomponent.delete", &json!({ "name": "ingress" }));
    assert_refused(&answer(&agent, "delete", &delete));
    files.push(delete);
    assert_eq!(live(&world, "ingress")["spec"], json!({ "replicas": 1 }), "untouched");
    // What was approved is kept up, without the manager.
    patch(&world, "ingress", &json!({ "spec": { "replicas": 99 } }));
    until("the repair", BOUND, || (live(&world, "ingress")["spec"]["replicas"] == 1).then_some(()));

    world.manager.restart();
    agent.wait_log("link=online was=offline", BOUND);
    let mut taken = vec![];
    for file in &files {
        let shown = outcome(&world, id(file));
        let wanted = if file["payload"]["operation"] == "inventory.report" { "succeeded" } else { "refused" };
        assert_eq!(shown["status"], wanted, "{shown}");
        assert_eq!(shown["receipt"]["source"], "inbox");
        taken.push(shown["receipts"][0]["received_at"].as_str().expect("a time").to_owned());
    }
    assert!(taken.is_sorted(), "in the order in which they were given: {taken:?}");
    let report = until("the period in a report", BOUND, || {
        Some(report(&world)).filter(|r| r["counters"]["offline_periods"] == 1 && r["link"] == "online")
    });
    assert_eq!(report["counters"]["refused"]["manager_unreachable"], 4, "{report}");
    for change in ["link=connecting", "link=online was=connecting", "link=offline", "link=online was=offline"]
    {
        assert_eq!(agent.count_log(change), 1, "one line a change: {change}");
    }
    for reason in ["Offline", "Online"] {
        until(reason, BOUND, || world.namespace.events().iter().any(|e| e["reason"] == reason).then_some(()));
    }
    let late = apply_file(&world, "ingress", &json!({ "replicas": 3 }));
    assert_eq!(outcome(&world, id(&late))["status"], "succeeded", "online again");
}

#[test]
fn a_restart_while_offline_does_not_make_the_agent_accept_a_sensitive_command() {
    let world = world("offline-restart");
    let agent = agent(&world);
    applied(&world, "ingress", &json!({ "replicas": 1 }));
    world.manager.process().kill9();
    agent.wait_log("link=offline", BOUND);
    let before = apply_file(&world, "ingress", &json!({ "replicas": 2 }));
    assert_refused(&answer(&agent, "before", &before));
    for round in 1..=2 {
        agent.process().kill9();
        let (file, name) =
            (apply_file(&world, "ingress", &json!({ "replicas": 3 })), format!("round-{round}"));
        put(&agent, &name, file.to_string());
        let started = Instant::now();
        agent.process().start_again();
        assert_refused(&receipt(&agent, &name));
        // While connecting it waits: the manager may be there.
        assert!(started.elapsed() >= Duration::from_secs(OFFLINE_AFTER_S), "{:?}", started.elapsed());
    }
    let again = answer(&agent, "again", &before);
    assert_eq!(again["original"]["reason"], "manager_unreachable", "{again}");
    assert_eq!(live(&world, "ingress")["spec"], json!({ "replicas": 1 }));
    assert_eq!(agent.count_log("accepted command="), 1, "the first, over the gateway");
    world.manager.restart();
    assert_eq!(outcome(&world, id(&before))["receipt"]["reason"], "manager_unreachable");
}

#[test]
fn while_connecting_sensitive_commands_of_the_inbox_wait_for_the_manager_and_others_run() {
    let world = World::start("offline-connecting", &json!({ "offline_after_s": 60 }));
    world.manager.process().kill9();
    let agent = agent(&world);
    agent.wait_log("link=connecting", BOUND);
    let apply = apply_file(&world, "ingress", &json!({ "replicas": 2 }));
    put(&agent, "apply", apply.to_string());
    let inventory = signed(&world, "inventory.report", &json!({}));
    assert_eq!(answer(&agent, "inventory", &inventory)["status"], "succeeded");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(receipt_now(&agent, "apply"), None, "it waits");
    assert!(state(&world)["commands"].get(apply["payload"]["nonce"].as_str().expect("a nonce")).is_none());
    world.manager.restart();
    agent.wait_log("link=online", BOUND);
    let receipt = receipt(&agent, "apply");
    let outcome = if receipt["reason"] == "nonce_replayed" { &receipt["original"] } else { &receipt };
    assert_eq!(outcome["status"], "succeeded", "by whichever way it came first: {receipt}");
    assert_eq!(live(&world, "ingress")["metadata"]["generation"], 1);
}

#[test]
fn where_the_network_is_cut_the_agent_goes_offline_and_what_was_accepted_is_finished() {
    let world = world("offline-cut");
    let proxy = through_proxy(&world);
    let agent = agent(&world);
    applied(&world, "ingress", &json!({ "replicas": 1 }));
    hold_in_deletion(&world, "held");
    let arguments = json!({ "name": "held", "spec": { "by": "command" } });
    let accepted = queue(&world, "managedcomponent.apply", &arguments);
    until_accepted(&world, &accepted);
    proxy.cut();
    agent.wait_log("link=offline", BOUND);
    let_go(&world, "held");
    until("the accepted command to be done", BOUND, || {
        (world.namespace.component("held")?["spec"]["by"] == "command").then_some(())
    });
    let refused = apply_file(&world, "ingress", &json!({ "replicas": 2 }));
    assert_refused(&answer(&agent, "refused", &refused));
    proxy.mend();
    let bound = Duration::from_mins(1);
    let shown = world.manager.wait_command(world.cluster_id(), &accepted, bound);
    assert_eq!(shown["receipt"]["status"], "succeeded", "{shown}");
    let shown = world.manager.wait_command(world.cluster_id(), id(&refused), bound);
    assert_eq!(shown["receipt"]["reason"], "manager_unreachable", "{shown}");
    assert!(agent.count_log("link=online was=offline") == 1);
}

#[test]
fn a_revoked_identity_is_no_way_to_the_manager() {
    let world = world("offline-revoked");
    let agent = agent(&world);
    applied(&world, "ingress", &json!({ "replicas": 1 }));
    // Issued, and not brought to the agent: its own is revoked.
    world.manager.issue_identity(world.cluster_id(), &json!({}));
    agent.wait_log("identity_revoked", BOUND);
    agent.wait_log("link=offline", BOUND);
    assert_refused(&answer(&agent, "apply", &apply_file(&world, "ingress", &json!({ "replicas": 2 }))));
    assert_eq!(live(&world, "ingress")["spec"], json!({ "replicas": 1 }));
}
