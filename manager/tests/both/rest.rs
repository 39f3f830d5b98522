//! What operators may do, and what they are refused.

use crate::support::{COMMANDS, Folder, id, receipt, served};
use serde_json::json;

#[test]
fn without_a_token_nothing_is_shown_and_another_tenants_cluster_is_not_there() {
    let folder = Folder::new("tenants");
    let (token, foreign) = (folder.token("acme"), folder.token("rival"));
    let manager = folder.serve();
    let path = "/api/v1/clusters";
    for bad in ["", "navin_wrong"] {
        let refused = manager.get(bad, path);
        assert_eq!((refused.status, refused.content_type.as_str()), (401, "application/problem+json"));
    }
    manager.get("", "/healthz").expect(200);
    manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let command = format!("{path}/prod/kubernetes/commands/{}", id(&queued));
    manager.get(&token, &command).expect(200);
    let commands = format!("{path}/prod/kubernetes/commands");
    for path in [&format!("{path}/prod"), &commands, &command, &format!("{path}/prod/kubernetes/inventory")] {
        assert_eq!(manager.get(&foreign, path).expect(404)["code"], "not_found");
    }
    let body = json!({ "operation": "inventory.report", "arguments": {} });
    manager.post(&foreign, &commands, &body).expect(404);
    let identity = json!({ "gateway_url": "https://manager.example" });
    manager.post(&foreign, &format!("{path}/prod/kubernetes/agent"), &identity).expect(404);
    assert_eq!(manager.get(&foreign, path).expect(200)["clusters"], json!([]));
    assert!(manager.audit(&foreign).contains(&format!("rest.post refused {commands} 404")));
    assert!(manager.audit(&foreign).iter().all(|entry| !entry.contains("command.queue")));
    // The same name in another tenant is another cluster.
    manager.cluster(&foreign, "prod");
    assert_eq!(manager.queue(&foreign, "prod")["sequence"], 1);
}

#[test]
fn each_change_is_in_the_audit_and_so_is_one_that_is_refused() {
    let (_folder, token, manager) = served("audited");
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
    let body = json!({ "operation": "inventory.report" });
    manager.post(&token, "/api/v1/clusters/prod/kubernetes/commands", &body).expect(400);
    manager.post(&token, "/api/v1/clusters", &json!({ "cluster_id": "Prod" })).expect(400);
    let audited = manager.audit(&token);
    let actions =
        audited.iter().rev().map(|entry| entry.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" "));
    let wanted = [
        "token.create done",
        "cluster.register done",
        "identity.issue done",
        "command.queue done",
        "receipt.record done",
        "rest.post refused",
        "rest.post refused",
    ];
    assert!(actions.eq(wanted), "{audited:?}");
}

#[test]
fn a_command_is_dated_a_minute_before_its_approval_and_ends_when_it_was_asked_to() {
    let (_folder, token, manager) = served("dated");
    manager.cluster(&token, "prod");
    for (asked, valid_for_s) in [(json!({}), 900), (json!({ "valid_for_s": 30 }), 30)] {
        let mut body = json!({ "operation": "inventory.report", "arguments": {} });
        body.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
        let queued = manager.post(&token, COMMANDS, &body).expect(201);
        let time = |value: &serde_json::Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let (approved, payload) = (time(&queued["created_at"]), &queued["envelope"]["payload"]);
        assert_eq!((approved - time(&payload["not_before"])).as_secs(), 60);
        assert_eq!((time(&payload["not_after"]) - approved).as_secs(), valid_for_s);
    }
}

