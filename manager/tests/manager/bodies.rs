//! Bodies that do not come hold up nobody else's.

use crate::raw::{Tls, tls};
use crate::support::{Agent, Folder, Manager, receipt, served, until};
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// A report of the largest size, of which one byte comes.
fn stalled(manager: &Manager, folder: &Folder, issued: &Value) -> Tls {
    let mut stream = tls(&manager.gateway, &folder.ca(), Some(issued));
    let head = "POST /v1/cluster-agent/report HTTP/1.1\r\nhost: gateway\r\ncontent-length: 8388608\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn report(tenant: &str) -> Value {
    json!({ "type": "navin.report/v1", "tenant_id": tenant, "cluster_id": "prod" })
}

#[test]
fn stalled_reports_of_two_identities_hold_up_no_receipt_and_no_report_of_another() {
    let folder = Folder::new("stalled");
    let (token, other) = (folder.token("acme"), folder.token("rival"));
    let manager = folder.serve_with(&["--agent-rate", "0"]);
    let agent = manager.cluster(&other, "prod");
    let queued = manager.queue(&other, "prod");
    let identities = ["prod", "test"].map(|cluster| {
        manager.cluster(&token, cluster);
        manager.issue(&token, cluster)
    });
    // As many as one identity may have open.
    let held: Vec<Tls> =
        identities.iter().flat_map(|issued| [(); 16].map(|()| stalled(&manager, &folder, issued))).collect();
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
    // All the while that those arrive.
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        let started = Instant::now();
        agent.report(&report("rival")).expect(200);
        agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    }
    drop(held);
}

#[test]
fn one_identity_has_two_reports_on_their_way_and_receipts_all_the_while() {
    let (folder, token, manager) = served("two-reports");
    manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let issued = manager.issue(&token, "prod");
    let agent = Agent::new(&issued, &manager.gateway);
    let mut held = Vec::new();
    let refused = until("two are on their way", || {
        // One that meets a report of ours on its way is refused itself.
        held.push(stalled(&manager, &folder, &issued));
        Some(agent.report(&report("acme"))).filter(|answer| answer.status != 200)
    });
    refused.expect_put_off(429, 5);
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
    drop(held);
    until("they are gone", || (agent.report(&report("acme")).status == 200).then_some(()));
}
