//! Several managers and gateways side by side on one PostgreSQL.

use crate::support::{COMMANDS, Folder, LIMIT, id, receipt, served, until, woken_after};
use navin_test_support::Postgres;
use sqlx::{Connection, PgConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A command is not delivered again before this.
const AGAIN_AFTER: Duration = Duration::from_secs(15);

/// A time in which nothing is delivered twice, with room for a poll that is under way.
const NOT_AGAIN_IN: Duration = Duration::from_secs(11);

#[test]
fn what_is_queued_at_one_manager_wakes_the_poll_at_another() {
    let folder = Folder::new("scale-wake");
    let token = folder.token("acme");
    let (here, there) = (folder.serve(), folder.serve());
    let agent = here.cluster(&token, "prod");
    let fastest = (0..5).map(|_| woken_after(&agent, &here, &there, &token)).min().unwrap();
    // The polls' own look would take 500 ms on average.
    assert!(fastest < Duration::from_millis(150), "{fastest:?}");
}

#[test]
fn a_new_identity_at_one_manager_cuts_the_poll_at_another() {
    let folder = Folder::new("scale-revoke");
    let token = folder.token("acme");
    let (here, there) = (folder.serve(), folder.serve());
    let former = here.cluster(&token, "prod").at(&there);
    let waiting = former.clone();
    let poll = thread::spawn(move || waiting.poll(30));
    here.until_online(&token, "prod");
    let started = Instant::now();
    here.identity(&token, "prod");
    assert_eq!(poll.join().unwrap().expect(403)["error"], "identity_revoked");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(former.poll(0).expect(403)["error"], "identity_revoked");
}

#[test]
fn a_killed_gateway_loses_nothing_and_nothing_of_it_is_delivered_twice_within_15_seconds() {
    let (folder, token, manager) = served("scale-kill");
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
    let (count, over) = (120, Arc::new(AtomicBool::new(false)));
    let operators = [&here, &there].map(|manager| {
        let (rest, token) = (manager.rest.clone(), token.clone());
        thread::spawn(move || {
            let queue = || rest.queue(&token, "prod").unwrap().expect(201);
            (0..count / 2).map(|_| queue()["sequence"].as_u64().unwrap()).collect::<Vec<u64>>()
        })
    });
    let (sender, found) = mpsc::channel();
    let polls = [&here, &there, &here, &there].map(|manager| {
        let (agent, sender, over) = (agent.at(manager), sender.clone(), Arc::clone(&over));
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                for command in agent.polled(1) {
                    sender.send((command, asked, Instant::now())).unwrap();
                }
            }
        })
    });
    let sequences: Vec<u64> = operators.into_iter().flat_map(|operator| operator.join().unwrap()).collect();
    assert_eq!(sequences.iter().copied().collect::<BTreeSet<u64>>(), (1..=count).collect());
    let (mut delivered, mut end) = (BTreeMap::new(), Instant::now() + LIMIT);
    while let Ok((command, asked, at)) = found.recv_timeout(end.saturating_duration_since(Instant::now())) {
        let before: Option<Instant> = delivered.insert(command, asked);
        assert!(before.is_none_or(|before| at.duration_since(before) >= AGAIN_AFTER), "delivered twice");
        if before.is_none() && delivered.len() == 120 {
            end = Instant::now() + NOT_AGAIN_IN;
        }
    }
    assert_eq!(delivered.len(), 120);
    over.store(true, Ordering::Relaxed);
    for poll in polls {
        poll.join().unwrap();
    }
}

#[test]
fn while_the_tables_are_locked_nothing_is_acknowledged() {
    let (folder, token, manager) = served("scale-locked");
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = folder.database.as_ref().unwrap();
    let mut other = runtime.block_on(PgConnection::connect(url)).unwrap();
    let lock = "BEGIN; LOCK TABLE commands IN ACCESS EXCLUSIVE MODE";
    runtime.block_on(sqlx::raw_sql(lock).execute(&mut other)).unwrap();
    let started = Instant::now();
    let refused = manager.rest.queue(&token, "prod").unwrap();
    refused.expect_put_off(503, 5);
    assert_eq!(agent.receipt(&receipt(&queued, "succeeded", true)).status, 503);
    assert!(started.elapsed() < Duration::from_secs(25));
    runtime.block_on(sqlx::raw_sql("ROLLBACK").execute(&mut other)).unwrap();
    assert_eq!(manager.queue(&token, "prod")["sequence"], 2, "what was refused took a sequence");
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
}

