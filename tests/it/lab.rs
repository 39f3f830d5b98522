//! What the scenarios share: bounds, clusters that are changed, and words for what is asserted.

use navin_test_support::{Cluster, World, until};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Longest that a step may take on a loaded machine; a good one takes a fraction of it.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// The name of every scenario's first replica.
pub(crate) const POD: &str = "agent-a";

/// Two control planes whose cluster-wide objects scenarios change, one scenario at a time.
#[derive(Clone, Copy)]
pub(crate) enum Changed {
    /// For what the inventory shows and who may read it.
    Inventory,
    /// For the schema of the component's CRD.
    Schema,
}

/// The control plane, for this scenario alone while the guard lives.
pub(crate) fn changed(which: Changed) -> (&'static Cluster, MutexGuard<'static, ()>) {
    static CLUSTERS: [OnceLock<Cluster>; 2] = [OnceLock::new(), OnceLock::new()];
    static TURNS: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
    let (cluster, turn) = match which {
        Changed::Inventory => (&CLUSTERS[0], &TURNS[0]),
        Changed::Schema => (&CLUSTERS[1], &TURNS[1]),
    };
    // A scenario that failed before says so itself.
    let guard = turn.lock().unwrap_or_else(PoisonError::into_inner);
    (cluster.get_or_init(Cluster::start), guard)
}

/// Queues a command at the real manager; its `command_id`.
#[track_caller]
pub(crate) fn queue(world: &World, operation: &str, arguments: &Value) -> String {
    let queued = world.manager.command(world.cluster_id(), operation, arguments);
    queued["command_id"].as_str().expect("a command_id").to_owned()
}

/// The outcome of a command at the real manager.
#[track_caller]
pub(crate) fn outcome(world: &World, command_id: &str) -> Value {
    world.manager.wait_command(world.cluster_id(), command_id, BOUND)
}

/// Applies through the real manager; the receipt, of success.
#[track_caller]
pub(crate) fn applied(world: &World, name: &str, spec: &Value) -> Value {
    succeeded(&world.apply(name, spec, BOUND))
}

/// The receipt of a command as the manager shows it, of success.
#[track_caller]
pub(crate) fn succeeded(command: &Value) -> Value {
    assert_eq!(command["status"], "succeeded", "{command}");
    command["receipt"].clone()
}

/// The receipt of a command as the manager shows it, failed or refused for this reason.
#[track_caller]
pub(crate) fn unsuccessful(command: &Value, status: &str, reason: &str) -> Value {
    assert_eq!(command["status"], status, "{command}");
    let receipt = command["receipt"].clone();
    assert_eq!(receipt["reason"], reason, "{receipt}");
    receipt
}

/// The component, which exists.
#[track_caller]
pub(crate) fn live(world: &World, name: &str) -> Value {
    world.namespace.component(name).unwrap_or_else(|| panic!("the component {name} exists"))
}

/// Changes the component as an administrator would by hand (merge patch).
#[track_caller]
pub(crate) fn patch(world: &World, name: &str, change: &Value) -> Value {
    let path = world.namespace.component_path(name);
    let (status, answer) = world.cluster.admin().patch(&path, change);
    assert_eq!(status, 200, "PATCH {path}: {answer}");
    answer
}

/// Makes a component that is being deleted, and that a finalizer holds until [`let_go`].
#[track_caller]
pub(crate) fn hold_in_deletion(world: &World, name: &str) {
    world.namespace.create_component(name, &json!({ "by": "hand" }));
    add_finalizer(world, name);
    world.cluster.admin().delete(&world.namespace.component_path(name));
    assert!(live(world, name)["metadata"]["deletionTimestamp"].is_string());
}

/// Somebody else's finalizer.
pub(crate) const FINALIZER: &str = "other.example/keep";

/// Puts [`FINALIZER`] on a component.
#[track_caller]
pub(crate) fn add_finalizer(world: &World, name: &str) {
    patch(world, name, &json!({ "metadata": { "finalizers": [FINALIZER] } }));
}

/// Takes the finalizers off a component.
#[track_caller]
pub(crate) fn let_go(world: &World, name: &str) {
    patch(world, name, &json!({ "metadata": { "finalizers": null } }));
}

/// The agent's state, which exists.
#[track_caller]
pub(crate) fn state(world: &World) -> Value {
    world.namespace.state().expect("the agent's state exists")
}

/// The record of a command in the agent's state, by the manager's identifier, with its nonce.
pub(crate) fn record(state: &Value, command_id: &str) -> Option<(String, Value)> {
    let commands = state["commands"].as_object().expect("recorded commands");
    let found = commands.iter().find(|(_, record)| record["command_id"] == command_id);
    found.map(|(nonce, record)| (nonce.clone(), record.clone()))
}

/// Waits until a command is recorded as accepted; its record.
#[track_caller]
pub(crate) fn until_accepted(world: &World, command_id: &str) -> Value {
    until("the command to be accepted", BOUND, || {
        let (_, record) = record(&state(world), command_id)?;
        (!record["phase"]["accepted"].is_null()).then_some(record)
    })
}

/// Waits until a command is recorded as done; its record.
#[track_caller]
pub(crate) fn until_done(world: &World, command_id: &str) -> Value {
    until("the command to be done", BOUND, || {
        let (_, record) = record(&state(world), command_id)?;
        (!record["phase"]["done"].is_null()).then_some(record)
    })
}
