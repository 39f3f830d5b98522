//! The agent as the first process of its container, which the kernel sends no signal that it does not handle
//! (MaterializeInc/materialize#36872: SIGTERM has no effect in a distroless container).

use crate::cable::Cable;
use crate::lab::{BOUND, POD};
use crate::wired::Wired;
use navin_test_support::{Agent, AgentOptions, World, until};
use serde_json::json;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest that an ending may take.
const END: Duration = Duration::from_secs(5);

/// Starts it as process 1 of a namespace of processes.
fn first(options: AgentOptions) -> AgentOptions {
    // As whoever runs the tests may, root or not.
    let wrapper = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"];
    AgentOptions { wrapper: wrapper.map(Into::into).to_vec(), ..options }
}

/// The process number of the agent itself, outside of its namespace.
fn agent_pid(agent: &Agent) -> String {
    let parent = agent.process().pid();
    until("the agent's own process", BOUND, || {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        children.split_whitespace().next().map(str::to_owned)
    })
}

/// SIGTERM to the agent itself, so many times; it ends in time with code 0.
fn ends(agent: &Agent, times: usize) {
    let pid = agent_pid(agent);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:")).expect("NSpid");
    assert_eq!(inner.split_whitespace().next_back(), Some("1"), "it is the first there");
    let began = Instant::now();
    for _ in 0..times {
        // The second may come after the end.
        drop(Command::new("kill").args(["-TERM", &pid]).output().expect("kill"));
    }
    assert_eq!(agent.process().wait_exit(END), Some(0), "{}", agent.process().stderr_tail());
    assert!(began.elapsed() < END);
}

#[test]
fn pid_1_ends_at_sigterm_before_its_first_contact_with_anybody() {
    let world = World::start("pid-one", &json!({}));
    let options = AgentOptions { kube_api: Some("https://127.0.0.1:1".into()), ..world.agent_options(POD) };
    let agent = world.agent_with(first(options));
    agent.wait_log("starting version=", BOUND);
    ends(&agent, 1);
}

#[test]
fn pid_1_ends_at_one_sigterm_or_two_in_a_long_poll() {
    for times in [1, 2] {
        let wired = Wired::start("pid-one-poll", &json!({}));
        let replica = wired.replica_as(POD, first);
        let polls = |exchange: &navin_test_support::Exchange| exchange.call.path.contains("wait_s=");
        wired.wire.wait("a long poll", 0, BOUND, |e| polls(e) && e.forwarded.is_some());
        ends(&replica.agent, times);
    }
}

#[test]
fn pid_1_ends_at_sigterm_while_the_api_server_hangs() {
    let world = World::start("pid-one-cut", &json!({ "lease_duration_s": 3 }));
    let network = Cable::start(world.cluster.url());
    let options = AgentOptions { kube_api: Some(network.url()), ..world.agent_options(POD) };
    let agent = world.agent_with(first(options));
    agent.wait_leads(&world.namespace, BOUND);
    network.cut();
    agent.wait_log("lease not renewed", BOUND);
    ends(&agent, 1);
}
