//! What must hold after each experiment, and over all of them.

use super::point::{Fault, Operation};
use crate::lab::{record, state};
use crate::wired::{COMPONENTS, state_in, writes_component, writes_state};
use navin_test_support::{Exchange, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What an operation makes of a component.
pub(super) fn spec(operation: Operation) -> Value {
    match operation {
        Operation::Replace => json!({ "replicas": 2, "list": [1, { "a": null }] }),
        Operation::Create | Operation::Delete | Operation::Inventory => json!({ "replicas": 1 }),
    }
}

/// One outcome, the same at the manager and in the state, and it is what the cluster shows. `fault` is what
/// the command met, if anything.
pub(super) fn outcome(
    world: &World,
    operation: Operation,
    name: &str,
    command_id: &str,
    fault: Option<Fault>,
) {
    let shown = world.manager.command_status(world.cluster_id(), command_id);
    assert_eq!(shown["status"], "succeeded", "{shown}");
    let receipts = shown["receipts"].as_array().expect("receipts");
    let receipt = &shown["receipt"];
    let recorded = receipts.iter().map(|kept| &kept["receipt"]).filter(|kept| kept["recorded"] == true);
    for kept in recorded {
        assert_eq!(kept, receipt, "sent twice, it is the same outcome");
    }
    let (nonce, kept) = record(&state(world), command_id).expect("it is recorded");
    assert_eq!(receipt["nonce"], nonce);
    assert_eq!(kept["phase"]["done"], json!({ "receipt": receipt, "acknowledged": true }));

    let sequence = shown["sequence"].as_u64().expect("a sequence");
    let desired = state(world)["components"][name].clone();
    let live = world.namespace.component(name);
    match operation {
        Operation::Create | Operation::Replace => {
            let live = live.expect("the component exists");
            let generation = if operation == Operation::Create { 1 } else { 2 };
            assert_eq!(live["spec"], spec(operation));
            assert_eq!(live["metadata"]["generation"], generation, "written once");
            let uid = &live["metadata"]["uid"];
            let result = json!({ "name": name, "uid": uid, "generation": generation, "changed": true });
            assert_eq!(receipt["result"], result);
            let annotations = &live["metadata"]["annotations"];
            assert_eq!(annotations["platform.navin.ai/command-id"], command_id);
            assert_eq!(annotations["platform.navin.ai/sequence"], sequence.to_string());
            let labels = json!({ "app.kubernetes.io/managed-by": "navin-cluster-agent" });
            assert_eq!(live["metadata"]["labels"], labels, "nothing had to be settled");
            assert_eq!(desired["succeeded"], sequence);
            assert_eq!(desired["desired"]["sequence"], sequence);
            assert_eq!(desired["desired"]["uid"], *uid);
            assert_eq!(desired["desired"]["generation"], generation);
        }
        Operation::Delete => {
            assert_eq!(live, None);
            assert_eq!(receipt["result"]["existed"], true, "{receipt}");
            assert_eq!(receipt["result"]["name"], name);
            assert_eq!(receipt["result"]["finalizing"], false);
            assert_eq!(desired["succeeded"], sequence);
            assert_eq!(desired["mark"]["sequence"], sequence);
            assert_eq!(desired.get("desired"), None);
        }
        Operation::Inventory => {
            assert_eq!(live, None);
            let revision = receipt["result"]["revision"].as_str().expect("a revision");
            assert_eq!(revision.len(), 64, "{receipt}");
            // What could not be read is not counted, and the command does not fail for it.
            let namespaces = &receipt["result"]["counts"]["namespaces"];
            let unread = namespaces.is_null() && fault == Some(Fault::AnswerLost);
            assert!(unread || namespaces.as_u64() > Some(3), "{receipt}");
        }
    }
}

/// No command is under way, and the namespace holds what commands asked for and nothing else.
pub(super) fn nothing_left(world: &World, expected: &BTreeMap<String, String>) {
    for (nonce, record) in state(world)["commands"].as_object().expect("records") {
        assert!(record["phase"]["accepted"].is_null(), "{nonce} is under way");
    }
    let live = world.cluster.admin().list(&world.namespace.components_path());
    let found: BTreeMap<String, String> = live
        .iter()
        .map(|object| {
            let metadata = &object["metadata"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&metadata["name"]), text(&metadata["annotations"]["platform.navin.ai/command-id"]))
        })
        .collect();
    assert_eq!(found, *expected);
}

/// Over all writes that took effect, in their order: one record a nonce, from accepted to done and never
/// back, its receipt never changed; terms rise; no component goes back to an older sequence.
pub(super) fn history(exchanges: &[Exchange]) {
    let mut effective: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.took_effect()).collect();
    effective.sort_by_key(|exchange| exchange.reply.as_ref().map(|reply| reply.at));
    let (mut receipts, mut term) = (BTreeMap::<String, Value>::new(), 0);
    for state in effective.iter().filter(|exchange| writes_state(exchange)).filter_map(|e| state_in(e)) {
        let written = state["term"].as_u64().expect("a term");
        assert!(written >= term, "the term went from {term} to {written}");
        term = written;
        let records = state["commands"].as_object().expect("records");
        for (nonce, first) in &receipts {
            let now = &records.get(nonce).expect("a record stays while its window is open")["phase"]["done"];
            assert_eq!(now["receipt"], *first, "the receipt of {nonce} changed");
        }
        for (nonce, record) in records {
            if let Some(done) = record["phase"].get("done") {
                receipts.entry(nonce.clone()).or_insert_with(|| done["receipt"].clone());
            }
        }
    }
    let mut sequences = BTreeMap::<String, u64>::new();
    for exchange in effective.iter().filter(|exchange| writes_component(exchange)) {
        let object = exchange.call.json();
        let annotation = &object["metadata"]["annotations"]["platform.navin.ai/sequence"];
        let Some(sequence) = annotation.as_str().and_then(|text| text.parse().ok()) else { continue };
        let name = object["metadata"]["name"].as_str().unwrap_or(COMPONENTS).to_owned();
        let last = sequences.insert(name.clone(), sequence).unwrap_or(0);
        assert!(sequence >= last, "{name} went from sequence {last} to {sequence}");
    }
}
