//! The cluster that the other tests stand on.

use std::time::Duration;

use navin_test_support::{Cluster, until};
use serde_json::json;

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
