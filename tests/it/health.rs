//! `health` beside a running agent: alive is every thread that goes round, and nothing else.

use crate::cable::Cable;
use crate::doctor_lab::{Doctor, health};
use crate::inbox_lab;
use crate::lab::{BOUND, POD};
use navin_test_support::{AgentOptions, World, until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than a heartbeat is believed, and another is written.
const STALE: Duration = Duration::from_mins(1);

fn alive(run_dir: &Path) -> bool {
    health(run_dir).0 == Some(0)
}

/// The heartbeat as it was written last.
fn heartbeat(run_dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(run_dir.join(".health.json")).expect("a heartbeat")).expect("JSON")
}

#[test]
fn a_leader_and_a_follower_are_alive_and_a_stopped_process_is_not() {
    let world = World::start("health", &json!({}));
    let leader = inbox_lab::agent(&world);
    // Without an inbox it has a run folder.
    let run_dir = world.folder().join("run");
    fs::create_dir(&run_dir).expect("a run folder");
    let args = vec!["--run-dir".into(), run_dir.clone().into()];
    let follower = world.agent_with(AgentOptions { args, ..world.agent_options("agent-b") });
    for run_dir in [leader.inbox(), &run_dir] {
        until("it to be alive", BOUND, || alive(run_dir).then_some(()));
        let (_, line, stderr) = health(run_dir);
        assert!(line.starts_with("alive: ") && stderr.is_empty(), "{line} {stderr}");
    }
    let names = |run_dir: &Path| -> Vec<String> {
        let threads = heartbeat(run_dir)["threads"].as_array().expect("threads").clone();
        threads.iter().map(|thread| thread["name"].as_str().expect("a name").to_owned()).collect()
    };
    let mut all =
        vec!["leader", "lease", "watch", "poll", "outbox", "reporter", "events", "inbox", "identity"];
    assert_eq!(names(leader.inbox()), all);
    all.retain(|name| *name != "inbox");
    assert_eq!(names(&run_dir), all);

    let process = follower.process();
    process.pause();
    until("it to be found stopped", STALE, || (!alive(&run_dir)).then_some(()));
    let (code, stdout, stderr) = health(&run_dir);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("no heartbeat for ") && stderr.lines().count() == 1, "{stderr}");
    process.resume();
    until("it to be alive again", BOUND, || alive(&run_dir).then_some(()));
    assert!(alive(leader.inbox()));
}

#[test]
fn an_api_server_that_does_not_answer_is_no_reason_to_start_anew() {
    let world = World::start("health-cut", &json!({ "lease_duration_s": 3 }));
    let network = Cable::start(world.cluster.url());
    let mut options = inbox_lab::options(&world, POD);
    options.kube_api = Some(network.url());
    let agent = world.agent_with(options);
    agent.wait_leads(&world.namespace, BOUND);
    network.cut();
    let mut doctor = Doctor::of(&world, agent.inbox());
    doctor.kube_api = network.url();
    let began = Instant::now();
    let (message, _) = doctor.only_wrong("API server");
    assert!(message.contains("no connection") || message.contains("no answer"), "{message}");
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    // The threads go round: each call ends at its limit, and the next is begun.
    let first = heartbeat(agent.inbox())["written_at_ms"].as_u64().expect("a time");
    let later = until("two heartbeats more", Duration::from_secs(40), || {
        assert!(alive(agent.inbox()), "{:?}", health(agent.inbox()));
        let heartbeat = heartbeat(agent.inbox());
        (heartbeat["written_at_ms"].as_u64() > Some(first + 15_000)).then_some(heartbeat)
    });
    for thread in later["threads"].as_array().expect("threads") {
        // The leader thread, which leads no more, looks every 15 s.
        let most = if thread["name"] == "leader" { 18_000 } else { 8_000 };
        if thread["name"] == "lease" || thread["name"] == "leader" {
            assert!(thread["silent_ms"].as_u64() < Some(most), "{thread}");
        }
    }
    network.mend();
}

#[test]
fn who_writes_into_the_inbox_has_no_say_in_whether_the_agent_is_alive() {
    let world = World::start("health-apart", &json!({}));
    let run_dir = world.folder().join("run");
    fs::create_dir(&run_dir).expect("a run folder");
    let args = vec!["--run-dir".into(), run_dir.clone().into()];
    let agent = world.agent_with(AgentOptions { args, ..inbox_lab::options(&world, POD) });
    until("it to be alive", BOUND, || alive(&run_dir).then_some(()));
    for name in [".health.json", ".health.tmp"] {
        fs::create_dir_all(agent.inbox().join(name).join("in the way")).expect("a folder");
    }
    let written = || heartbeat(&run_dir)["written_at_ms"].as_u64().expect("a time");
    let first = written();
    until("two heartbeats more", Duration::from_secs(40), || (written() > first + 15_000).then_some(()));
    assert!(alive(&run_dir), "{:?}", health(&run_dir));
}