#[test]
fn what_the_agent_would_refuse_is_not_signed() {
    let (_folder, token, manager) = served("unsigned");
    manager.cluster(&token, "prod");
    let spec = json!({ "name": "web", "spec": {} });
    for refused in [
        json!({ "operation": "pod.exec", "arguments": {} }),
        json!({ "operation": "managedcomponent.apply", "arguments": { "name": "web" } }),
        json!({ "operation": "managedcomponent.apply", "arguments": { "name": "Web", "spec": {} } }),
        json!({ "operation": "managedcomponent.delete", "arguments": spec }),
        json!({ "operation": "managedcomponent.apply", "arguments": spec, "valid_for_s": 0 }),
        json!({ "operation": "managedcomponent.apply", "arguments": spec, "valid_for_s": 604_741 }),
        json!({ "operation": "managedcomponent.apply", "arguments": spec, "extra": 1 }),
        json!({ "operation": "managedcomponent.apply" }),
    ] {
        manager.post(&token, COMMANDS, &refused).expect(400);
    }
    let double = br#"{"operation":"inventory.report","arguments":{},"arguments":{}}"#;
    manager.send("POST", &token, COMMANDS, Some(double.to_vec())).expect(400);
    let deep = "[".repeat(61) + &"]".repeat(61);
    let deep = format!(
        r#"{{"operation":"managedcomponent.apply","arguments":{{"name":"web","spec":{{"a":{deep}}}}}}}"#
    );
    manager.send("POST", &token, COMMANDS, Some(deep.into_bytes())).expect(400);
    for (size, status) in [(250 * 1024, 201), (256 * 1024, 413), (1024 * 1024, 413)] {
        let arguments = json!({ "name": "web", "spec": { "text": "x".repeat(size) } });
        let body = json!({ "operation": "managedcomponent.apply", "arguments": arguments });
        manager.post(&token, COMMANDS, &body).expect(status);
    }
    let longest = json!({ "operation": "managedcomponent.apply", "arguments": spec, "valid_for_s": 604_740 });
    let queued = manager.post(&token, COMMANDS, &longest).expect(201);
    assert_eq!(queued["sequence"], 2, "what is refused takes no sequence");
    let listed = manager.get(&token, &format!("{COMMANDS}?limit=1")).expect(200);
    assert_eq!(listed["commands"][0]["command_id"], queued["command_id"]);
    let next = listed["continue"].as_str().unwrap();
    let earlier = manager.get(&token, &format!("{COMMANDS}?continue={next}")).expect(200);
    assert_eq!((&earlier["commands"][0]["sequence"], &earlier["continue"]), (&json!(1), &json!(null)));
}

#[test]
fn clusters_are_registered_once_and_well_named() {
    let (_folder, token, manager) = served("clusters");
    let path = "/api/v1/clusters";
    for refused in [
        json!({ "cluster_id": "Prod", "namespace": "navin" }),
        json!({ "cluster_id": "prod", "namespace": "a.b" }),
        json!({ "cluster_id": "prod" }),
        json!({ "cluster_id": "prod", "namespace": "navin", "kubeconfig": {} }),
        json!([]),
    ] {
        manager.post(&token, path, &refused).expect(400);
    }
    for theirs in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let refused =
            manager.post(&token, path, &json!({ "cluster_id": "prod", "namespace": theirs })).expect(400);
        let detail = refused["detail"].as_str().unwrap();
        assert!(
            detail.starts_with(&format!("namespace: not {theirs}; the agent has one of its own")),
            "{detail}"
        );
    }
    let good = json!({ "cluster_id": "prod", "namespace": "navin" });
    let shown = manager.post(&token, path, &good).expect(201);
    assert_eq!((&shown["cluster_id"], &shown["agent"]["online"]), (&json!("prod"), &json!(false)));
    let elsewhere = json!({ "cluster_id": "prod", "namespace": "elsewhere", "kubeconfig": "of no use" });
    for again in [good, elsewhere] {
        let told = manager.post(&token, path, &again).expect(409);
        let told = told["detail"].as_str().unwrap();
        assert!(
            told.starts_with("the cluster prod is registered already, with the namespace navin: "),
            "{told}"
        );
        assert!(told.contains("a kubeconfig; another namespace takes another cluster name"), "{told}");
    }
    manager.get(&token, "/api/v1/nothing").expect(404);
    manager.send("DELETE", &token, path, None).expect(405);
}
