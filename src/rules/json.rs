//! Strict JSON in, canonical JSON (RFC 8785) out. CONTRACT section 2.
//!
//! Three readers share one visitor: [`parse`] for what is signed; [`parse_object`] for the API server's objects, which
//! anybody may have written; [`parse_foreign`] for short texts of peers, whose memory the caller bounds by their bytes.
//! (The state is read as its type, with the help of [`derived`].) None ever goes through `serde_json::Value`'s own
//! reader: that one keeps the last of duplicate members in silence, and turns an object whose first member is named
//! `$serde_json::private::RawValue` into something else.
//!
//! Numbers are normalised while they are read: an integral value becomes an integer, `-0` becomes
//! `0`. So equal numbers are equal `Value`s, and what is written again is canonical.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

mod canonical;
pub mod derived;
mod length;
#[cfg(test)]
mod tests;
mod weight;

pub use canonical::canonical;
pub use length::length;
pub use weight::{UNIT, weight, weight_of_members};

/// Largest envelope on the wire, in bytes. CONTRACT section 2.
pub const MAX_ENVELOPE_BYTES: usize = 256 * 1024;

/// Deepest nesting of arrays and objects, the outermost counted as one. CONTRACT section 2.
pub const MAX_DEPTH: usize = 64;

/// Largest magnitude of a number: 2^53-1. CONTRACT section 2.
pub const MAX_NUMBER: u64 = 9_007_199_254_740_991;

/// The same limit as a double, which holds it exactly.
const MAX_NUMBER_F64: f64 = 9_007_199_254_740_991.0;

/// Depth at which foreign JSON is refused; `serde_json` itself stops at 127.
const MAX_FOREIGN_DEPTH: usize = 120;

/// Heaviest text that is signed, in units of 32 bytes ([`weight()`]): 8 MiB. CONTRACT section 2.
pub const MAX_SIGNED_WEIGHT: usize = 256 * 1024;

/// Heaviest object of others, in units of 32 bytes ([`weight()`]): 32 MiB. Every spec that can be signed is lighter.
pub const MAX_OBJECT_WEIGHT: usize = 1024 * 1024;

/// Why a text is not JSON that we take. CONTRACT section 2, "parsing is strict".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonError {
    /// More bytes than the caller allows, or heavier than an object may be.
    TooLarge,
    /// It ends before its value does: more of it could make it JSON.
    CutOff,
    /// Not UTF-8.
    NotUtf8,
    /// Not JSON: bad syntax, a lone surrogate, a byte order mark, a number beyond a double, or
    /// anything after the value.
    Syntax,
    /// One object has two members of one name.
    DuplicateMember,
    /// Nested deeper than allowed.
    TooDeep,
    /// A number of magnitude above 2^53-1.
    NumberTooLarge,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "too many bytes, or too many values",
            Self::CutOff => "not one whole JSON value",
            Self::NotUtf8 => "not UTF-8",
            Self::Syntax => "not one JSON value",
            Self::DuplicateMember => "duplicate member name",
            Self::TooDeep => "nested too deep",
            Self::NumberTooLarge => "number above 2^53-1",
        })
    }
}

/// Reads strict I-JSON of at most `max_bytes`, and no heavier than [`MAX_SIGNED_WEIGHT`]. CONTRACT section 2.
///
/// # Errors
/// What the contract refuses as `invalid_envelope` for its JSON alone.
pub fn parse(bytes: &[u8], max_bytes: usize) -> Result<Value, JsonError> {
    read(bytes, max_bytes, &Reader::new(MAX_DEPTH, true, MAX_SIGNED_WEIGHT))
}

/// Reads JSON that others wrote, of which nobody makes much (a status, an error): as strict as [`parse`], but deeper,
/// and with numbers of any size, which stay as they are.
///
/// # Errors
/// Not JSON, duplicate member names, too many bytes, or nested too deep.
pub fn parse_foreign(bytes: &[u8], max_bytes: usize) -> Result<Value, JsonError> {
    read(bytes, max_bytes, &Reader::new(MAX_FOREIGN_DEPTH, false, usize::MAX))
}

/// Reads as [`parse_foreign`] what anybody may have written: it takes no more memory than [`MAX_OBJECT_WEIGHT`],
/// whatever its bytes become.
///
/// # Errors
/// Those of [`parse_foreign`]; too heavy is too large.
pub fn parse_object(bytes: &[u8], max_bytes: usize) -> Result<Value, JsonError> {
    parse_within(bytes, max_bytes, MAX_OBJECT_WEIGHT)
}

