//! The identity is issued anew: the running agents are locked out until the Secret reaches their pods.

use crate::docs;
use crate::site::{SOON, Site, name};
use navin_test_support::until;
use serde_json::Value;
use std::time::Instant;

/// Refused with 403 first; then taken by both pods, which are the same as before.
pub(crate) fn issued_again(site: &Site) -> String {
    let before: Vec<String> = site.two_ready().iter().map(told).collect();
    let leader = site.next_leader("");
    let issued = || site.manager.get("/api/v1/clusters/prod").1["identity_id"].clone();
    let old = issued();
    let identity = docs::commands("Bring a cluster in").swap_remove(2);
    let (issue, apply) = identity.split_once('|').expect("a pipe");
    site.sh(&format!("{issue} > $NODE_DIR/secret.yaml"));
    until("the old identity, to be refused", SOON, || {
        site.log(&leader).contains("identity_revoked").then_some(())
    });
    let command = site.apply("after-identity", 1);
    let started = Instant::now();
    site.sh(&format!("cat $NODE_DIR/secret.yaml | {apply}"));
    let taken = format!("identity taken identity={}", issued().as_str().expect("an identity"));
    let pods = site.two_ready();
    until("both replicas, to take the identity", SOON, || {
        pods.iter().all(|pod| site.log(name(pod)).contains(&taken)).then_some(())
    });
    let both = started.elapsed();
    site.succeeded(&command);
    let served = started.elapsed();
    assert_eq!(
        site.two_ready().iter().map(told).collect::<Vec<_>>(),
        before,
        "the same pods, none started again"
    );
    let (_, audit) = site.manager.get("/api/v1/audit?limit=1000");
    let refused = |entry: &Value| entry["action"] == "gateway.call" && entry["subject"] == old;
    assert!(audit["entries"].as_array().expect("entries").iter().any(refused), "not audited");
    format!(
        "both took it {:.1} s after the Secret, first receipt {:.1} s",
        both.as_secs_f32(),
        served.as_secs_f32()
    )
}

/// A pod's name and uid, and how often its container was started again.
fn told(pod: &Value) -> String {
    let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
    format!("{} {} {restarts}", name(pod), pod["metadata"]["uid"])
}
