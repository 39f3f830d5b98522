//! `#[serde(with = "json::plain")]` for a `Value` inside a derived type: read by our own visitor,
//! never by `serde_json::Value`'s, for the reasons in [`super`].

use super::{MAX_FOREIGN_DEPTH, Node, Reader};
use serde::de::{DeserializeSeed, Deserializer};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Writes the value as it is.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(value: &Value, target: S) -> Result<S::Ok, S::Error> {
    value.serialize(target)
}

/// Reads a value, duplicate member names refused, numbers of any size.
///
/// # Errors
/// Those of the deserializer, and what [`super::parse_foreign`] refuses.
pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Value, D::Error> {
    Node { reader: &Reader::new(MAX_FOREIGN_DEPTH, false, usize::MAX), depth: 0 }.deserialize(source)
}
