//! Which commands go out, when, and how often.

use crate::support::{COMMANDS, id, receipt, served, until, woken_after};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn an_open_poll_answers_as_soon_as_a_command_is_queued() {
    let (_folder, token, manager) = served("open-poll");
    let agent = manager.cluster(&token, "prod");
    let waiting = agent.clone();
    let started = Instant::now();
    let poll = thread::spawn(move || waiting.poll(30));
    manager.until_online(&token, "prod");
    let queued = manager.queue(&token, "prod");
    assert_eq!(queued["sequence"], 1);
    let answer = poll.join().unwrap();
    assert!(started.elapsed() < Duration::from_secs(15), "not at once");
    assert!(answer.date.is_some(), "the agent learns the time from it");
    assert_eq!(answer.expect(200)["commands"][0], queued["envelope"]);
    assert_eq!(manager.command(&token, "prod", &queued)["status"], "delivered");
}

#[test]
fn an_open_poll_is_woken_and_does_not_only_look_once_a_second() {
    let (_folder, token, manager) = served("woken");
    let agent = manager.cluster(&token, "prod");
    let fastest = (0..5).map(|_| woken_after(&agent, &manager, &manager, &token)).min().unwrap();
    assert!(fastest < Duration::from_millis(500), "{fastest:?}");
}

#[test]
fn an_unanswered_command_is_delivered_again_after_15_seconds_and_not_sooner() {
    let (_folder, token, manager) = served("again");
    let agent = manager.cluster(&token, "prod");
    let queued = manager.queue(&token, "prod");
    let started = Instant::now();
    assert_eq!(agent.polled(0), [id(&queued)]);
    let delivered = Instant::now();
    assert!(agent.polled(0).is_empty());
    assert_eq!(agent.polled(30), [id(&queued)]);
    assert!(started.elapsed() >= Duration::from_secs(15));
    assert!(delivered.elapsed() < Duration::from_secs(20));
    assert_eq!(manager.command(&token, "prod", &queued)["deliveries"], 2);
}

/// Far less than after what time a command is delivered again in any case.
const AT_ONCE: Duration = Duration::from_secs(8);

#[test]
fn what_was_delivered_on_a_connection_that_ended_is_due_at_once_where_it_was_not_answered() {
    let (_folder, token, manager) = served("ended");
    let agent = manager.cluster(&token, "prod");
    let (dying, other) = (agent.replica(), agent.replica());
    let queued = [(); 3].map(|()| manager.queue(&token, "prod"));
    let started = Instant::now();
    assert_eq!(dying.polled(0), queued.each_ref().map(id));
    let later = manager.queue(&token, "prod");
    assert_eq!(other.polled(0), [id(&later)]);
    agent.receipt(&receipt(&queued[0], "succeeded", true)).expect(200);
    agent.receipt(&receipt(&queued[1], "refused", false)).expect(200);
    let waiting = agent.clone();
    let poll = thread::spawn(move || waiting.polled(30));
    drop(dying);
    assert_eq!(poll.join().unwrap(), [id(&queued[2])]);
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    assert_eq!(manager.command(&token, "prod", &queued[2])["deliveries"], 2);
    // Whose connection stays has what it took, and so has who took it since.
    assert!(agent.polled(1).is_empty());
    drop(other);
    assert_eq!(agent.polled(30), [id(&later)]);
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
}

#[test]
fn after_a_restart_every_unanswered_command_is_due() {
    let (folder, token, manager) = served("restart");
    let agent = manager.cluster(&token, "prod");
    let queued = [(); 3].map(|()| id(&manager.queue(&token, "prod")));
    assert_eq!(agent.polled(0), queued);
    assert!(agent.polled(0).is_empty());
    manager.kill();
    let manager = folder.serve();
    assert_eq!(agent.at(&manager).polled(0), queued);
}

#[test]
fn two_gateways_share_one_database_and_a_restart_of_one_spares_the_deliveries_of_the_other() {
    let (folder, token, manager) = served("two-gateways");
    let agent = manager.cluster(&token, "prod");
    let second = folder.agent_gateway();
    let (here, there) = (agent.clone(), agent.at(&second));
    // Queued in one process, found by the poll of another.
    let poll = thread::spawn({
        let there = there.clone();
        move || there.polled(30)
    });
    let queued = id(&manager.queue(&token, "prod"));
    assert_eq!(poll.join().unwrap(), [queued]);
    assert!(here.polled(0).is_empty(), "delivered twice");
    manager.kill();
    let manager = folder.serve();
    assert!(agent.at(&manager).polled(0).is_empty(), "the second gateway lives, and has delivered it");
}

#[test]
fn an_answer_holds_64_commands_in_order() {
    let (_folder, token, manager) = served("many");
    let agent = manager.cluster(&token, "prod");
    let queued: Vec<String> = (0..70).map(|_| id(&manager.queue(&token, "prod"))).collect();
    assert_eq!(agent.polled(0), queued[..64]);
    assert_eq!(agent.polled(0), queued[64..]);
}

#[test]
fn an_answer_holds_4_mib() {
    let (_folder, token, manager) = served("large");
    let agent = manager.cluster(&token, "prod");
    let spec = serde_json::json!({ "text": "x".repeat(250 * 1024) });
    for number in 0..20 {
        let arguments = serde_json::json!({ "name": format!("c{number}"), "spec": spec });
        let body = serde_json::json!({ "operation": "managedcomponent.apply", "arguments": arguments });
        manager.post(&token, COMMANDS, &body).expect(201);
    }
    let (first, second) = (agent.poll(0).expect(200), agent.poll(0).expect(200));
    assert!(first.to_string().len() <= 4 * 1024 * 1024);
    let count = |answer: &serde_json::Value| answer["commands"].as_array().unwrap().len();
    assert_eq!((count(&first), count(&first) + count(&second)), (16, 20));
}

#[test]
fn an_expired_command_is_shown_as_such_and_not_delivered() {
    let (_folder, token, manager) = served("expired");
    let agent = manager.cluster(&token, "prod");
    let body = serde_json::json!({ "operation": "inventory.report", "arguments": {}, "valid_for_s": 1 });
    let queued = manager.post(&token, COMMANDS, &body).expect(201);
    until("it expires", || (manager.command(&token, "prod", &queued)["status"] == "expired").then_some(()));
    assert!(agent.polled(0).is_empty());
    // What happened in the cluster counts for more than the manager's own word.
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
    assert_eq!(manager.command(&token, "prod", &queued)["status"], "succeeded");
}

#[test]
fn what_is_called_otherwise_than_in_the_contract_is_refused_and_delivers_nothing() {
    let (_folder, token, manager) = served("otherwise");
    let agent = manager.cluster(&token, "prod");
    let queued = id(&manager.queue(&token, "prod"));
    let called = |method: &str, path: &str| agent.send(method, path, Vec::new());
    for path in
        ["commands?wait_s=31", "commands?wait_s=-1", "commands?wait_s=x", "commands?wait_s=1&wait_s=1"]
    {
        assert_eq!(called("GET", path).expect(400)["error"], "malformed", "{path}");
    }
    for [method, path] in [["POST", "commands"], ["DELETE", "receipts"], ["GET", "report"]] {
        assert_eq!(called(method, path).expect(405)["error"], "method_not_allowed", "{method} {path}");
    }
    called("HEAD", "commands?wait_s=0").expect(405);
    for path in ["", "commands/", "Commands", "commands/1"] {
        assert_eq!(called("GET", path).expect(404)["error"], "not_found", "{path}");
    }
    assert_eq!(agent.polled(0), [queued]);
}
