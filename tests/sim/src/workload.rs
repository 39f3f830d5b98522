//! What people do: commands, hand edits, foreign objects, other writers' labels, and what a hostile gateway
//! sends again or makes up.

use crate::chance::{keyed, mix};
use crate::faults::SECOND;
use crate::files::{Paper, Target};
use serde_json::{Value, json};

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A command is approved: operation, component, spec, window in seconds.
    Approve(&'static str, Option<String>, Option<Value>, i64),
    /// A person changes a component's spec.
    EditSpec(String, i64),
    /// Another program changes a component's labels, or its status.
    Label(String, bool),
    /// A person deletes a component.
    Delete(String),
    /// A person makes an object by this name.
    Create(String),
    /// Somebody adds a finalizer.
    Hold(String),
    /// And takes all of them away.
    Let(String),
    /// Another program labels the Lease, or the state.
    LabelOurs(bool),
    /// The gateway delivers the envelope with this index again, so many times.
    Replay(usize, usize),
    /// The gateway delivers an envelope that was made up of the one with this index.
    Forge(usize, u8),
    /// A person fills a component's annotations to the last byte.
    Fill(String),
    /// Something happens to a file of the inbox.
    Inbox(Target, String, Paper),
}

/// The names of components that commands are about.
#[must_use]
pub fn name(index: usize) -> String {
    format!("component-{index}")
}

/// An object that no command ever names.
pub const FOREIGN: &str = "foreign";

/// The workload of a seed until `end`, each item with its number and time; with large specs where asked for.
#[must_use]
pub fn plan(seed: u64, end: u64, large: bool) -> Vec<(u64, u64, Item)> {
    let mut rng = keyed(seed, 0x1_0004);
    let names = if large { 8 } else { rng.usize(1..=4) };
    let commands = rng.usize(5..=30);
    let hands = if rng.bool() { rng.usize(0..10) } else { 0 };
    let hostile = if rng.bool() { rng.usize(0..12) } else { 0 };
    let mut plan = Vec::new();
    let mut at = rng.u64(0..20 * SECOND);
    let burst = rng.u32(0..100);
    for index in 0..commands {
        let name = name(rng.usize(0..names));
        let valid = [20, 60, 300, 900, 900, 900][rng.usize(0..6)];
        let item = match rng.u32(0..10) {
            0..6 => {
                let pad = if large { [1_000, 60_000, 180_000][rng.usize(0..3)] } else { 0 };
                let spec = spec(&mut rng, index, pad);
                Item::Approve("managedcomponent.apply", Some(name), Some(spec), valid)
            }
            6..9 => Item::Approve("managedcomponent.delete", Some(name), None, valid),
            _ => Item::Approve("inventory.report", None, None, valid),
        };
        plan.push((at, item));
        if rng.u32(0..100) >= burst {
            at += rng.u64(0..2 * end / commands as u64);
        }
        at = at.min(end);
    }
    for _ in 0..hands {
        let name = name(rng.usize(0..names));
        let item = match rng.u32(0..10) {
            9 => Item::Fill(name),
            0 => Item::EditSpec(name, rng.i64(0..1000)),
            1 => Item::Label(name, rng.bool()),
            2 => Item::Delete(name),
            3 => Item::Create(if rng.bool() { name } else { FOREIGN.to_owned() }),
            4 | 5 => Item::Hold(name),
            6 => Item::Let(name),
            _ => Item::LabelOurs(rng.bool()),
        };
        plan.push((rng.u64(0..end), item));
    }
    for _ in 0..hostile {
        let item = if rng.bool() {
            Item::Replay(rng.usize(0..commands), rng.usize(1..4))
        } else {
            Item::Forge(rng.usize(0..commands), rng.u8(0..4))
        };
        plan.push((rng.u64(0..end), item));
    }
    plan.sort_by_key(|(at, _)| *at);
    plan.into_iter().enumerate().map(|(index, (at, item))| (mix(0x3_0000, index as u64), at, item)).collect()
}

/// Few values, so that two commands at times ask for the same; `pad` bytes more.
pub(crate) fn spec(rng: &mut fastrand::Rng, index: usize, pad: usize) -> Value {
    let size = if rng.u32(0..4) == 0 { index } else { rng.usize(0..3) };
    let mut spec = json!({ "size": size });
    if rng.u32(0..3) == 0 {
        spec["replicas"] = json!(rng.u32(1..4));
    }
    if pad > 0 {
        spec["pad"] = json!("x".repeat(pad));
    }
    spec
}
