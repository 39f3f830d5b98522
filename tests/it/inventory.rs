//! The inventory: what it holds, what it says of what it may not see, and when it is sent.

use crate::gateway::Scripted;
use crate::lab::{BOUND, Changed, changed};
use navin_cluster_agent::kube::inventory::KINDS;
use navin_test_support::{Agent, Cluster, World, until};
use serde_json::{Value, json};

/// More than one page of the agent's.
const NODES: usize = 501;
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/navin-cluster-agent";

fn scripted(cluster: &'static Cluster, name: &str) -> (Scripted, Agent) {
    let scripted = Scripted::over(World::start_in(cluster, name, &json!({})), &json!({}));
    until("all of the system's namespaces", BOUND, || {
        let (status, _) = cluster.admin().get("/api/v1/namespaces/kube-node-lease");
        (status == 200).then_some(())
    });
    let agent = scripted.agent();
    (scripted, agent)
}

/// Commands an inventory; the receipt's result, and the report that came with it.
#[track_caller]
fn report(scripted: &Scripted, sequence: u64) -> (Value, Value) {
    let before = scripted.gateway.reports().len();
    let receipt = scripted.answer(&scripted.signer.inventory(sequence));
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
    let result = receipt["result"].clone();
    let report = until("the report", BOUND, || {
        let reports = scripted.gateway.reports().into_iter().skip(before);
        reports.into_iter().find(|report| report["inventory_revision"] == result["revision"])
    });
    (result, report)
}

/// The inventory as it was sent last.
#[track_caller]
fn inventory(scripted: &Scripted) -> Value {
    let sent = |report: Value| (!report["inventory"].is_null()).then(|| report["inventory"].clone());
    scripted.gateway.reports().into_iter().rev().find_map(sent).expect("an inventory was sent")
}

fn create(cluster: &Cluster, path: &str, object: &Value) {
    let (status, answer) = cluster.admin().post(path, object);
    assert!(status == 201 || status == 409, "POST {path}: {status} {answer}");
}

fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    let items = list["items"].as_array().expect("items");
    items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("{name} in {items:?}"))
}

