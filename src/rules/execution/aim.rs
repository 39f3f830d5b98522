//! What a command wants of its component, and what may have been done for it.

use crate::rules::messages::Operation;
use serde_json::{Map, Value};

/// What a command wants of its component.
#[derive(Clone, Debug)]
pub enum Aim {
    /// That it stands with this spec.
    Apply(Map<String, Value>),
    /// That it is gone.
    Delete,
}

/// What a former leader may have done for a command before us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing: it was accepted here.
    Nothing,
    /// A write, which is unanswered.
    MayHaveWritten,
    /// The same, and it may be a create.
    MayHaveCreated,
}

impl Before {
    /// For a command that asks for `operation`; `recovered` where a former leader may have begun it.
    #[must_use]
    pub fn of(operation: &Operation, recovered: bool) -> Self {
        match (recovered, operation.may_create()) {
            (false, _) => Self::Nothing,
            (true, false) => Self::MayHaveWritten,
            (true, true) => Self::MayHaveCreated,
        }
    }
}
