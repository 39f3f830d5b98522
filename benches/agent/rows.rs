//! What is measured, group by group, in the order of the table.

mod applies;
mod command;
mod drift;
mod failover;
mod growth;
mod rest;
mod size;
mod start;

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
    ("growth", growth::rows),
];

/// What a process of its own measures, since it is about that process: started by a row, by its name.
pub(crate) fn inner(name: &str) -> Option<fn(&[String])> {
    let _ = name;
    None
}
