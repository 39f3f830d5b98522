//! Who leads when the Lease, the clocks or the way to it are not as they should be. Each scenario is a
//! public report about another program, named with it.

use crate::lab::{BOUND, queue};
use crate::wired::{LEASE, Replica, Wired, holder_in, writes_lease};
use jiff::{SignedDuration, Timestamp};
use navin_test_support::{Call, Exchange, Fate, Gate, Reply, until};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// The lease of all these, in seconds.
const LEASE_S: u64 = 3;
const TERM: Duration = Duration::from_secs(LEASE_S);
/// What a loaded machine may add.
const SLACK: Duration = Duration::from_secs(2);

fn wired(name: &str) -> Wired {
    Wired::start(name, &json!({ "lease_duration_s": LEASE_S }))
}

/// A Lease of somebody else, as given.
fn foreign_lease(wired: &Wired, spec: &Value) -> Value {
    let namespace = &wired.world.namespace.name;
    let object = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "navin-cluster-agent", "namespace": namespace }, "spec": spec });
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let (status, answer) = wired.world.cluster.admin().post(&path, &object);
    assert_eq!(status, 201, "{answer}");
    answer
}

fn lease_writes(wired: &Wired) -> Vec<Exchange> {
    wired.wire.since(0).into_iter().filter(writes_lease).collect()
}

/// When a replica first saw the Lease, and its take, which succeeded.
fn take(wired: &Wired, bound: Duration) -> (Instant, Exchange) {
    let seen = wired.wait_effect(0, BOUND, "agent-a", "GET", LEASE);
    let seen = seen.reply.expect("it was answered").at;
    (seen, wired.wait_effect(0, bound, "agent-a", "PUT", LEASE))
}

fn micro(time: Timestamp) -> String {
    format!("{time:.6}")
}

// agentconnect-md/agentconnect#873: three digits of fraction, and no Lease was ever written.
#[test]
fn lease_times_are_written_with_six_digits_of_fraction() {
    let wired = wired("six-digits");
    let _replica = wired.replica("agent-a");
    let mut from = 0;
    for _ in 0..3 {
        let write = wired.wire.wait("a write of the Lease", from, BOUND, |exchange| {
            writes_lease(exchange) && exchange.reply.is_some()
        });
        assert!(write.took_effect(), "at the first try: {:?}", write.reply);
        from = write.call.number + 1;
        for member in ["acquireTime", "renewTime"] {
            let time = write.call.json()["spec"][member].as_str().expect("a time").to_owned();
            let (_, fraction) = time.split_once('.').expect("a fraction");
            assert!(fraction.len() == 7 && fraction.ends_with('Z'), "{time}");
        }
    }
}

// The same report: each try was answered 400, and nothing said so but an endless log.
#[test]
fn a_server_that_refuses_every_write_of_the_lease_makes_nobody_leader_and_a_short_log() {
    let wired = wired("refused-lease");
    wired.wire.rule(|call, reply| match reply {
        None if call.resource().contains("/leases") && call.method != "GET" => {
            Fate::answer(400, "BadRequest")
        }
        _ => Fate::Pass,
    });
    let replicas = [wired.replica("agent-a"), wired.replica("agent-b")];
    until("six tries", BOUND, || (lease_writes(&wired).len() >= 6).then_some(()));
    assert_eq!(wired.world.namespace.lease(), None);
    assert!(wired.wire.since(0).iter().all(|exchange| !exchange.call.mutates() || writes_lease(exchange)));
    for replica in &replicas {
        let log = replica.agent.process().stderr_text();
        assert_eq!(log.matches("lease not taken").count(), 1, "said once a minute:\n{log}");
        assert!(replica.agent.process().is_running());
    }
    wired.wire.pass_all();
    until("a leader after all", BOUND, || wired.world.namespace.leader());
}

// kubernetes/client-go#448: an old time in the record is no sign of death while the record changes.
#[test]
fn a_lease_that_changes_is_left_alone_however_old_its_times_are() {
    let wired = wired("old-times");
    let hour_ago = Timestamp::now() - SignedDuration::from_hours(1);
    let spec = |n: i64| {
        json!({ "holderIdentity": "somebody", "leaseDurationSeconds": LEASE_S, "leaseTransitions": 4,
            "renewTime": micro(hour_ago + SignedDuration::from_micros(n)) })
    };
    foreign_lease(&wired, &spec(0));
    let _replica = wired.replica("agent-a");
    wired.wait_effect(0, BOUND, "agent-a", "GET", LEASE);
    let started = Instant::now();
    for n in 1.. {
        let path = wired.world.namespace.lease_path();
        let (status, answer) = wired.world.cluster.admin().patch(&path, &json!({ "spec": spec(n) }));
        assert_eq!(status, 200, "{answer}");
        if started.elapsed() > 2 * TERM {
            break;
        }
        thread::sleep(TERM / 6);
    }
    assert_eq!(lease_writes(&wired).len(), 0, "nobody took it");
    let last = Instant::now();
    let (_, take) = take(&wired, BOUND);
    assert!(take.call.at.duration_since(last) >= TERM, "a full term after the last change");
}

