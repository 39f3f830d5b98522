//! What is measured, group by group, in the order of the table.

mod applies;
mod command;
mod drift;
mod failover;
mod gateway;
mod growth;
mod growth_nodes;
pub(crate) mod inventory;
pub(crate) mod rest;
mod size;
mod start;
pub(crate) mod verify;

use crate::Plan;
use crate::lab::Lab;
use crate::table::Row;

/// Measures a group of rows.
type Group = fn(&Lab, &Plan) -> Vec<Row>;

/// The groups, by the names that `--only` takes.
pub(crate) const GROUPS: &[(&str, Group)] = &[
    ("size", size::rows),
    ("rest", rest::rows),
    ("start", start::rows),
    ("failover", failover::rows),
    ("drift", drift::rows),
    ("applies", applies::rows),
    ("command", command::rows),
    ("inventory", inventory::rows),
    ("verify", verify::rows),
    ("growth", growth::rows),
    ("growth-nodes", growth_nodes::rows),
    ("gateway", gateway::rows),
];

/// What a process of its own measures, since it is about that process: started by a row, by its name.
pub(crate) fn inner(name: &str) -> Option<fn(&[String])> {
    match name {
        verify::INNER => Some(verify::inner),
        _ => None,
    }
}
