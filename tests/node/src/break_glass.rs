//! The manager is down: a signed file, through `kubectl exec`.

use crate::site::{SOON, Site, name};
use navin_test_support::until;
use serde_json::Value;

/// As `docs/OPERATIONS.md`, "Break glass", has it.
pub(crate) fn signed_file(site: &Site) -> String {
    site.two_ready();
    site.process.kill9();
    site.sh("navin-manager sign --data $NODE_DIR/manager --tenant acme --cluster prod \
            --operation inventory.report --arguments '{}' --out $NODE_DIR/command.json");
    let holder = site
        .sh("kubectl get lease navin-cluster-agent -n navin-platform -o jsonpath='{.spec.holderIdentity}'");
    let (leader, _) = holder.split_once('_').expect("a pod and its uid");
    let submit = |pod: &str| {
        format!(
            "kubectl exec -i -n navin-platform {pod} -- /navin-cluster-agent submit - < $NODE_DIR/command.json"
        )
    };
    let follower = site.two_ready().into_iter().find(|pod| name(pod) != leader).expect("a follower");
    let elsewhere = site.try_sh(&submit(name(&follower)));
    assert_eq!(elsewhere.status.code(), Some(3), "a follower");
    assert!(String::from_utf8_lossy(&elsewhere.stderr).contains(leader), "names the leader");

    let receipt: Value = serde_json::from_str(&site.sh(&submit(leader))).expect("a receipt");
    assert_eq!((&receipt["status"], &receipt["source"]), (&"succeeded".into(), &"inbox".into()), "{receipt}");
    let nodes = receipt["result"]["inventory"]["nodes"]["items"].as_array().map_or(0, Vec::len);
    assert_eq!(nodes, site.nodes, "{receipt}");

    site.process.start_again();
    let path = format!(
        "/api/v1/clusters/prod/kubernetes/commands/{}",
        receipt["command_id"].as_str().expect("a command_id")
    );
    let shown = until("the receipt, at the manager", SOON, || {
        let (_, command) = site.manager.call("GET", &path, None).ok()?;
        (command["status"] == "succeeded").then_some(command)
    });
    assert_eq!(shown["receipt"]["source"], "inbox", "{shown}");
    "the inventory without a manager; its receipt when the manager is back".to_owned()
}