// The same report: a time of tomorrow keeps nobody out when the record does not change.
#[test]
fn a_lease_that_does_not_change_is_taken_after_one_term_however_new_its_times_are() {
    let wired = wired("new-times");
    let hour_ahead = micro(Timestamp::now() + SignedDuration::from_hours(1));
    foreign_lease(
        &wired,
        &json!({ "holderIdentity": "somebody", "leaseDurationSeconds": LEASE_S, "leaseTransitions": 4,
            "acquireTime": hour_ahead, "renewTime": hour_ahead }),
    );
    let _replica = wired.replica("agent-a");
    let (seen, take) = take(&wired, BOUND);
    let waited = take.call.at.duration_since(seen);
    assert!((TERM..TERM + SLACK).contains(&waited), "{waited:?}");
    assert_eq!(take.call.json()["spec"]["leaseTransitions"], 5);
}

/// Changes the Lease on its way to the agent, as a server that is not as strict as the real one might.
fn distort(change: fn(&mut Value)) -> impl FnMut(&Call, Option<&Reply>) -> Fate + Send + 'static {
    move |call, reply| match reply {
        Some(reply) if call.is("GET", LEASE) && reply.status == 200 => {
            let mut lease = reply.json();
            change(&mut lease["spec"]);
            Fate::Answer { status: 200, body: lease.to_string(), retry_after_s: None }
        }
        _ => Fate::Pass,
    }
}

