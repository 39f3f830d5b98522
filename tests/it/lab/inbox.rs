//! What the scenarios of the inbox share: putting files into it, and waiting for what comes beside them.

use crate::gateway::Scripted;
use crate::lab::{BOUND, POD};
use navin_test_support::{Agent, AgentOptions, World, cargo_binary, until};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What starts a replica with an inbox of its own.
pub(crate) fn options(world: &World, pod: &str) -> AgentOptions {
    let envs = vec![("RUST_LOG".to_owned(), "info,navin_cluster_agent::inbox=debug".to_owned())];
    AgentOptions {
        inbox: Some(world.folder().join(format!("{pod}.inbox"))),
        envs,
        ..world.agent_options(pod)
    }
}

/// A replica with an inbox that leads.
pub(crate) fn agent(world: &World) -> Agent {
    let agent = world.agent_with(options(world, POD));
    agent.wait_leads(&world.namespace, BOUND);
    agent
}

/// The same in a world with a scripted gateway, which answers.
pub(crate) fn online(scripted: &Scripted) -> Agent {
    let agent = agent(&scripted.world);
    agent.wait_log("link=online", BOUND);
    agent
}

/// Puts a file into the inbox as one should: under another name, then renamed.
pub(crate) fn put(agent: &Agent, name: &str, content: impl AsRef<[u8]>) {
    let temporary = agent.inbox().join(format!("{name}.part"));
    fs::write(&temporary, content).expect("a file in the inbox");
    fs::rename(temporary, agent.inbox().join(format!("{name}.json"))).expect("its own name");
}

/// What is in the inbox besides who leads and the heartbeat.
pub(crate) fn left(agent: &Agent) -> Vec<String> {
    let entries = fs::read_dir(agent.inbox()).expect("the inbox");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name != ".status.json" && !name.starts_with(".health.")).collect()
}

/// Where the answer to a file comes.
pub(crate) fn receipt_path(agent: &Agent, name: &str) -> PathBuf {
    agent.inbox().join(format!("{name}.receipt.json"))
}

/// The answer to a file, if it is there; it is whole then.
pub(crate) fn receipt_now(agent: &Agent, name: &str) -> Option<Value> {
    let bytes = fs::read(receipt_path(agent, name)).ok()?;
    Some(serde_json::from_slice(&bytes).expect("an answer is whole when it is there"))
}

/// Waits for the answer to a file.
#[track_caller]
pub(crate) fn receipt(agent: &Agent, name: &str) -> Value {
    receipt_within(agent, name, BOUND)
}

/// Waits for the answer to a file, not longer than `bound`.
#[track_caller]
pub(crate) fn receipt_within(agent: &Agent, name: &str, bound: Duration) -> Value {
    until(&format!("the answer to {name}"), bound, || receipt_now(agent, name))
}

/// Puts a file and waits for its answer.
#[track_caller]
pub(crate) fn answer(agent: &Agent, name: &str, envelope: &Value) -> Value {
    put(agent, name, envelope.to_string());
    receipt(agent, name)
}

/// Runs `submit -` in the agent's container: exit code, standard output, standard error.
pub(crate) fn submit(inbox: &Path, wait_s: u64, command: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(cargo_binary("navin-cluster-agent"))
        .args(["submit", "-", "--wait-s", &wait_s.to_string(), "--inbox"])
        .arg(inbox)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("submit starts");
    child.stdin.take().expect("its input").write_all(command.as_bytes()).expect("it reads its input");
    let output = child.wait_with_output().expect("submit ends");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Registers and signs a command at the manager, which need not run, and has the file verified: what an
/// operator does before carrying it to a cluster.
pub(crate) fn signed(world: &World, operation: &str, arguments: &Value) -> Value {
    let envelope = world.manager.sign(world.tenant_id(), world.cluster_id(), operation, arguments);
    let file = world.folder().join("command.json");
    fs::write(&file, &envelope).expect("a command file");
    let verified = Command::new(cargo_binary("navin-cluster-agent"))
        .arg("verify")
        .arg(&file)
        .arg("--identity-dir")
        .arg(&world.identity_dir)
        .output()
        .expect("verify runs");
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    serde_json::from_str(&envelope).expect("an envelope")
}

/// The `command_id` of an envelope.
pub(crate) fn id(envelope: &Value) -> &str {
    envelope["payload"]["command_id"].as_str().expect("a command_id")
}
