//! What is between the agent and its peers: a firewall that forgets, and a proxy that answers in the manager's
//! place.

use crate::cable::Cable;
use crate::inbox_lab;
use crate::lab::{BOUND, POD, applied, queue, succeeded};
use crate::wired::{COMMANDS, RECEIPTS, REPORT, Wired};
use navin_test_support::{AgentOptions, Call, Exchange, Fate, Server, World, until};
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

/// How long the firewall remembers a silent connection; some remember no longer.
const MEMORY: Duration = Duration::from_secs(16);

/// algesten/ureq#772: a firewall forgot idle connections, and request after request hung.
#[test]
fn where_a_firewall_forgets_idle_connections_the_lease_is_kept_and_a_receipt_comes_at_once() {
    let world = World::start("forgetful", &json!({}));
    let (api, gateway) = (
        Cable::forgetful(world.cluster.url(), MEMORY),
        Cable::forgetful(world.manager.gateway_url(), MEMORY),
    );
    world.reissue_identity(&json!({ "gateway_url": gateway.url(), "poll_wait_s": 5 }));
    let agent = world.agent_with(AgentOptions { kube_api: Some(api.url()), ..world.agent_options(POD) });
    agent.wait_leads(&world.namespace, BOUND);
    applied(&world, "c0", &json!({}));
    let transitions = || world.namespace.lease().expect("a Lease")["spec"]["leaseTransitions"].clone();
    let before = transitions();
    // What the leader, the receipts and the reports go over is forgotten; the Lease and the polls are not silent.
    thread::sleep(MEMORY + Duration::from_millis(500));
    let began = Instant::now();
    applied(&world, "c1", &json!({}));
    assert!(began.elapsed() < Duration::from_secs(5), "no call hung: {:?}", began.elapsed());
    assert_eq!(transitions(), before);
}

/// Something that is found in the page of a server in between.
const MARK: &str = "<center>nginx</center>";

/// rust-lang/crater#270: a 502 of nginx while the server restarted was the end of the agents.
#[test]
fn a_server_in_between_that_answers_for_the_manager_ends_nobody_and_fills_no_log() {
    let wired = Wired::start("in-between", &json!({ "poll_wait_s": 1 }));
    let replica = wired.replica_with(POD, &[("RUST_LOG", "debug")]);
    let polls = |exchange: &Exchange| exchange.call.is("GET", COMMANDS);
    wired.wire.wait("a poll", 0, BOUND, |exchange| polls(exchange) && exchange.took_effect());
    let page = || MARK.repeat(2_000);
    let html = |status, body| Fate::Page { status, kind: "text/html", retry_after: None, body };
    let (mut polled, mut others) = (0, 0);
    wired.wire.rule(move |call: &Call, reply| {
        if call.server != Server::Gateway {
            return Fate::Pass;
        }
        let poll = call.is("GET", COMMANDS);
        let number = if poll { &mut polled } else { &mut others };
        if reply.is_none() {
            *number += 1;
        }
        match (*number % 5, reply) {
            // A parser's error would quote what it found.
            (3, _) if poll => Fate::Answer {
                status: 200,
                body: json!({ "commands": page() }).to_string(),
                retry_after_s: None,
            },
            (0, None) => html(502, page()),
            (1, None) => html(503, String::new()),
            // This one passes the call on, and loses its patience.
            (2, Some(_)) => html(504, page()),
            (2, None) => Fate::Pass,
            (3, _) => html(200, page()),
            (_, _) => Fate::Cut,
        }
    });
    let from = wired.wire.len();
    let command = queue(&wired.world, "managedcomponent.apply", &json!({ "name": "c", "spec": {} }));
    until("polls that fail in each way", 2 * BOUND, || {
        let failed = wired.wire.since(from).into_iter().filter(polls).count();
        (failed >= 4).then_some(())
    });
    let calls: Vec<Instant> = wired.wire.since(from).iter().filter(|e| polls(e)).map(|e| e.call.at).collect();
    assert!(calls.is_sorted_by(|one, next| next.duration_since(*one) >= Duration::from_millis(990)));
    wired.wire.pass_all();
    let began = Instant::now();
    let outcome = wired.world.manager.wait_command(wired.world.cluster_id(), &command, 2 * BOUND);
    succeeded(&outcome);
    assert!(began.elapsed() < Duration::from_secs(40), "the longest pause is half a minute");
    assert!(replica.agent.process().is_running());
    let log = replica.agent.process().stderr_text();
    assert!(log.contains("poll failed"), "{log}");
    let longest = log.lines().map(str::len).max();
    assert!(longest < Some(500) && !log.contains(MARK), "{longest:?}");
}