/// What becomes of a held Lease whose members are not as they should be.
type Distortion = (&'static str, fn(&mut Value));

// ray-project/ray#63773: a missing renewTime was read as the epoch, and a healthy leader's Lease was taken.
#[test]
fn a_held_lease_with_absent_or_garbled_members_is_waited_for_one_whole_term() {
    let cases: [Distortion; 8] = [
        ("no renewTime", |spec| drop(spec.as_object_mut().unwrap().remove("renewTime"))),
        ("renewTime null", |spec| spec["renewTime"] = Value::Null),
        ("renewTime garbage", |spec| spec["renewTime"] = json!("garbage")),
        ("renewTime a number", |spec| spec["renewTime"] = json!(0)),
        ("no times at all", |spec| {
            drop(spec.as_object_mut().unwrap().remove("renewTime"));
            drop(spec.as_object_mut().unwrap().remove("acquireTime"));
        }),
        ("no transitions", |spec| drop(spec.as_object_mut().unwrap().remove("leaseTransitions"))),
        ("transitions garbage", |spec| spec["leaseTransitions"] = json!("many")),
        ("no duration", |spec| drop(spec.as_object_mut().unwrap().remove("leaseDurationSeconds"))),
    ];
    let held = json!({ "holderIdentity": "somebody", "leaseDurationSeconds": LEASE_S, "leaseTransitions": 4,
        "acquireTime": micro(Timestamp::now()), "renewTime": micro(Timestamp::now()) });
    thread::scope(|scope| {
        for (what, change) in cases {
            let held = &held;
            scope.spawn(move || {
                let wired = wired("garbled");
                let version = foreign_lease(&wired, held)["metadata"]["resourceVersion"].clone();
                wired.wire.rule(distort(change));
                let _replica = wired.replica("agent-a");
                let (seen, take) = take(&wired, BOUND);
                let waited = take.call.at.duration_since(seen);
                assert!((TERM..TERM + SLACK).contains(&waited), "{what}: {waited:?}");
                let written = take.call.json();
                assert_eq!(written["metadata"]["resourceVersion"], version, "{what}");
                let transitions = if what.contains("transitions") { 1 } else { 5 };
                assert_eq!(written["spec"]["leaseTransitions"], transitions, "{what}");
            });
        }
    });
}

// The same report.
#[test]
fn a_lease_that_nobody_holds_is_taken_at_once() {
    let cases: [(&str, Value); 3] = [
        ("no spec", json!({})),
        ("an empty holder", json!({ "holderIdentity": "", "leaseTransitions": 3 })),
        (
            "a null holder",
            json!({ "holderIdentity": null, "leaseTransitions": 3,
            "renewTime": micro(Timestamp::now()), "leaseDurationSeconds": 300 }),
        ),
    ];
    thread::scope(|scope| {
        for (what, spec) in cases {
            scope.spawn(move || {
                let wired = wired("unheld");
                foreign_lease(&wired, &spec);
                let _replica = wired.replica("agent-a");
                let (seen, take) = take(&wired, BOUND);
                assert!(take.call.at.duration_since(seen) < Duration::from_secs(1), "{what}");
            });
        }
    });
}

/// Two replicas, of which the first leads and the second has seen it.
fn pair(wired: &Wired) -> [Replica; 2] {
    let first = wired.replica("agent-a");
    wired.wire.wait("the first leader", 0, BOUND, |e| writes_lease(e) && e.took_effect());
    let second = wired.replica("agent-b");
    wired.wait_effect(0, BOUND, "agent-b", "GET", LEASE);
    [first, second]
}

// cilium/cilium#42920, kubernetes/kubernetes#23731: after the deadline the rest of the leader went on acting.
#[test]
fn a_leader_that_cannot_reach_its_lease_has_stopped_before_another_begins() {
    let wired = wired("hanging-lease");
    let _replicas = pair(&wired);
    // Work all the time, so that whoever may act does.
    let mut number = 0;
    let mut work = || {
        number += 1;
        let arguments = json!({ "name": format!("c{}", number % 8), "spec": { "number": number } });
        queue(&wired.world, "managedcomponent.apply", &arguments);
    };
    let acts = |exchange: &Exchange, pod: &str| {
        let writes = exchange.call.mutates() && !writes_lease(exchange);
        writes && exchange.call.agent == pod && !exchange.call.resource().contains("/events")
    };
    until("the leader's work", BOUND, || {
        work();
        wired
            .wire
            .since(0)
            .iter()
            .any(|e| acts(e, "agent-a") && e.call.resource().contains("/c1"))
            .then_some(())
    });
    let (hanging, from) = (Gate::new(), wired.wire.len());
    let held = hanging.clone();
    wired.wire.rule(move |call, reply| match reply {
        None if call.agent == "agent-a" && call.resource().ends_with(LEASE) => Fate::Hold(held.clone()),
        _ => Fate::Pass,
    });
    until("the other's work", BOUND, || {
        work();
        let record = wired.wire.since(from);
        (record.iter().filter(|e| acts(e, "agent-b") && e.took_effect()).count() > 10).then_some(())
    });
    wired.wire.pass_all();
    hanging.cut();

    let record = wired.wire.since(0);
    let renewals = record.iter().filter(|e| e.call.agent == "agent-a" && writes_lease(e) && e.took_effect());
    let renewed = renewals.map(|e| e.call.at).max().expect("a renewal");
    let last = record.iter().filter(|e| acts(e, "agent-a")).map(|e| e.call.at).max().expect("work");
    let first = record.iter().filter(|e| acts(e, "agent-b")).map(|e| e.call.at).min().expect("work");
    let taken = record.iter().find(|e| e.call.agent == "agent-b" && writes_lease(e) && e.took_effect());
    let taken = taken.expect("the other took the Lease").call.at;
    // The permission counts from before the renewal was sent; the rest is how long a request takes to
    // reach the proxy.
    let acted = last.saturating_duration_since(renewed);
    assert!(acted < TERM * 2 / 3 + Duration::from_millis(250), "it acted {acted:?} after its last renewal");
    assert!(last < taken && taken < first, "never both");
    let waited = taken.duration_since(renewed);
    assert!((TERM..TERM + SLACK).contains(&waited), "{waited:?}");
}

// kubernetes/kubernetes#61151: two replicas of one name each saw their own Lease.
#[test]
fn replicas_of_one_name_are_told_apart_also_over_a_restart() {
    let wired = wired("same-name");
    let same = [("POD_NAME", "same"), ("POD_UID", "")];
    let first = wired.replica_with("agent-a", &same);
    until("the first leader", BOUND, || wired.world.namespace.leader());
    let second = wired.replica_with("agent-b", &same);
    wired.wait_effect(0, BOUND, "agent-b", "GET", LEASE);
    let holder = |replica: &Replica| {
        let log = replica.agent.process().stderr_text();
        let last = log.lines().rfind(|line| line.contains("starting")).expect("a start").to_owned();
        last.split("holder=").nth(1).expect("a holder").to_owned()
    };
    let (a, b) = (holder(&first), holder(&second));
    assert!(a.starts_with("same_") && b.starts_with("same_") && a != b, "{a} and {b}");
    assert_eq!(wired.world.namespace.leader().as_deref(), Some(a.as_str()));
    drop(second);

    // A new process in a pod of that name is not the old one: it waits as anybody does.
    let from = wired.wire.len();
    first.agent.process().start_again();
    let seen = wired.wait_effect(from, BOUND, "agent-a", "GET", LEASE).reply.expect("an answer").at;
    let take = wired.wait_effect(from, BOUND, "agent-a", "PUT", LEASE);
    assert!(take.call.at.duration_since(seen) >= TERM, "not at once");
    assert_eq!(holder_in(&take), holder(&first));
    assert_ne!(holder(&first), a);
}
