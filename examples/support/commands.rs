//! Many commands about a few components, and whether all came out as they must.

use navin_test_support::{Agent, World, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many components the commands are about.
pub(crate) const NAMES: u64 = 50;
/// Longest wait for a leader.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// A command at the manager.
pub(crate) struct Queued {
    pub(crate) command_id: String,
    /// The component, and its spec where it is an apply; none for an inventory.
    about: Option<(String, Option<Value>)>,
}

/// Queues the `number`th, for the manager's own time or so many seconds: two applies, then a delete, of one name after
/// another; now and then an inventory.
pub(crate) fn queue(world: &World, number: u64, valid_for_s: Option<u64>) -> Queued {
    let name = format!("c{:02}", number % NAMES);
    let (operation, arguments, about) = if number.is_multiple_of(97) {
        ("inventory.report", json!({}), None)
    } else if (number / NAMES) % 3 == 2 {
        ("managedcomponent.delete", json!({ "name": name }), Some((name, None)))
    } else {
        let spec = json!({ "number": number, "list": [number, { "text": "ü" }] });
        let arguments = json!({ "name": name, "spec": spec });
        ("managedcomponent.apply", arguments, Some((name, Some(spec))))
    };
    let (manager, cluster) = (&world.manager, world.cluster_id());
    let command_id = match valid_for_s {
        Some(seconds) => manager.command_valid_for(cluster, operation, &arguments, seconds),
        None => manager.command(cluster, operation, &arguments),
    };
    Queued { command_id, about }
}

/// The replica that holds the Lease and has written the state.
pub(crate) fn leader<'a>(world: &World, agents: &'a [Agent; 2]) -> &'a Agent {
    until("a leader", BOUND, || agents.iter().find(|agent| agent.rules(&world.namespace)))
}

/// What is not as it must be.
pub(crate) fn compare(world: &World, queued: &[Queued]) -> Vec<String> {
    let mut differences = Vec::new();
    let mut counts = BTreeMap::<String, u32>::new();
    let mut newest = BTreeMap::<&str, (u64, &Queued)>::new();
    let mut superseded = Vec::new();
    for command in queued {
        let shown = world.manager.command_status(world.cluster_id(), &command.command_id);
        let (status, receipt) = (shown["status"].as_str().unwrap_or("?"), &shown["receipt"]);
        let reason = receipt["reason"].as_str().unwrap_or("");
        *counts.entry(format!("{status} {reason}").trim().to_owned()).or_default() += 1;
        let others = shown["receipts"].as_array().into_iter().flatten().map(|kept| &kept["receipt"]);
        if others.clone().any(|other| other["recorded"] == true && other != receipt) {
            differences.push(format!("{} has two outcomes", command.command_id));
        }
        let sequence = shown["sequence"].as_u64().unwrap_or(0);
        match (&command.about, status, reason) {
            (None, "succeeded", _) => {}
            (Some((name, _)), "succeeded", _) => {
                let best = newest.entry(name).or_insert((sequence, command));
                if sequence > best.0 {
                    *best = (sequence, command);
                }
            }
            (Some((name, _)), "refused", "superseded") => superseded.push((name.as_str(), sequence)),
            (_, _, _) => differences.push(format!("{} is {status}: {receipt}", command.command_id)),
        }
    }
    for (outcome, count) in counts {
        println!("{count:>6} {outcome}");
    }
    for (name, sequence) in superseded {
        if newest.get(name).is_none_or(|(best, _)| *best < sequence) {
            differences.push(format!("{name}: {sequence} was superseded by nothing"));
        }
    }
    let state = world.namespace.state().expect("the agent's state");
    for (name, (sequence, command)) in newest {
        let wanted = command.about.as_ref().and_then(|(_, spec)| spec.as_ref());
        let live = world.namespace.component(name);
        if live.as_ref().map(|live| &live["spec"]) != wanted {
            differences.push(format!("{name} is {live:?}, and should be {wanted:?}"));
        }
        let written =
            live.as_ref().map(|live| &live["metadata"]["annotations"]["platform.navin.ai/sequence"]);
        if written.is_some_and(|text| text.as_str().and_then(|text| text.parse().ok()) != Some(sequence)) {
            differences.push(format!("{name} has the sequence {written:?}, not {sequence}"));
        }
        if state["components"][name]["succeeded"] != sequence {
            differences.push(format!("{name}: the state does not say {sequence}"));
        }
    }
    differences
}