/// Five answers a second of 64 envelopes each, none of which was signed.
#[test]
fn a_gateway_that_delivers_what_was_never_signed_fills_no_log() {
    let wired = Wired::start("unsigned", &json!({ "poll_wait_s": 1 }));
    let replica = wired.replica_with(POD, &[]);
    let polls = |exchange: &Exchange| exchange.call.is("GET", COMMANDS);
    wired.wire.wait("a poll", 0, BOUND, |exchange| polls(exchange) && exchange.took_effect());
    let mut sent = 0;
    wired.wire.rule(move |call: &Call, reply| {
        if call.server != Server::Gateway || !call.is("GET", COMMANDS) || reply.is_some() {
            return Fate::Pass;
        }
        let commands: Vec<_> =
            (sent..sent + 64).map(|number| json!({ "never_signed": "x".repeat(number) })).collect();
        sent += 64;
        Fate::Answer { status: 200, body: json!({ "commands": commands }).to_string(), retry_after_s: None }
    });
    let from = wired.wire.len();
    until("a thousand envelopes", 2 * BOUND, || {
        (wired.wire.since(from).into_iter().filter(polls).count() > 16).then_some(())
    });
    wired.wire.pass_all();
    // What is authentic is said all the same.
    let large = json!({ "text": "x".repeat(240 * 1024) });
    applied(&wired.world, "a", &large);
    applied(&wired.world, "b", &large);
    let third = queue(&wired.world, "managedcomponent.apply", &json!({ "name": "c", "spec": large }));
    wired.world.manager.wait_command(wired.world.cluster_id(), &third, BOUND);
    let log = replica.agent.process().stderr_text();
    assert!(log.contains("reason=too_large"), "{log}");
    let refused = log.lines().filter(|line| line.contains("refused unreadable=true")).count();
    assert!((64..=2 * 65).contains(&refused), "those of a minute, or of two: {refused}");
    assert!(log.contains("more of this kind than is said in a minute"), "{log}");
}

/// A poll's answer that is larger than any may be.
#[test]
fn an_answer_of_the_manager_beyond_the_limit_is_named_and_does_not_stop_the_agent() {
    let wired = Wired::start("oversized", &json!({ "poll_wait_s": 1 }));
    let mut left = 2;
    wired.wire.rule(move |call: &Call, reply| {
        if reply.is_some() || !call.is("GET", COMMANDS) || left == 0 {
            return Fate::Pass;
        }
        left -= 1;
        let body = json!({ "commands": [{ "pad": "x".repeat(6 * 1024 * 1024) }] });
        Fate::Answer { status: 200, body: body.to_string(), retry_after_s: None }
    });
    let replica = wired.replica(POD);
    applied(&wired.world, "c", &json!({}));
    let log = replica.agent.process().stderr_text();
    let named = "the answer to /v1/cluster-agent/commands is larger than 5242880 bytes";
    assert_eq!(log.matches(named).count(), 1, "once a minute: {log}");
}

/// A change of the component's status, as its operator makes it.
fn change_status(world: &World, number: u64) {
    let path = format!("{}/status", world.namespace.component_path("c"));
    let (status, answer) = world.cluster.admin().patch(&path, &json!({ "status": { "number": number } }));
    assert_eq!(status, 200, "{answer}");
}

/// kubernetes/kubernetes#34938, at the other side: nobody asks sooner than the manager wants, whatever happens.
#[test]
fn a_manager_that_asks_to_be_left_alone_gets_no_poll_receipt_or_report_meanwhile() {
    let wired = Wired::start("left-alone", &json!({ "poll_wait_s": 1 }));
    let replica = wired.replica_as(POD, |options| AgentOptions {
        inbox: Some(wired.world.folder().join("inbox")),
        ..options
    });
    applied(&wired.world, "c", &json!({}));
    wired.wire.rule(|call: &Call, reply| match reply {
        None if call.server == Server::Gateway => {
            Fate::Answer { status: 429, body: "{}".to_owned(), retry_after_s: Some(6) }
        }
        _ => Fate::Pass,
    });
    let (from, mut number) = (wired.wire.len(), 0);
    let times = |end: &str| -> Vec<Instant> {
        let wire = wired.wire.since(from);
        wire.iter().filter(|e| e.call.resource().ends_with(end)).map(|e| e.call.at).collect()
    };
    // A receipt, a report that is asked for, and reasons to report all the while.
    inbox_lab::put(&replica.agent, "first", wired.signer.sign(&wired.signer.inventory(900)).to_string());
    until("two calls of each kind", BOUND, || {
        number += 1;
        change_status(&wired.world, number);
        if number == 20 {
            let again = wired.signer.sign(&wired.signer.inventory(901));
            inbox_lab::put(&replica.agent, "second", again.to_string());
        }
        thread::sleep(Duration::from_millis(100));
        [COMMANDS, RECEIPTS, REPORT].iter().all(|end| times(end).len() >= 2).then_some(())
    });
    for end in [COMMANDS, RECEIPTS, REPORT] {
        let times = times(end);
        let paced = times.is_sorted_by(|one, next| next.duration_since(*one) >= Duration::from_millis(5_900));
        assert!(paced, "{end}: {:?}", times.iter().map(|at| at.duration_since(times[0])).collect::<Vec<_>>());
    }
    wired.wire.pass_all();
    assert_eq!(inbox_lab::receipt(&replica.agent, "second")["status"], "succeeded");
}
