//! Receipts and reports.

use crate::support::{Folder, id, receipt, served};
use serde_json::{Value, json};

#[test]
fn the_first_recorded_receipt_stays() {
    let (_folder, token, manager) = served("first-receipt");
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let shown = || manager.command(&token, "prod", &queued);

    let mut early = receipt(&queued, "refused", false);
    early["reason"] = json!("not_yet_valid");
    assert_eq!(agent.receipt(&early).expect(200)["recorded"], true);
    assert_eq!((&shown()["status"], &shown()["receipt_recorded"]), (&json!("refused"), &json!(false)));
    assert_eq!(agent.polled(0).len(), 1, "without a recorded receipt it is due");

    let first = receipt(&queued, "succeeded", true);
    assert_eq!(agent.receipt(&first).expect(200), json!({ "recorded": true }));
    assert_eq!(agent.receipt(&first).expect(200), json!({ "recorded": false }));
    let mut later = receipt(&queued, "failed", true);
    later["reason"] = json!("kubernetes_refused");
    assert_eq!(agent.receipt(&later).expect(200), json!({ "recorded": false }));
    assert_eq!(agent.receipt(&early).expect(200), json!({ "recorded": false }));
    assert_eq!(shown()["receipt"], first);
    assert_eq!((&shown()["status"], &shown()["receipt_count"]), (&json!("succeeded"), &json!(5)));
    let audited = format!("receipt.record done {} succeeded", id(&queued));
    assert!(manager.audit(&token).contains(&audited));
}

#[test]
fn the_original_in_nonce_replayed_is_taken_over() {
    let (_folder, token, manager) = served("original");
    let agent = manager.cluster(&token, "prod");
    let (queued, other) = (manager.queue(&token, "prod"), manager.queue(&token, "prod"));
    let replayed = |original: Value| {
        let mut replayed = receipt(&queued, "refused", false);
        replayed["reason"] = json!("nonce_replayed");
        replayed["original"] = original;
        replayed
    };
    // Of another command: shown as the refusal that it is.
    agent.receipt(&replayed(receipt(&other, "succeeded", true))).expect(200);
    assert_eq!(manager.command(&token, "prod", &queued)["status"], "refused");
    let original = receipt(&queued, "succeeded", true);
    assert_eq!(agent.receipt(&replayed(original.clone())).expect(200), json!({ "recorded": true }));
    let shown = manager.command(&token, "prod", &queued);
    assert_eq!((&shown["receipt"], &shown["receipt_recorded"]), (&original, &json!(true)));
    assert_eq!(manager.command(&token, "prod", &other)["status"], "queued");
}

#[test]
fn a_receipt_for_another_clusters_command_is_refused_and_audited() {
    let folder = Folder::new("other-cluster");
    let (token, foreign) = (folder.token("acme"), folder.token("rival"));
    let manager = folder.serve();
    let (prod, test) = (manager.cluster(&token, "prod"), manager.cluster(&token, "test"));
    let rival = manager.cluster(&foreign, "prod");
    let queued = manager.queue(&token, "prod");
    let honest = receipt(&queued, "succeeded", true);
    for agent in [&test, &rival] {
        assert_eq!(agent.receipt(&honest).expect(403)["error"], "other_cluster");
    }
    // As its own cluster, but with the command of another.
    let mut posing = honest.clone();
    posing["cluster_id"] = json!("test");
    assert_eq!(test.receipt(&posing).expect(403)["error"], "other_cluster");
    let command_id = id(&queued);
    for detail in ["of another cluster", "for another cluster's command"] {
        let audited = format!("receipt.record refused {command_id} {detail}");
        assert!(manager.audit(&token).contains(&audited), "{audited}");
    }
    assert_eq!(manager.command(&token, "prod", &queued)["status"], "queued");

    let mut unknown = honest.clone();
    unknown["command_id"] = json!("00000000-0000-4000-8000-000000000000");
    assert_eq!(prod.receipt(&unknown).expect(404)["error"], "unknown_command");
    let mut wrong_nonce = honest.clone();
    wrong_nonce["nonce"] = json!("AAAAAAAAAAAAAAAAAAAAAA");
    prod.receipt(&wrong_nonce).expect(400);
    for malformed in ["", "{}", "[]", "{\"type\":1}", "\u{feff}{}"] {
        prod.send("POST", "receipts", malformed.into()).expect(400);
    }
    let double = honest.to_string().replacen('{', "{\"status\":\"failed\",", 1);
    prod.send("POST", "receipts", double.into_bytes()).expect(400);
    let mut heavy = honest.clone();
    heavy["result"] = json!(vec![json!({ "": 0 }); 1_000]);
    prod.receipt(&heavy).expect(400);
    heavy["result"] = json!("x".repeat(64 * 1024));
    prod.receipt(&heavy).expect(413);
    assert_eq!(prod.receipt(&honest).expect(200), json!({ "recorded": true }));
}

