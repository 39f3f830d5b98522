//! Several managers and gateways side by side on one PostgreSQL.

use crate::server::{Server, runtime};
use crate::support::{Folder, LIMIT, receipt, until};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

/// A command is not delivered again before this.
const AGAIN_AFTER: Duration = Duration::from_secs(15);

/// A time in which nothing is delivered twice, with room for a poll that is under way.
const NOT_AGAIN_IN: Duration = Duration::from_secs(11);

const COMMANDS: &str = "/api/v1/clusters/prod/kubernetes/commands";

fn id(command: &Value) -> String {
    command["command_id"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_queued_at_one_manager_wakes_the_poll_at_another() {
    let folder = Folder::new("scale-wake");
    let token = folder.token("acme");
    let (here, there) = (folder.serve(), folder.serve());
    let agent = here.cluster(&token, "prod").at(&there);
    let fastest = (0..5).map(|_| {
        let waiting = agent.clone();
        let poll = thread::spawn(move || (waiting.polled(30), Instant::now()));
        for _ in 0..5 {
            there.get(&token, "/api/v1/clusters/prod").expect(200);
        }
        let queued = id(&here.queue(&token, "prod"));
        let since = Instant::now();
        let (polled, at) = poll.join().unwrap();
        assert_eq!(polled, [queued]);
        at.saturating_duration_since(since)
    });
    // The polls' own look would take 500 ms on average.
    assert!(fastest.min().unwrap() < Duration::from_millis(150));
}

#[test]
fn a_new_identity_at_one_manager_cuts_the_poll_at_another() {
    let folder = Folder::new("scale-revoke");
    let token = folder.token("acme");
    let (here, there) = (folder.serve(), folder.serve());
    let former = here.cluster(&token, "prod").at(&there);
    let waiting = former.clone();
    let poll = thread::spawn(move || waiting.poll(30));
    until("the poll is noted", || {
        let shown = here.get(&token, "/api/v1/clusters/prod").expect(200);
        shown["agent"]["online"].as_bool().filter(|online| *online)
    });
    let started = Instant::now();
    here.identity(&token, "prod");
    assert_eq!(poll.join().unwrap().expect(403)["error"], "identity_revoked");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(former.poll(0).expect(403)["error"], "identity_revoked");
}

#[test]
fn a_killed_gateway_loses_nothing_and_nothing_of_it_is_delivered_twice_within_15_seconds() {
    let folder = Folder::new("scale-kill");
    let token = folder.token("acme");
    let manager = folder.serve();
    let doomed = folder.agent_gateway();
    let agent = manager.cluster(&token, "prod");
    let first = [(); 3].map(|()| id(&manager.queue(&token, "prod")));
    let before = Instant::now();
    assert_eq!(agent.at(&doomed).polled(0), first);
    let delivered = Instant::now();
    let answered = manager.get(&token, &format!("{COMMANDS}/{}", first[0])).expect(200);
    agent.at(&doomed).receipt(&receipt(&answered, "succeeded", true)).expect(200);
    doomed.kill();
    let second = [(); 3].map(|()| id(&manager.queue(&token, "prod")));
    assert_eq!(agent.polled(0), second, "what was not delivered, and that alone");
    let again = agent.polled(30);
    assert_eq!(again[..2], first[1..], "what was delivered and not answered");
    assert!(before.elapsed() >= AGAIN_AFTER);
    assert!(delivered.elapsed() < AGAIN_AFTER + Duration::from_secs(5));
    assert_eq!(manager.get(&token, &format!("{COMMANDS}/{}", first[0])).expect(200)["status"], "succeeded");
}

#[test]
fn many_polls_at_two_gateways_get_each_command_once_and_sequences_have_no_gap() {
    let folder = Folder::new("scale-many");
    let token = folder.token("acme");
    let (here, there) = (folder.serve(), folder.serve());
    let agent = here.cluster(&token, "prod");
    let (count, started) = (120, Instant::now());
    let operators = [&here, &there].map(|manager| {
        let (rest, token) = (manager.rest.clone(), token.clone());
        thread::spawn(move || {
            let body = br#"{"operation":"inventory.report","arguments":{}}"#;
            let queue = || rest.send("POST", &token, COMMANDS, body.to_vec()).unwrap().expect(201);
            (0..count / 2).map(|_| queue()["sequence"].as_u64().unwrap()).collect::<Vec<u64>>()
        })
    });
    let polls = [&here, &there, &here, &there].map(|manager| {
        let agent = agent.at(manager);
        thread::spawn(move || {
            let mut found = Vec::new();
            while started.elapsed() < NOT_AGAIN_IN {
                found.extend(agent.polled(1));
            }
            found
        })
    });
    let sequences: Vec<u64> = operators.into_iter().flat_map(|operator| operator.join().unwrap()).collect();
    assert_eq!(sequences.iter().copied().collect::<BTreeSet<u64>>(), (1..=count).collect());
    let delivered: Vec<String> = polls.into_iter().flat_map(|poll| poll.join().unwrap()).collect();
    let distinct: BTreeSet<&String> = delivered.iter().collect();
    assert_eq!((delivered.len(), distinct.len()), (120, 120));
}

#[test]
fn while_the_tables_are_locked_nothing_is_acknowledged() {
    let folder = Folder::new("scale-locked");
    let token = folder.token("acme");
    let manager = folder.serve();
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let runtime = runtime();
    let url = folder.database().unwrap();
    let mut other = runtime.block_on(PgConnection::connect(url)).unwrap();
    let lock = "BEGIN; LOCK TABLE commands IN ACCESS EXCLUSIVE MODE";
    runtime.block_on(sqlx::raw_sql(lock).execute(&mut other)).unwrap();
    let body = json!({ "operation": "inventory.report", "arguments": {} });
    let started = Instant::now();
    let refused = manager.post(&token, COMMANDS, &body);
    assert_eq!((refused.status, refused.retry_after.as_deref()), (503, Some("5")), "{refused:?}");
    assert_eq!(agent.receipt(&receipt(&queued, "succeeded", true)).status, 503);
    assert!(started.elapsed() < Duration::from_secs(25));
    runtime.block_on(sqlx::raw_sql("ROLLBACK").execute(&mut other)).unwrap();
    assert_eq!(manager.queue(&token, "prod")["sequence"], 2, "what was refused took a sequence");
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
}

#[test]
fn while_the_server_is_stopped_calls_are_refused_in_time_and_afterwards_all_goes_on() {
    let server = Server::start("stopped");
    let folder = Folder::on("scale-stopped", server.database("stopped"));
    let token = folder.token("acme");
    let manager = folder.serve();
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let receipt = receipt(&queued, "succeeded", true);
    let body = json!({ "operation": "inventory.report", "arguments": {} });
    server.pause();
    let started = Instant::now();
    thread::scope(|scope| {
        let refused = [
            scope.spawn(|| manager.post(&token, COMMANDS, &body)),
            scope.spawn(|| manager.get("", "/healthz")),
            scope.spawn(|| agent.receipt(&receipt)),
            scope.spawn(|| agent.poll(0)),
        ];
        for (refused, kind) in refused.into_iter().zip(["problem+json", "problem+json", "json", "json"]) {
            let refused = refused.join().unwrap();
            assert_eq!((refused.status, refused.retry_after.as_deref()), (503, Some("5")), "{refused:?}");
            assert_eq!(refused.content_type, format!("application/{kind}"));
        }
    });
    assert!(started.elapsed() < Duration::from_secs(20));
    server.resume();
    until("the receipt is taken", || (agent.receipt(&receipt).status == 200).then_some(()));
    let next = until("it queues", || {
        Some(manager.post(&token, COMMANDS, &body)).filter(|answer| answer.status == 201)
    });
    // Nothing was answered, and what was on its way may have been done all the same: once.
    assert!(next.body["sequence"].as_u64().unwrap() <= 3, "{next:?}");
    assert_eq!(manager.command(&token, "prod", &queued)["status"], "succeeded");
}

#[test]
fn while_the_server_is_away_nothing_is_acknowledged_and_afterwards_all_goes_on() {
    let server = Server::start("away");
    let folder = Folder::on("scale-away", server.database("away"));
    let token = folder.token("acme");
    let (here, there) = (folder.serve(), folder.serve());
    let agent = here.cluster(&token, "prod");
    let body = json!({ "operation": "inventory.report", "arguments": {} });
    server.process.kill9();
    let started = Instant::now();
    let refused = here.post(&token, COMMANDS, &body);
    assert_eq!((refused.status, refused.retry_after.as_deref()), (503, Some("5")), "{refused:?}");
    assert_eq!(agent.poll(0).status, 503);
    assert_eq!(here.get("", "/healthz").status, 503);
    assert!(started.elapsed() < LIMIT);
    server.process.start_again();
    server.wait_ready();
    until("the manager has the database again", || (here.get("", "/healthz").status == 200).then_some(()));
    let queued =
        until("it queues", || Some(here.post(&token, COMMANDS, &body)).filter(|answer| answer.status == 201));
    assert_eq!(queued.body["sequence"], 1, "what was refused took a sequence");
    let polled = until("the other manager delivers", || {
        let answer = agent.at(&there).poll(0);
        let commands = answer.body["commands"].as_array().cloned().unwrap_or_default();
        commands.first().map(|command| command["payload"]["command_id"].clone())
    });
    assert_eq!(polled, queued.body["command_id"]);
    // Word between the two comes through again.
    until("what is queued here wakes the poll there", || {
        let waiting = agent.at(&there);
        let poll = thread::spawn(move || (waiting.polled(30), Instant::now()));
        for _ in 0..5 {
            there.get(&token, "/api/v1/clusters/prod").expect(200);
        }
        here.queue(&token, "prod");
        let since = Instant::now();
        let (_, at) = poll.join().unwrap();
        (at.saturating_duration_since(since) < Duration::from_millis(150)).then_some(())
    });
}
