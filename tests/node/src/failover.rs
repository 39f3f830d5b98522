//! The leader's pod is deleted, and its node is cut off.

use crate::site::{SOON, Site, name};
use navin_test_support::until;
use std::time::{Duration, Instant};

/// The default `lease_duration_s`.
const LEASE: Duration = Duration::from_secs(15);

/// By release: long before the Lease would end by itself.
pub(crate) fn pod_deleted(site: &Site) -> String {
    site.two_ready();
    let old = site.next_leader("");
    let started = Instant::now();
    site.sh(&format!("kubectl delete pod -n navin-platform {old} --wait=false"));
    site.next_leader(&old);
    let taken = started.elapsed();
    assert!(taken < LEASE / 2, "{taken:?}: not by release");
    site.succeeded(&site.apply("after-delete", 1));
    let acted = started.elapsed();
    site.two_ready();
    let back = started.elapsed();
    let [taken, acted, back] = [taken, acted, back].map(|time| time.as_secs_f32());
    format!("by release, {taken:.1} s after the deletion; first receipt {acted:.1} s; two ready {back:.1} s")
}

/// By expiry. What was delivered to the old leader, and what was issued meanwhile, happens once.
pub(crate) fn node_cut_off(site: &Site) -> String {
    let pods = site.two_ready();
    let old = site.next_leader("");
    let pod = pods.iter().find(|pod| name(pod) == old).expect("the leader's pod");
    let node = pod["spec"]["nodeName"].as_str().expect("its node");
    let names = ["cut-1", "cut-2", "cut-3"];

    site.sh(&format!("ip link set {node} down"));
    let started = Instant::now();
    // The gateway writes the first into the old leader's open request, and TCP keeps it for when the link is back.
    let at_once = site.apply(names[0], 1);
    let new = site.next_leader(&old);
    let taken = started.elapsed();
    assert!(taken > LEASE / 2 && taken < LEASE * 2, "{taken:?}: not by expiry");
    let meanwhile = [site.apply(names[1], 1), site.apply(names[2], 1)];
    for command in meanwhile.iter().chain([&at_once]) {
        let command = site.succeeded(command);
        assert_eq!(command["receipt"]["replica"], new, "{command}");
    }
    let acted = started.elapsed();
    let before = names.map(|name| site.component(name)["metadata"]["resourceVersion"].clone());

    site.sh(&format!("ip link set {node} up"));
    // It saw its end long ago, without a network; back, it follows, and says so when asked.
    until("the old leader, to follow", SOON, || {
        let doctor =
            site.try_sh(&format!("kubectl exec -n navin-platform {old} -- /navin-cluster-agent doctor"));
        (doctor.status.success() && site.log(&old).contains("leader=false")).then_some(())
    });
    assert_eq!(site.leader().as_deref(), Some(new.as_str()), "the Lease went back");
    // A command that it would have to leave alone; then nothing of before has moved.
    site.succeeded(&site.apply("after-cut", 1));
    for command in meanwhile.iter().chain([&at_once]) {
        site.succeeded(command);
    }
    assert_eq!(names.map(|name| site.component(name)["metadata"]["resourceVersion"].clone()), before);
    assert!(names.iter().all(|name| site.component(name)["metadata"]["generation"] == 1));
    let pods = site.two_ready();
    assert!(pods.iter().any(|pod| name(pod) == old), "the old leader's pod is gone");
    let [taken, acted] = [taken, acted].map(|time| time.as_secs_f32());
    format!("taken {taken:.1} s after the cut; three receipts {acted:.1} s")
}
