//! Who leads when the Lease, the clocks or the way to it are not as they should be. Each scenario is a
//! public report about another program, named with it.

use crate::lab::BOUND;
use crate::wired::{LEASE, LEASE_S, SLACK, TERM, Wired, writes_lease};
use jiff::{SignedDuration, Timestamp};
use navin_test_support::{Call, Exchange, Fate, Reply, until};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

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

/// agentconnect-md/agentconnect#873: three digits of fraction, and no Lease was ever written.
#[test]
fn lease_times_are_written_with_six_digits_of_fraction() {
    let wired = Wired::short_lease("six-digits");
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

/// The same report: each try was answered 400, and nothing said so but an endless log.
#[test]
fn a_server_that_refuses_every_write_of_the_lease_makes_nobody_leader_and_a_short_log() {
    let wired = Wired::short_lease("refused-lease");
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

/// kubernetes/client-go#448: an old time in the record is no sign of death while the record changes.
#[test]
fn a_lease_that_changes_is_left_alone_however_old_its_times_are() {
    let wired = Wired::short_lease("old-times");
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

/// The same report: a time of tomorrow keeps nobody out when the record does not change.
#[test]
fn a_lease_that_does_not_change_is_taken_after_one_term_however_new_its_times_are() {
    let wired = Wired::short_lease("new-times");
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

/// ray-project/ray#63773: a missing renewTime was read as the epoch, and a healthy leader's Lease was taken.
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
                let wired = Wired::short_lease("garbled");
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

/// The same report.
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
                let wired = Wired::short_lease("unheld");
                foreign_lease(&wired, &spec);
                let _replica = wired.replica("agent-a");
                let (seen, take) = take(&wired, BOUND);
                assert!(take.call.at.duration_since(seen) < Duration::from_secs(3), "{what}");
            });
        }
    });
}
