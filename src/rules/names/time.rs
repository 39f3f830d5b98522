//! `#[serde(with = …)]` for times. What is stored keeps its fraction: a `floor` that was rounded
//! down would let a command in again.

use super::parse_time;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes a time with all of its digits.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(time: &Timestamp, target: S) -> Result<S::Ok, S::Error> {
    target.collect_str(time)
}

/// Reads a time of the contract's form.
///
/// # Errors
/// Those of the deserializer, and another form.
pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Timestamp, D::Error> {
    parse_time(&String::deserialize(source)?).ok_or_else(|| D::Error::custom("not a time"))
}

/// The same for a time that may be absent, written as `null`.
pub mod optional {
    use super::{Deserialize, Deserializer, Error, Serializer, Timestamp, parse_time};

    /// Writes a time or `null`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(time: &Option<Timestamp>, target: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => target.collect_str(time),
            None => target.serialize_none(),
        }
    }

    /// Reads a time of the contract's form, or `null`.
    ///
    /// # Errors
    /// Those of the deserializer, and another form.
    pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Timestamp>, D::Error> {
        match Option::<String>::deserialize(source)? {
            Some(text) => parse_time(&text).map(Some).ok_or_else(|| D::Error::custom("not a time")),
            None => Ok(None),
        }
    }
}
