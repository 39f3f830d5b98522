//! Where the replicas run, and that what is rendered is what kustomize has.

use crate::site::{NAMESPACE, SOON, Site, name};
use navin_test_support::until;
use serde_json::Value;
use std::collections::BTreeSet;

/// The PodDisruptionBudget lets one replica go; the anti-affinity is preferred, so both run on one node.
pub(crate) fn drained(site: &Site) -> String {
    site.two_ready();
    site.sh("kubectl drain node-2 --delete-emptydir-data --timeout=60s");
    let both = until("both replicas on one node", SOON, || {
        let pods = site.two_ready();
        pods.iter().all(|pod| pod["spec"]["nodeName"] == "node-1").then_some(pods)
    });
    site.succeeded(&site.apply("after-drain", 1));
    site.sh("kubectl uncordon node-2");
    // Spread again, for what comes after.
    site.sh(&format!("kubectl delete pod -n navin-platform {}", name(&both[0])));
    let pods = site.two_ready();
    let nodes: BTreeSet<_> = pods.iter().map(|pod| pod["spec"]["nodeName"].to_string()).collect();
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    String::new()
}

/// The same image through kustomize changes nothing in what runs.
pub(crate) fn kustomize(site: &Site) -> String {
    let image = site.image("navin-cluster-agent-next");
    let (image_name, digest) = image.split_once('@').expect("a digest");
    let generation = || {
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/navin-cluster-agent");
        site.api.get(&path).1["metadata"]["generation"].clone()
    };
    let before = generation();
    // `diff` fails where there is a difference; `apply` calls some kinds configured all the same.
    site.sh(&format!(
        "rm -rf ${{NODE_DIR:?}}/deploy && cp -r deploy $NODE_DIR/
        sed -i 's|newName: .*|newName: {image_name}|; s|digest: .*|digest: {digest}|' \
            $NODE_DIR/deploy/kustomization.yaml
        kubectl diff -k $NODE_DIR/deploy
        kubectl apply -k $NODE_DIR/deploy"
    ));
    assert_eq!(generation(), before);
    String::new()
}

/// No liveness probe failed, and nothing crashed, in all that went before.
pub(crate) fn no_restarts(site: &Site) -> String {
    for pod in site.two_ready() {
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{pod}");
    }
    let events = site.api.list(&format!("/api/v1/namespaces/{NAMESPACE}/events"));
    // Not one that the kubelet itself called off, because its pod was deleted.
    let failed = |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("probe failed"));
    let bad = |event: &&Value| event["reason"] == "BackOff" || failed(event);
    assert_eq!(events.iter().find(bad), None);
    String::new()
}
