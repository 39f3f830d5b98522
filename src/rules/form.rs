//! Reading the members of an object, each exactly once: what is missing, unknown or of another form
//! is told by the name of the member. CONTRACT section 2, "parsing is strict".

use super::names::parse_time;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::fmt;
use std::ops::RangeInclusive;

/// What is wrong with the form of a payload, and where. Holds no foreign text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormError {
    /// The path of the member, such as `payload.sequence`.
    pub member: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong with a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It is not there.
    Missing,
    /// It has a member that the contract does not know.
    UnknownMember,
    /// It is not what was expected.
    Expected(&'static str),
    /// A number outside its range.
    OutOfRange {
        /// The least allowed.
        min: u64,
        /// The greatest allowed.
        max: u64,
        /// What was there.
        found: i64,
    },
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.member)?;
        match self.problem {
            Problem::Missing => f.write_str(": missing"),
            Problem::UnknownMember => f.write_str(": unknown member"),
            Problem::Expected(what) => write!(f, ": expected {what}"),
            Problem::OutOfRange { min, max, found } => write!(f, ": expected {min} to {max}, found {found}"),
        }
    }
}

/// Says that a member is not what was expected.
pub(super) fn expected(member: &'static str, what: &'static str) -> FormError {
    FormError { member, problem: Problem::Expected(what) }
}

/// The members of one object, taken one by one; [`Members::end`] refuses what was not taken.
pub(super) struct Members<'v> {
    of: &'static str,
    map: &'v Map<String, Value>,
    taken: usize,
}

impl<'v> Members<'v> {
    /// The members of a value that must be an object.
    pub(super) fn of(member: &'static str, value: &'v Value) -> Result<Self, FormError> {
        let map = value.as_object().ok_or_else(|| expected(member, "an object"))?;
        Ok(Self::over(member, map))
    }

    /// The members of an object.
    pub(super) fn over(of: &'static str, map: &'v Map<String, Value>) -> Self {
        Self { of, map, taken: 0 }
    }

    /// Takes a member by the last part of its path, which is its name.
    pub(super) fn optional(&mut self, member: &'static str) -> Option<&'v Value> {
        let name = member.rsplit('.').next().unwrap_or(member);
        let value = self.map.get(name)?;
        self.taken = self.taken.saturating_add(1);
        Some(value)
    }

    /// Takes a member that must be there. Each name is asked for once.
    pub(super) fn value(&mut self, member: &'static str) -> Result<&'v Value, FormError> {
        self.optional(member).ok_or(FormError { member, problem: Problem::Missing })
    }

    /// Takes a text.
    pub(super) fn text(&mut self, member: &'static str) -> Result<&'v str, FormError> {
        self.value(member)?.as_str().ok_or_else(|| expected(member, "a text"))
    }

    /// Takes a text in the form that `parse` reads, which is `what`.
    pub(super) fn parsed<T>(
        &mut self,
        member: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
        what: &'static str,
    ) -> Result<T, FormError> {
        parse(self.text(member)?).ok_or_else(|| expected(member, what))
    }

    /// Takes a text that must be one certain text.
    pub(super) fn constant(&mut self, member: &'static str, wanted: &'static str) -> Result<(), FormError> {
        if self.text(member)? == wanted { Ok(()) } else { Err(expected(member, wanted)) }
    }

    /// Takes a time.
    pub(super) fn time(&mut self, member: &'static str) -> Result<Timestamp, FormError> {
        self.parsed(member, parse_time, "a time in RFC 3339 with Z")
    }

    /// Takes a whole number in a range; the default where it is absent.
    pub(super) fn number(
        &mut self,
        member: &'static str,
        default: Option<u64>,
        range: &RangeInclusive<u64>,
    ) -> Result<u64, FormError> {
        let value = match (self.optional(member), default) {
            (Some(value), _) => value,
            (None, Some(default)) => return Ok(default),
            (None, None) => return Err(FormError { member, problem: Problem::Missing }),
        };
        let found = value.as_i64().ok_or_else(|| expected(member, "a whole number"))?;
        match u64::try_from(found) {
            Ok(number) if range.contains(&number) => Ok(number),
            Ok(_) | Err(_) => {
                let (min, max) = (*range.start(), *range.end());
                Err(FormError { member, problem: Problem::OutOfRange { min, max, found } })
            }
        }
    }

    /// Refuses members that were not asked for.
    pub(super) fn end(self) -> Result<(), FormError> {
        if self.taken == self.map.len() {
            Ok(())
        } else {
            Err(FormError { member: self.of, problem: Problem::UnknownMember })
        }
    }
}