#[test]
fn while_the_server_is_stopped_calls_are_refused_in_time_and_afterwards_all_goes_on() {
    let server = Postgres::start("stopped");
    let folder = Folder::on("scale-stopped", Some(server.database("stopped")));
    let token = folder.token("acme");
    let manager = folder.serve();
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let receipt = receipt(&queued, "succeeded", true);
    server.pause();
    let started = Instant::now();
    thread::scope(|scope| {
        let refused = [
            scope.spawn(|| manager.rest.queue(&token, "prod").unwrap()),
            scope.spawn(|| manager.get("", "/healthz")),
            scope.spawn(|| agent.receipt(&receipt)),
            scope.spawn(|| agent.poll(0)),
        ];
        for (refused, kind) in refused.into_iter().zip(["problem+json", "problem+json", "json", "json"]) {
            let refused = refused.join().unwrap();
            refused.expect_put_off(503, 5);
            assert_eq!(refused.content_type, format!("application/{kind}"));
        }
    });
    assert!(started.elapsed() < Duration::from_secs(20));
    server.resume();
    until("the receipt is taken", || (agent.receipt(&receipt).status == 200).then_some(()));
    let next = until("it queues", || {
        Some(manager.rest.queue(&token, "prod").unwrap()).filter(|answer| answer.status == 201)
    });
    // Nothing was answered, and what was on its way may have been done all the same: once.
    assert!(next.body["sequence"].as_u64().unwrap() <= 3, "{next:?}");
    assert_eq!(manager.command(&token, "prod", &queued)["status"], "succeeded");
}

#[test]
fn while_the_server_is_away_nothing_is_acknowledged_and_afterwards_all_goes_on() {
    let server = Postgres::start("away");
    let folder = Folder::on("scale-away", Some(server.database("away")));
    let token = folder.token("acme");
    let (here, there) = (folder.serve(), folder.serve());
    let agent = here.cluster(&token, "prod");
    server.kill9();
    let started = Instant::now();
    let refused = here.rest.queue(&token, "prod").unwrap();
    refused.expect_put_off(503, 5);
    assert_eq!(agent.poll(0).status, 503);
    assert_eq!(here.get("", "/healthz").status, 503);
    assert!(started.elapsed() < LIMIT);
    server.restart();
    until("the manager has the database again", || (here.get("", "/healthz").status == 200).then_some(()));
    let queued = until("it queues", || {
        Some(here.rest.queue(&token, "prod").unwrap()).filter(|answer| answer.status == 201)
    });
    assert_eq!(queued.body["sequence"], 1, "what was refused took a sequence");
    let polled = until("the other manager delivers", || {
        let answer = agent.at(&there).poll(0);
        let commands = answer.body["commands"].as_array().cloned().unwrap_or_default();
        commands.first().map(|command| command["payload"]["command_id"].clone())
    });
    assert_eq!(polled, queued.body["command_id"]);
    // Word between the two comes through again.
    agent.receipt(&receipt(&queued.body, "succeeded", true)).expect(200);
    until("what is queued here wakes the poll there", || {
        (woken_after(&agent, &here, &there, &token) < Duration::from_millis(150)).then_some(())
    });
}

#[test]
fn a_server_that_does_not_prove_who_it_is_is_given_no_password() {
    let (folder, other) = (Folder::on("scale-tls", None), Folder::on("scale-tls-other", None));
    for folder in [&folder, &other] {
        folder.serve().kill();
    }
    let file = |name: &str| std::fs::read_to_string(folder.join("data/tls").join(name)).unwrap();
    // The certificate of a manager will do: it is for 127.0.0.1.
    let server = Postgres::start_with_tls("tls", &file("server.crt"), &file("server.key"));
    let plain = Postgres::shared().database("scale-tls");
    let try_out = |url: &str, authority: &Folder| {
        let authority = authority.join("data/tls/ca.crt");
        let url = format!("{url}?sslmode=verify-full&sslrootcert={}", authority.display());
        let output = folder.run(&["token", "--create", "--tenant", "acme", "--database", &url]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let url = server.database("tls");
    assert_eq!(try_out(&url, &folder), (Some(0), String::new()));
    for ((code, told), why) in [
        (try_out(&url, &other), "invalid peer certificate"),
        (try_out(&url.replace("127.0.0.1", "127.0.0.2"), &folder), "refused"),
        (try_out(&plain, &folder), "does not support TLS"),
    ] {
        assert_eq!(code, Some(1), "{told}");
        assert!(told.starts_with("navin-manager: database ") && told.contains(why), "{told}");
    }
}

#[test]
fn a_server_that_refuses_the_connection_is_told_as_that() {
    let folder = Folder::on("scale-refused", Some("postgres://navin:secret@127.0.0.1:1/fleet".to_owned()));
    let output = folder.run(&["token", "list"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with("navin-manager: database fleet at 127.0.0.1:1: "), "{told}");
    assert!(told.contains("Connection refused") && told.lines().count() == 1, "{told}");
}
