//! The ServiceAccount's token is replaced on disk while the agent runs (ManageIQ/kubeclient#530: read once, and
//! after an hour every call failed).

use crate::lab::{BOUND, POD, applied};
use crate::mount::Mount;
use crate::wired::{COMPONENTS, LEASE, Replica, STATE, Wired};
use navin_test_support::{Exchange, Fate, Server};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// How long the API server does not know the token that the file still holds.
const UNKNOWN: Duration = Duration::from_secs(4);

/// How many the agent has to the API server: of Lease, leader, watch, reports and Events.
const CONNECTIONS: usize = 5;

/// A leader whose token is a file as the kubelet mounts it.
struct Bench {
    replica: Replica,
    mount: Mount,
    first: String,
    second: String,
    wired: Wired,
}

impl Bench {
    fn new(name: &str) -> Self {
        let wired = Wired::start(name, &json!({}));
        let account = |wired: &Wired| {
            let namespace = &wired.world.namespace.name;
            wired.world.cluster.service_account_token(namespace, "navin-cluster-agent")
        };
        let mount = Mount::new(wired.world.folder().join("token"), &[("token", String::new())]);
        let file = wired.world.folder().join(format!("{POD}.token"));
        symlink(mount.folder.join("token"), &file).expect("a link");
        let replica = wired.replica(POD);
        wired.wait_effect(0, BOUND, POD, "PUT", STATE);
        let first = fs::read_to_string(file).expect("the token that the agent was started with");
        let second = account(&wired);
        assert_ne!(first, second);
        Self { replica, mount, first, second, wired }
    }

    fn swap(&mut self) {
        let second = self.second.clone();
        self.mount.swap_one("token", |_| second);
    }

    /// From now on the first token is unknown to the API server.
    fn revoke(&self) {
        let first = self.first.clone();
        self.wired.wire.rule(move |call, reply| {
            let unknown = call.server == Server::Api && call.bearer.as_deref() == Some(&first);
            if reply.is_none() && unknown { Fate::answer(401, "Unauthorized") } else { Fate::Pass }
        });
    }

    fn transitions(&self) -> u64 {
        let lease = self.wired.world.namespace.lease().expect("a Lease");
        lease["spec"]["leaseTransitions"].as_u64().expect("a number")
    }

    /// The calls of the API server since, with this token.
    fn calls(&self, from: usize, token: &str) -> Vec<Exchange> {
        let calls = self.wired.wire.since(from).into_iter().filter(|e| e.call.server == Server::Api);
        calls.filter(|e| e.call.bearer.as_deref() == Some(token)).collect()
    }

    /// That a command goes through, and the watch is opened anew, with the second token and the same Lease.
    fn goes_on(&self, transitions: u64) {
        applied(&self.wired.world, "c", &json!({}));
        let from = self.wired.wire.len();
        self.replica.reset_api();
        let watch = self.wired.wire.wait("the watch", from, BOUND, |exchange| {
            exchange.call.is("GET", COMPONENTS)
                && exchange.call.path.contains("watch=")
                && exchange.took_effect()
        });
        assert_eq!(watch.call.bearer.as_deref(), Some(self.second.as_str()));
        assert_eq!(self.transitions(), transitions);
    }
}

#[test]
fn a_token_that_is_swapped_is_in_the_next_request_and_nothing_is_refused() {
    let mut bench = Bench::new("token");
    let transitions = bench.transitions();
    bench.swap();
    // What was being sent while the file was swapped has gone out by the next renewal.
    let from = bench.wired.wire.len();
    bench.wired.wire.wait("a renewal", from, BOUND, |e| {
        e.call.is("PUT", LEASE) && e.call.bearer.as_deref() == Some(&bench.second)
    });
    let from = bench.wired.wire.len();
    bench.revoke();
    bench.goes_on(transitions);
    assert_eq!(bench.calls(from, &bench.first).len(), 0);
}

#[test]
fn a_token_that_is_unknown_is_tried_at_a_pace_and_its_successor_at_once() {
    let mut bench = Bench::new("token-unknown");
    let (transitions, from) = (bench.transitions(), bench.wired.wire.len());
    bench.revoke();
    bench.replica.reset_api();
    let revoked = Instant::now();
    bench.wired.wire.wait("tries for a while", from, BOUND, |_| revoked.elapsed() >= UNKNOWN);
    let refused = bench.calls(from, &bench.first);
    let mut tries: BTreeMap<String, usize> = BTreeMap::new();
    for exchange in refused.iter().filter(|exchange| exchange.reply.is_none()) {
        *tries.entry(format!("{} {}", exchange.call.method, exchange.call.resource())).or_default() += 1;
    }
    assert!(!tries.is_empty(), "there was something to refuse");
    // At most one try a second of each kind, and one under way when it began.
    assert!(tries.values().all(|count| *count <= 6), "{tries:?}");
    bench.swap();
    let swapped = bench.wired.wire.len();
    bench.goes_on(transitions);
    let late = bench.calls(swapped, &bench.first).len();
    assert!(late <= CONNECTIONS, "what was under way on each: {late}");
}