fn fill(cluster: &Cluster) {
    for number in 0..NODES {
        let node = json!({ "metadata": { "name": format!("node-{number:04}") } });
        create(cluster, "/api/v1/nodes", &node);
    }
    let node = json!({
        "metadata": { "name": "full", "labels": {
            "node-role.kubernetes.io/control-plane": "", "other.example/label": "" } },
        "spec": { "unschedulable": true,
            "taints": [{ "key": "other.example/taint", "value": "v", "effect": "NoExecute" }] },
        "status": {
            "conditions": [{ "type": "Ready", "status": "True" }],
            "addresses": [
                { "type": "InternalIP", "address": "10.0.0.7" },
                { "type": "ExternalIP", "address": "192.0.2.7" },
                { "type": "Hostname", "address": "full" },
            ],
            "capacity": { "cpu": "4", "memory": "8Gi" },
            "allocatable": { "cpu": "3900m", "memory": "7Gi" },
            "nodeInfo": {
                "kubeletVersion": "v1.36.3", "osImage": "Debian", "kernelVersion": "6.12",
                "architecture": "arm64", "containerRuntimeVersion": "containerd://2.1",
                "machineID": "", "systemUUID": "", "bootID": "", "kubeProxyVersion": "", "operatingSystem": "linux",
            },
        },
    });
    create(cluster, "/api/v1/nodes", &node);
    let default = |kind: &str| json!({ format!("{kind}.kubernetes.io/is-default-class"): "true" });
    for (path, object) in [
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({ "metadata": { "name": "fast", "annotations": default("storageclass") },
                "provisioner": "csi.example", "reclaimPolicy": "Retain",
                "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true }),
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({ "metadata": { "name": "slow" }, "provisioner": "csi.example" }),
        ),
        (
            "/apis/networking.k8s.io/v1/ingressclasses",
            json!({ "metadata": { "name": "edge", "annotations": default("ingressclass") },
                "spec": { "controller": "edge.example/controller" } }),
        ),
    ] {
        create(cluster, path, &object);
    }
}

#[test]
fn the_inventory_shows_nodes_namespaces_crds_and_classes() {
    let (cluster, _turn) = changed(Changed::Inventory);
    fill(cluster);
    let (scripted, _agent) = scripted(cluster, "inventory");
    let (result, _) = report(&scripted, 1);
    let inventory = inventory(&scripted);
    for (kind, ..) in KINDS {
        assert_eq!(inventory[kind]["state"], "ok", "{kind}");
        let items = inventory[kind]["items"].as_array().expect("items");
        assert_eq!(result["counts"][kind], items.len(), "{kind}");
        assert!(items.is_sorted_by_key(|item| item["name"].as_str()), "{kind}");
    }
    assert_eq!(result["counts"]["nodes"], NODES + 1, "more than one page");
    let mut node = named(&inventory["nodes"], "full").clone();
    let taints = node["taints"].take();
    let ours = json!({ "key": "other.example/taint", "value": "v", "effect": "NoExecute" });
    assert!(taints.as_array().is_some_and(|taints| taints.contains(&ours)), "{taints}");
    assert_eq!(
        node,
        json!({
            "name": "full",
            "roles": ["control-plane"],
            "ready": true,
            "schedulable": false,
            "kubelet_version": "v1.36.3",
            "os_image": "Debian",
            "kernel_version": "6.12",
            "architecture": "arm64",
            "container_runtime": "containerd://2.1",
            "capacity": { "cpu": "4", "memory": "8Gi" },
            "allocatable": { "cpu": "3900m", "memory": "7Gi" },
            "taints": null,
            "internal_addresses": ["10.0.0.7"],
        })
    );
    assert_eq!(named(&inventory["nodes"], "node-0500")["ready"], false);
    let own = &scripted.world.namespace.name;
    assert_eq!(*named(&inventory["namespaces"], own), json!({ "name": own, "phase": "Active" }));
    assert_eq!(
        *named(&inventory["crds"], "managedcomponents.platform.navin.ai"),
        json!({
            "name": "managedcomponents.platform.navin.ai",
            "group": "platform.navin.ai",
            "kind": "ManagedComponent",
            "scope": "Namespaced",
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        })
    );
    assert_eq!(
        inventory["storage_classes"]["items"],
        json!([
            { "name": "fast", "provisioner": "csi.example", "default": true, "reclaim_policy": "Retain",
                "binding_mode": "WaitForFirstConsumer", "expansion": true },
            { "name": "slow", "provisioner": "csi.example", "default": false, "reclaim_policy": "Delete",
                "binding_mode": "Immediate", "expansion": false },
        ])
    );
    assert_eq!(
        inventory["ingress_classes"]["items"],
        json!([{ "name": "edge", "controller": "edge.example/controller", "default": true }])
    );
    assert!(inventory["version"]["gitVersion"].is_string());
    let groups = inventory["api_groups"].as_array().expect("API groups");
    assert!(groups.contains(&json!("platform.navin.ai")), "{groups:?}");
}

#[test]
fn the_inventory_is_left_out_of_reports_while_it_has_not_changed() {
    let (cluster, _turn) = changed(Changed::Inventory);
    let (scripted, _agent) = scripted(cluster, "kept");
    let (first, _) = report(&scripted, 1);
    let sent = inventory(&scripted);
    let (second, unchanged) = report(&scripted, 2);
    assert_eq!(second, first);
    assert_eq!(unchanged.get("inventory"), None);

    create(cluster, "/api/v1/namespaces", &json!({ "metadata": { "name": "newcomer" } }));
    let (third, changed) = report(&scripted, 3);
    assert_ne!(third["revision"], first["revision"]);
    assert_eq!(named(&changed["inventory"]["namespaces"], "newcomer")["phase"], "Active");
    assert_ne!(changed["inventory"], sent);
}

#[test]
fn a_status_that_changes_is_reported_soon_and_one_above_16_kib_is_left_out_and_said() {
    let scripted = Scripted::start("statuses", &json!({ "report_interval_s": 86_400 }));
    let _agent = scripted.agent();
    let receipt = scripted.answer(&scripted.signer.apply("web", 1, &json!({ "replicas": 2 })));
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
    let path = format!("{}/status", scripted.world.namespace.component_path("web"));
    let told = |phase: &str, what: &str, is: &dyn Fn(&Value) -> bool| {
        let (status, answer) =
            scripted.world.cluster.admin().patch(&path, &json!({ "status": { "phase": phase } }));
        assert_eq!(status, 200, "{answer}");
        until(what, BOUND, || {
            let last = scripted.gateway.reports().pop()?;
            is(&last["components"][0]).then_some(())
        });
    };
    told("Ready", "a report of the status", &|component| component["status"]["phase"] == "Ready");
    told(&"x".repeat(16 * 1024), "one without the status", &|component| {
        component["reason"] == "status_too_large" && component.get("status").is_none()
    });
    let reports = scripted.gateway.reports().len();
    assert!(reports <= 4, "{reports}: the interval is a day");
}

#[test]
fn a_kind_that_may_not_be_read_is_shown_as_forbidden_and_not_as_empty() {
    let (cluster, _turn) = changed(Changed::Inventory);
    let (scripted, _agent) = scripted(cluster, "no-nodes");
    let admin = cluster.admin();
    let (_, role) = admin.get(ROLE);
    let mut less = role.clone();
    less["rules"][0]["resources"] = json!(["namespaces"]);
    admin.patch(ROLE, &json!({ "rules": less["rules"] }));
    let own = &scripted.world.namespace.name;
    let token = cluster.service_account_token(own, "navin-cluster-agent");
    let refused = || cluster.api_as(&token).get("/api/v1/nodes?limit=1").0 == 403;
    until("the right to be gone", BOUND, || refused().then_some(()));
    let (result, report) = report(&scripted, 1);
    admin.patch(ROLE, &json!({ "rules": role["rules"] }));

    assert_eq!(report["inventory"]["nodes"], json!({ "state": "forbidden", "items": [] }));
    assert_eq!(report["inventory"]["namespaces"]["state"], "ok");
    assert!(result["counts"]["namespaces"].as_u64() > Some(3), "{result}");
}
