//! An API server that has too much to do (kubernetes/kubernetes#34938: retries gave it more).

use crate::lab::{BOUND, POD, applied, outcome, queue, succeeded};
use crate::wired::{LEASE, Wired};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use navin_test_support::{Call, Exchange, Fate, Server};
use serde_json::json;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// What a server that is busy says.
#[derive(Clone, Copy)]
struct Busy {
    status: u16,
    /// How it says that it wants three seconds.
    retry_after: fn() -> Option<String>,
    /// Least time between two calls of one kind then; a date has no fractions.
    least: Duration,
}

fn in_three_seconds() -> Option<String> {
    let time = Timestamp::now() + Duration::from_secs(3);
    DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()
}

fn busy(call: &Call) -> bool {
    call.server == Server::Api && !call.resource().contains(LEASE) && !call.resource().ends_with("/leases")
}

/// One kind of call: what a server would limit.
fn kind(exchange: &Exchange) -> String {
    let watch = if exchange.call.path.contains("watch=") { " watch" } else { "" };
    format!("{} {}{watch}", exchange.call.method, exchange.call.resource())
}

#[test]
fn a_busy_api_server_is_asked_no_sooner_than_it_wants_and_the_lease_is_renewed_all_the_while() {
    let seconds = Duration::from_secs;
    let cases = [
        Busy { status: 429, retry_after: || Some("3".to_owned()), least: seconds(3) },
        Busy { status: 503, retry_after: in_three_seconds, least: seconds(2) },
        Busy { status: 429, retry_after: || None, least: Duration::from_millis(500) },
    ];
    thread::scope(|scope| {
        for (number, case) in cases.into_iter().enumerate() {
            scope.spawn(move || stays_away(&format!("busy-{number}"), case));
        }
    });
}

fn stays_away(name: &str, case: Busy) {
    let Busy { status, retry_after, least } = case;
    let wired = Wired::start(name, &json!({ "lease_duration_s": 3 }));
    let replica = wired.replica(POD);
    applied(&wired.world, "c0", &json!({}));
    let transitions = || wired.world.namespace.lease().expect("a Lease")["spec"]["leaseTransitions"].clone();
    let (before, from, began) = (transitions(), wired.wire.len(), Instant::now());
    wired.wire.rule(move |call, reply| {
        let json = json!({ "kind": "Status", "reason": "TooManyRequests", "message": "later" });
        let page = || Fate::Page {
            status,
            kind: "application/json",
            retry_after: retry_after(),
            body: json.to_string(),
        };
        if reply.is_none() && busy(call) { page() } else { Fate::Pass }
    });
    replica.reset_api();
    let commands = ["c1", "c2"]
        .map(|name| queue(&wired.world, "managedcomponent.apply", &json!({ "name": name, "spec": {} })));
    // The renewals go on, so there is always a call to look at.
    wired.wire.wait("nine seconds", from, BOUND, |_| began.elapsed() >= Duration::from_secs(9));
    let calls: Vec<Exchange> = wired.wire.since(from);
    wired.wire.pass_all();
    let mut kinds: BTreeMap<String, Vec<Instant>> = BTreeMap::new();
    for exchange in calls.iter().filter(|exchange| busy(&exchange.call)) {
        kinds.entry(kind(exchange)).or_default().push(exchange.call.at);
    }
    assert!(kinds.len() >= 2, "{name}: there was something to keep away from: {:?}", kinds.keys());
    // Some of a call's own time, and one of another that was being sent.
    let enough =
        |times: &Vec<Instant>| times.iter().skip(1).is_sorted_by(|a, b| b.duration_since(**a) >= least);
    for (kind, times) in &kinds {
        assert!(enough(times), "{name}: {kind}: {:?}", times.iter().map(|at| at.duration_since(began)));
    }
    for command in commands {
        succeeded(&outcome(&wired.world, &command));
    }
    assert_eq!(transitions(), before, "{name}");
}
