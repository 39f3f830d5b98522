//! What a value takes of memory, which its text does not say: an object of one member is eight bytes of text, and a
//! whole node of a tree. The unit is 32 bytes: a value as it stands in a list, the least that is allocated for a text.

use serde_json::{Map, Value};

/// What one of weight is, in bytes.
pub const UNIT: usize = 32;
/// What a node of an object weighs: 11 names of 24 bytes, 11 values, and its own.
const NODE: usize = 20;
/// Members that fill a node at the least.
const NODE_MEMBERS: usize = 6;

/// What another member adds to an object of so many, without its value: its name, and every now and then a node.
pub(super) const fn member(before: usize) -> usize {
    if before.is_multiple_of(NODE_MEMBERS) { 1 + NODE } else { 1 }
}

/// How much memory a value takes, in units of 32 bytes, but for the bytes of its texts.
#[must_use]
pub fn weight(value: &Value) -> usize {
    let more = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => weight_of_members(members),
    };
    more.saturating_add(1)
}

/// What an object's members weigh.
#[must_use]
pub fn weight_of_members(members: &Map<String, Value>) -> usize {
    let each = members.values().enumerate();
    each.map(|(before, value)| weight(value).saturating_add(member(before))).sum()
}
