//! What the scenarios share: bounds, clusters that are changed, and words for what is asserted.
//!
//! [`inbox`] and [`doctor`] speak to the agent past the manager; [`signer`] and [`gateway`] play the manager where
//! the real one would never do what a scenario needs, [`webhook`] somebody else in the cluster; [`wired`] and
//! [`cable`] are put between, where single calls or the network are to be broken; [`mount`] is a folder as the
//! kubelet makes one, and [`rights`] is what the agent's account may do.

pub(crate) mod cable;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod inbox;
pub(crate) mod mount;
pub(crate) mod rights;
pub(crate) mod signer;
pub(crate) mod webhook;
pub(crate) mod wired;

use navin_test_support::{Agent, Cluster, World, until};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Longest that a step may take on a loaded machine; a good one takes a fraction of it.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// The component's CRD.
pub(crate) const CRD: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/managedcomponents.platform.navin.ai";

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
    // A scenario that failed before says so itself, and takes no other with it.
    let guard = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let cluster = cluster.get_or_init(Cluster::start);
    cluster.install_cluster_wide();
    (cluster, guard)
}

/// Queues a command at the real manager; its `command_id`.
#[track_caller]
pub(crate) fn queue(world: &World, operation: &str, arguments: &Value) -> String {
    world.manager.command(world.cluster_id(), operation, arguments)
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

/// Deletes the component's CRD, and all components with it; the CRD, to be applied again when it is not served any more.
#[track_caller]
pub(crate) fn without_crd(world: &World) -> Value {
    let admin = world.cluster.admin();
    let (_, crd) = admin.get(CRD);
    assert_eq!(admin.delete(CRD).0, 200);
    let gone = || admin.get(CRD).0 == 404 && admin.get(&world.namespace.components_path()).0 != 200;
    until("the CRD to be gone", BOUND, || gone().then_some(()));
    json!({ "apiVersion": crd["apiVersion"], "kind": crd["kind"],
        "metadata": { "name": crd["metadata"]["name"] }, "spec": crd["spec"] })
}

/// Applies the CRD of [`without_crd`] again, until it is served.
#[track_caller]
pub(crate) fn with_crd_again(world: &World, crd: &Value) {
    let admin = world.cluster.admin();
    admin.apply(crd);
    let served = || admin.get(&world.namespace.components_path()).0 == 200;
    until("the CRD to be served again", BOUND, || served().then_some(()));
}

/// Makes a component that is being deleted, and that a finalizer holds until [`let_go`].
#[track_caller]
pub(crate) fn hold_in_deletion(world: &World, name: &str) {
    world.namespace.create_component(name, &json!({ "by": "hand" }));
    add_finalizer(world, name);
    world.cluster.admin().delete(&world.namespace.component_path(name));
    assert!(live(world, name)["metadata"]["deletionTimestamp"].is_string());
}

/// Changes a component's spec as somebody would who also has a label, an annotation and a finalizer of one's own
/// there.
#[track_caller]
pub(crate) fn touch_by_another(world: &World, name: &str, spec: &Value) {
    let metadata = json!({
        "labels": { "other.example/label": "kept" },
        "annotations": { "other.example/note": "kept" },
        "finalizers": [FINALIZER],
    });
    patch(world, name, &json!({ "metadata": metadata, "spec": spec }));
}

/// That what [`touch_by_another`] put on a component is there.
#[track_caller]
pub(crate) fn assert_kept_of_another(object: &Value) {
    let metadata = &object["metadata"];
    assert_eq!(metadata["labels"]["other.example/label"], "kept");
    assert_eq!(metadata["annotations"]["other.example/note"], "kept");
    assert_eq!(metadata["finalizers"], json!([FINALIZER]));
}

/// An Event with this reason that counts so many.
#[track_caller]
pub(crate) fn until_event(world: &World, reason: &str, count: u64) -> Value {
    until(&format!("the Event {reason} to count {count}"), 2 * BOUND, || {
        let mut events = world.namespace.events().into_iter();
        events.find(|event| event["reason"] == reason && event["count"].as_u64() >= Some(count))
    })
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

/// Waits until a component has this spec; the component.
#[track_caller]
pub(crate) fn until_spec(world: &World, name: &str, spec: &Value) -> Value {
    until("the component to be as it was signed", BOUND, || {
        world.namespace.component(name).filter(|object| object["spec"] == *spec)
    })
}

/// Queues an apply of `ingress`, which is held in deletion, and waits until a leader has accepted it; its
/// `command_id`.
#[track_caller]
pub(crate) fn held_apply(world: &World, agent: &Agent) -> String {
    agent.wait_leads(&world.namespace, BOUND);
    hold_in_deletion(world, "ingress");
    let arguments = json!({ "name": "ingress", "spec": { "replicas": 2 } });
    let command = queue(world, "managedcomponent.apply", &arguments);
    until_accepted(world, &command);
    command
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
        let (_, record) = record(&world.namespace.state()?, command_id)?;
        (!record["phase"]["accepted"].is_null()).then_some(record)
    })
}

/// Waits until a command is recorded as done; its record.
#[track_caller]
pub(crate) fn until_done(world: &World, command_id: &str) -> Value {
    until("the command to be done", BOUND, || {
        let (_, record) = record(&world.namespace.state()?, command_id)?;
        (!record["phase"]["done"].is_null()).then_some(record)
    })
}