/// The same with another limit on the memory, in units of 32 bytes.
///
/// # Errors
/// Those of [`parse_object`].
pub fn parse_within(bytes: &[u8], max_bytes: usize, max_weight: usize) -> Result<Value, JsonError> {
    read(bytes, max_bytes, &Reader::new(MAX_FOREIGN_DEPTH, false, max_weight))
}

/// What is wrong with a text, and where. Nothing of the text: the library's own words quote it, at any length.
#[must_use]
pub fn fault(error: &serde_json::Error) -> String {
    format!("{:?} error at line {} column {}", error.classify(), error.line(), error.column())
}

fn read(bytes: &[u8], max_bytes: usize, reader: &Reader) -> Result<Value, JsonError> {
    if bytes.len() > max_bytes {
        return Err(JsonError::TooLarge);
    }
    // Without a length, a character is cut.
    let not_utf8 = |e: std::str::Utf8Error| e.error_len().map_or(JsonError::CutOff, |_| JsonError::NotUtf8);
    let text = str::from_utf8(bytes).map_err(not_utf8)?;
    let mut source = serde_json::Deserializer::from_str(text);
    let value = Node { reader, depth: 0 }.deserialize(&mut source).map_err(|e| {
        reader.error.get().unwrap_or(if e.is_eof() { JsonError::CutOff } else { JsonError::Syntax })
    })?;
    source.end().map_err(|_| JsonError::Syntax)?;
    Ok(value)
}

/// The number for a double: an integer where the double is one within 2^53-1.
fn float(value: f64) -> Option<Number> {
    if value.fract() == 0.0 && value.abs() <= MAX_NUMBER_F64 {
        // No `as`: the text of an integral double parses exactly. "-0" parses as 0.
        return format!("{value:.0}").parse::<i64>().ok().map(Number::from);
    }
    Number::from_f64(value)
}

/// The limits of one reading, and why it failed: serde's errors can carry only text.
struct Reader {
    max_depth: usize,
    bounded_numbers: bool,
    weight_left: Cell<usize>,
    error: Cell<Option<JsonError>>,
}

impl Reader {
    fn new(max_depth: usize, bounded_numbers: bool, max_weight: usize) -> Self {
        Self { max_depth, bounded_numbers, weight_left: Cell::new(max_weight), error: Cell::new(None) }
    }

    fn weigh<E: Error>(&self, weight: usize) -> Result<(), E> {
        let left =
            self.weight_left.get().checked_sub(weight).ok_or_else(|| self.fail(JsonError::TooLarge))?;
        self.weight_left.set(left);
        Ok(())
    }

    fn fail<E: Error>(&self, error: JsonError) -> E {
        self.error.set(Some(error));
        E::custom(error)
    }
}

/// One value at a depth: the seed and the visitor of it.
#[derive(Clone, Copy)]
struct Node<'r> {
    reader: &'r Reader,
    depth: usize,
}

impl<'r> Node<'r> {
    /// The node of what is inside this array or object.
    fn inside<E: Error>(self) -> Result<Node<'r>, E> {
        let depth = self.depth.saturating_add(1);
        if depth > self.reader.max_depth {
            return Err(self.reader.fail(JsonError::TooDeep));
        }
        Ok(Node { reader: self.reader, depth })
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        self.reader.weigh(1)?;
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        if self.reader.bounded_numbers && value > MAX_NUMBER {
            return Err(self.reader.fail(JsonError::NumberTooLarge));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        if self.reader.bounded_numbers && value.unsigned_abs() > MAX_NUMBER {
            return Err(self.reader.fail(JsonError::NumberTooLarge));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        if self.reader.bounded_numbers && value.abs() > MAX_NUMBER_F64 {
            return Err(self.reader.fail(JsonError::NumberTooLarge));
        }
        match float(value) {
            Some(number) => Ok(Value::Number(number)),
            None => Err(self.reader.fail(JsonError::Syntax)),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.reader.weigh(1)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.reader.weigh(1)?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut items = Vec::new();
        while let Some(item) = source.next_element_seed(inside)? {
            items.push(item);
        }
        // A list of one has room for four until now.
        items.shrink_to_fit();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut members = Map::new();
        while let Some(name) = source.next_key::<String>()? {
            self.reader.weigh(weight::member(members.len()))?;
            match members.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(source.next_value_seed(inside)?);
                }
                Entry::Occupied(_) => return Err(self.reader.fail(JsonError::DuplicateMember)),
            }
        }
        Ok(Value::Object(members))
    }
}
