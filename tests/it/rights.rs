//! What the agent's service account may do in the cluster, and that there is nothing else.

use crate::lab::{BOUND, POD};
use crate::rights_lab::{IN_ITS_NAMESPACE, IN_THE_CLUSTER};
use navin_test_support::{Api, World, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Everyone who is known to the API server may ask it about oneself.
const OF_EVERYONE: [&str; 2] = ["authorization.k8s.io", "authentication.k8s.io"];

fn agent_api(world: &World) -> Api {
    let token = world.cluster.service_account_token(&world.namespace.name, "navin-cluster-agent");
    world.cluster.api_as(&token)
}

/// All that the account may do in a namespace, as the API server itself puts it together.
fn rights(api: &Api, namespace: &str) -> BTreeSet<String> {
    let review = json!({ "spec": { "namespace": namespace } });
    let (status, answer) = api.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review);
    assert_eq!(status, 201, "{answer}");
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut found = BTreeSet::new();
    for rule in answer["status"]["resourceRules"].as_array().expect("rules") {
        let names = match texts(&rule["resourceNames"]) {
            names if names.is_empty() => vec![String::new()],
            names => names.into_iter().map(|name| format!("/{name}")).collect(),
        };
        for group in texts(&rule["apiGroups"]).iter().filter(|group| !OF_EVERYONE.contains(&group.as_str())) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    found.extend(names.iter().map(|name| format!("{verb} {group}/{resource}{name}")));
                }
            }
        }
    }
    found
}

fn set(rights: impl IntoIterator<Item = &'static str>) -> BTreeSet<String> {
    rights.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_account_has_the_rights_of_the_contract_and_no_others() {
    let world = World::start("rights", &json!({}));
    let api = agent_api(&world);
    assert_eq!(rights(&api, &world.namespace.name), set(IN_THE_CLUSTER.into_iter().chain(IN_ITS_NAMESPACE)));
    for other in ["default", "kube-system"] {
        assert_eq!(rights(&api, other), set(IN_THE_CLUSTER), "in {other}");
    }
}

#[test]
fn secrets_workloads_and_other_namespaces_are_forbidden() {
    let world = World::start("forbidden", &json!({}));
    let api = agent_api(&world);
    let own = &world.namespace.name;
    for path in [
        format!("/api/v1/namespaces/{own}/secrets"),
        format!("/api/v1/namespaces/{own}/secrets/navin-cluster-agent-identity"),
        format!("/api/v1/namespaces/{own}/pods"),
        format!("/api/v1/namespaces/{own}/configmaps"),
        format!("/api/v1/namespaces/{own}/configmaps/other"),
        format!("/apis/apps/v1/namespaces/{own}/deployments"),
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{own}/roles"),
        "/api/v1/secrets".into(),
        "/api/v1/namespaces/kube-system/configmaps".into(),
        "/api/v1/namespaces/default/secrets".into(),
        "/apis/platform.navin.ai/v1/managedcomponents".into(),
        "/apis/platform.navin.ai/v1/namespaces/default/managedcomponents".into(),
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/navin-cluster-agent".into(),
    ] {
        let (status, answer) = api.get(&path);
        assert_eq!(status, 403, "GET {path}: {answer}");
    }
    let elsewhere = json!({ "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
        "metadata": { "name": "ingress" }, "spec": {} });
    let path = "/apis/platform.navin.ai/v1/namespaces/default/managedcomponents";
    assert_eq!(api.post(path, &elsewhere).0, 403);
    assert_eq!(api.delete(&world.namespace.state_path()).0, 403);
    assert_eq!(api.delete(&world.namespace.lease_path()).0, 403);
    assert_eq!(api.get(&world.namespace.components_path()).0, 200);
}

#[test]
fn a_replica_without_rights_says_that_the_lease_is_not_readable_and_leads_when_it_is_given_them() {
    let world = World::start("no-rights", &json!({}));
    let (admin, name) = (world.cluster.admin(), &world.namespace.name);
    let path =
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings/navin-cluster-agent");
    let mut binding = admin.get(&path).1;
    assert_eq!(admin.delete(&path).0, 200);
    let api = agent_api(&world);
    until("its rights to be gone", BOUND, || (api.get(&world.namespace.lease_path()).0 == 403).then_some(()));
    let agent = world.agent(POD);
    agent.wait_log("lease not readable error=\"Forbidden: ", BOUND);
    assert_eq!((world.namespace.lease(), agent.count_log("lease not readable")), (None, 1));
    binding["metadata"] = json!({ "name": "navin-cluster-agent", "namespace": name });
    admin.apply(&binding);
    agent.wait_leads(&world.namespace, BOUND);
}
