//! Components of a CRD that is not free-form: defaults, refusals, and no CRD at all.

use crate::gateway::Scripted;
use crate::lab::{
    BOUND, CRD, Changed, POD, changed, live, succeeded, unsuccessful, with_crd_again, without_crd,
};
use navin_test_support::{Cluster, World, until};
use serde_json::{Value, json};

/// A control plane whose CRD has a default and a limit in its schema.
fn with_schema(cluster: &Cluster) {
    let admin = cluster.admin();
    let properties = json!({
        "replicas": { "type": "integer", "maximum": 10 },
        "mode": { "type": "string", "default": "auto" },
    });
    let (status, mut crd) = admin.get(CRD);
    assert_eq!(status, 200, "{crd}");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = properties;
    let (status, answer) = admin.put(CRD, &crd);
    assert_eq!(status, 200, "{answer}");
    let probe = json!({ "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
        "metadata": { "name": "probe" }, "spec": {} });
    until("the schema to be in force", BOUND, || {
        let path = "/apis/platform.navin.ai/v1/namespaces/default/managedcomponents?dryRun=All";
        let (_, answer) = admin.post(path, &probe);
        (answer["spec"]["mode"] == "auto").then_some(())
    });
}

#[test]
fn defaults_of_the_schema_stay_and_are_no_drift() {
    let (cluster, _turn) = changed(Changed::Schema);
    with_schema(cluster);
    let scripted = Scripted::over(World::start_in(cluster, "defaults", &json!({})), &json!({}));
    let _agent = scripted.agent();
    let spec = json!({ "replicas": 2 });
    let first = scripted.answer(&scripted.signer.apply("ingress", 1, &spec));
    assert_eq!(first["status"], "succeeded", "{first}");
    let written = live(&scripted.world, "ingress");
    assert_eq!(written["spec"], json!({ "replicas": 2, "mode": "auto" }));

    let shown = |report: &Value| report["components"].as_array().and_then(|rows| rows.first().cloned());
    assert_eq!(scripted.answer(&scripted.signer.inventory(2))["status"], "succeeded");
    let row = until("a report with the component", BOUND, || shown(scripted.gateway.reports().last()?));
    assert_eq!(row, json!({ "name": "ingress", "sequence": 1, "in_sync": true, "generation": 1 }));
    assert_eq!(live(&scripted.world, "ingress"), written, "nothing was written again");

    let second = scripted.answer(&scripted.signer.apply("ingress", 3, &spec));
    assert_eq!(second["result"]["changed"], false, "{second}");
}

#[test]
fn a_spec_that_the_schema_refuses_fails_with_the_servers_words() {
    let (cluster, _turn) = changed(Changed::Schema);
    with_schema(cluster);
    let world = World::start_in(cluster, "strict", &json!({}));
    let _agent = world.agent(POD);
    let command = world.apply("ingress", &json!({ "replicas": 11 }), BOUND);
    let receipt = unsuccessful(&command, "failed", "kubernetes_refused");
    let message = receipt["message"].as_str().expect("a message");
    assert!(message.contains("spec.replicas") && message.contains("less than or equal to 10"), "{message}");
    assert_eq!(receipt["recorded"], true);
    assert_eq!(world.namespace.component("ingress"), None);

    // What failed does not become the desired state, and stands in the way of nothing.
    succeeded(&world.apply("ingress", &json!({ "replicas": 10 }), BOUND));
    unsuccessful(&world.apply("ingress", &json!({ "replicas": 12 }), BOUND), "failed", "kubernetes_refused");
    assert_eq!(live(&world, "ingress")["spec"]["replicas"], 10);
    let desired = &crate::lab::state(&world)["components"]["ingress"]["desired"];
    assert_eq!(desired["envelope"]["payload"]["arguments"]["spec"], json!({ "replicas": 10 }));
}

#[test]
fn without_the_crd_an_apply_fails_and_a_delete_has_nothing_to_do() {
    let (cluster, _turn) = changed(Changed::Schema);
    let world = World::start_in(cluster, "no-crd", &json!({}));
    let _agent = world.agent(POD);
    let crd = without_crd(&world);
    let command = world.apply("ingress", &json!({ "replicas": 1 }), BOUND);
    let delete = world.delete("ingress", BOUND);

    with_crd_again(&world, &crd);
    let after = world.apply("ingress", &json!({ "replicas": 1 }), BOUND);

    unsuccessful(&command, "failed", "kubernetes_refused");
    assert_eq!(succeeded(&delete)["result"]["existed"], false);
    succeeded(&after);
}
