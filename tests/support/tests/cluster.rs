//! The cluster that the other tests stand on, and the agent's rights in it.

use std::time::Duration;

use navin_test_support::{Cluster, until};
use serde_json::json;

#[test]
fn the_agents_account_may_read_its_lease_and_no_secret() {
    let cluster = Cluster::shared();
    let namespace = cluster.namespace("rights");
    let agent = cluster.api_as(&cluster.service_account_token(&namespace.name, "navin-cluster-agent"));
    let of = |group: &str, resource: &str| format!("{group}/namespaces/{}/{resource}", namespace.name);

    let lease = json!({ "metadata": { "name": "navin-cluster-agent" }, "spec": { "holderIdentity": "me" } });
    let (status, answer) = agent.post(&of("/apis/coordination.k8s.io/v1", "leases"), &lease);
    assert_eq!(status, 201, "{answer}");
    let state = json!({ "metadata": { "name": "navin-cluster-agent-state" } });
    assert_eq!(agent.post(&of("/api/v1", "configmaps"), &state).0, 201);

    let allowed = [
        namespace.lease_path(),
        namespace.state_path(),
        namespace.components_path(),
        "/api/v1/nodes".into(),
        "/api/v1/namespaces".into(),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(),
        "/apis/storage.k8s.io/v1/storageclasses".into(),
        "/apis/networking.k8s.io/v1/ingressclasses".into(),
        "/version".into(),
        "/api".into(),
        "/apis".into(),
    ];
    for path in allowed {
        let (status, answer) = agent.get(&path);
        assert_eq!(status, 200, "{path}: {answer}");
    }
    let forbidden = [
        of("/api/v1", "secrets"),
        of("/api/v1", "secrets/navin-cluster-agent-identity"),
        of("/api/v1", "pods"),
        of("/api/v1", "configmaps"),
        of("/api/v1", "configmaps/another"),
        of("/api/v1", "events"),
        of("/apis/coordination.k8s.io/v1", "leases"),
        of("/apis/coordination.k8s.io/v1", "leases/another"),
        of("/apis/apps/v1", "deployments"),
        of("/apis/rbac.authorization.k8s.io/v1", "roles"),
        "/apis/platform.navin.ai/v1/managedcomponents".into(),
        "/apis/platform.navin.ai/v1/namespaces/default/managedcomponents".into(),
    ];
    for path in forbidden {
        let (status, answer) = agent.get(&path);
        assert_eq!(status, 403, "{path}: {answer}");
    }
    assert_eq!(agent.delete(&namespace.lease_path()).0, 403);
    assert_eq!(agent.delete(&namespace.state_path()).0, 403);
    assert_eq!(cluster.admin().with_bearer(Some("nobody")).get("/api/v1/nodes").0, 401);
}

#[test]
fn a_components_spec_is_kept_as_it_is_and_its_sequence_is_a_column() {
    let cluster = Cluster::shared();
    let namespace = cluster.namespace("components");
    let agent = cluster.api_as(&cluster.service_account_token(&namespace.name, "navin-cluster-agent"));
    let spec = json!({ "deep": { "list": [1, "two", null, { "three": 3.5 }] }, "empty": {} });
    let object = json!({ "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
        "metadata": { "name": "a.b", "annotations": { "platform.navin.ai/sequence": "7" } }, "spec": spec });
    assert_eq!(agent.post(&namespace.components_path(), &object).0, 201);
    let kept = namespace.component("a.b").expect("the component");
    assert_eq!(kept["spec"], spec);
    assert_eq!(kept["metadata"]["generation"], 1);

    // The status has a door of its own, which the agent may not use.
    let status = json!({ "status": { "ready": true } });
    let path = format!("{}/status", namespace.component_path("a.b"));
    assert_eq!(agent.patch(&path, &status).0, 403);
    assert_eq!(cluster.admin().patch(&path, &status).0, 200);
    let kept = namespace.component("a.b").expect("the component");
    assert_eq!((&kept["status"]["ready"], &kept["metadata"]["generation"]), (&json!(true), &json!(1)));

    let file = cluster.folder().join("kubectl.conf");
    cluster.kubeconfig(&file);
    let table = std::process::Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(&file)
        .args(["get", "mc", "--no-headers", "-n", &namespace.name])
        .output();
    // kubectl is a convenience of whoever has it.
    if let Ok(table) = table {
        let text = String::from_utf8_lossy(&table.stdout).into_owned();
        assert_eq!(text.split_whitespace().take(2).collect::<Vec<_>>(), ["a.b", "7"], "{table:?}");
    }
}

#[test]
fn a_cluster_comes_back_as_it_was() {
    let cluster = Cluster::start();
    let namespace = cluster.namespace("again");
    namespace.create_component("kept", &json!({ "n": 1 }));
    let before = namespace.component("kept");

    cluster.api_server().kill9();
    assert!(cluster.admin().call("GET", "/version", None).is_err());
    cluster.restart();
    assert_eq!(namespace.component("kept"), before);

    cluster.api_server().pause();
    let paused = cluster.admin();
    let answer = std::thread::spawn(move || paused.get("/version").0);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!answer.is_finished());
    cluster.api_server().resume();
    until("the late answer", Duration::from_secs(10), || answer.is_finished().then_some(()));
    assert_eq!(answer.join().expect("the request"), 200);
}