#[test]
fn the_gateway_asks_for_an_inventory_that_it_does_not_have() {
    let (_folder, token, manager) = served("report");
    let (agent, other) = (manager.cluster(&token, "prod"), manager.cluster(&token, "test"));
    let mut report = json!({
        "type": "navin.report/v1", "tenant_id": "acme", "cluster_id": "prod", "replica": "pod-1",
        "agent_version": "0.1.0", "cluster_uid": "uid-1", "inventory_revision": "r1",
        "components": [{ "name": "web", "sequence": 1, "in_sync": true }],
    });
    assert_eq!(agent.report(&report).expect(200), json!({ "inventory": "needed" }));
    manager.get(&token, "/api/v1/clusters/prod/kubernetes/inventory").expect(404);
    report["inventory"] = json!({ "nodes": { "state": "ok", "items": [] } });
    assert_eq!(agent.report(&report).expect(200), json!({ "inventory": "kept" }));
    let inventory = manager.get(&token, "/api/v1/clusters/prod/kubernetes/inventory").expect(200);
    assert_eq!((&inventory["inventory"], &inventory["revision"]), (&report["inventory"], &json!("r1")));
    report.as_object_mut().unwrap().remove("inventory");
    assert_eq!(agent.report(&report).expect(200), json!({ "inventory": "kept" }));
    report["inventory_revision"] = json!("r2");
    assert_eq!(agent.report(&report).expect(200), json!({ "inventory": "needed" }));

    let shown = manager.get(&token, "/api/v1/clusters/prod").expect(200);
    assert_eq!((&shown["agent"]["leader"], &shown["agent"]["online"]), (&json!("pod-1"), &json!(true)));
    assert_eq!((&shown["components"], &shown["cluster_uid"]), (&report["components"], &json!("uid-1")));

    report["cluster_uid"] = json!("uid-2");
    agent.report(&report).expect(200);
    assert!(manager.audit(&token).iter().any(|entry| entry.starts_with("cluster.uid_changed refused")));
    assert_eq!(other.report(&report).expect(403)["error"], "other_cluster");
    assert!(manager.audit(&token).contains(&"report.store refused  of another cluster".to_owned()));
    agent.send("POST", "report", b"{}".to_vec()).expect(400);
    report["inventory"] = json!(vec![json!({ "": 0 }); 200_000]);
    let heavy = agent.report(&report).expect(400);
    assert!(heavy["error"].is_string(), "2 MB, and 150 MB in memory: {heavy}");
    report["inventory"] = json!("x".repeat(8 * 1024 * 1024));
    agent.report(&report).expect(413);
    report["inventory"] = json!({});
    report["replica"] = json!("x".repeat(16 * 1024));
    let long = agent.report(&report).expect(400);
    assert!(long["message"].as_str().is_some_and(|message| message.contains("16 KiB")), "{long}");
}
