//! The names and numbers of the contract, each with one fallible constructor: what has one of these
//! types is well-formed. CONTRACT sections 1 and 2.

use super::json::MAX_NUMBER;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

pub mod time;

/// A text was not of the form that its type wants. Without the text: it may be anyone's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not of the form that the contract wants")
    }
}

/// A newtype over a text with one rule for its form.
macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $rule:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The one constructor: `None` where the text has another form.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                $rule(text).then(|| Self(text.to_owned()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Malformed;

            fn try_from(text: String) -> Result<Self, Malformed> {
                Self::parse(&text).ok_or(Malformed)
            }
        }
    };
}

text_type! {
    /// A tenant, cluster or namespace: an RFC 1123 label. CONTRACT section 1.
    Label, is_label
}
text_type! {
    /// The name of a component: an RFC 1123 subdomain. CONTRACT section 1.
    ComponentName, is_subdomain
}
text_type! {
    /// A nonce: 22 to 64 characters of `A-Z a-z 0-9 _ -`, used once. CONTRACT section 2.
    Nonce, is_nonce
}
text_type! {
    /// The manager's identifier of a command: UUID text. CONTRACT section 2.
    CommandId, is_uuid
}
text_type! {
    /// The identifier of an issued identity: UUID text. CONTRACT section 3.
    IdentityId, is_uuid
}
text_type! {
    /// A public key in lower-case hex: 64 digits. CONTRACT section 2.
    KeyId, is_key_id
}

/// The place of a command in the order of approval: 1 to 2^53-1. CONTRACT section 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64")]
pub struct Sequence(u64);

impl Sequence {
    /// The one constructor: `None` for 0 and above 2^53-1.
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (1..=MAX_NUMBER).contains(&number).then_some(Self(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u64> for Sequence {
    type Error = Malformed;

    fn try_from(number: u64) -> Result<Self, Malformed> {
        Self::new(number).ok_or(Malformed)
    }
}

/// Reads a time of the contract: RFC 3339 in UTC with upper-case `T` and `Z`, whole seconds or up to
/// nine digits of fraction, no leap second (it would be two times at once). CONTRACT section 1.
#[must_use]
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let (seconds, fraction) = text.strip_suffix('Z')?.split_at_checked("2026-11-30T12:00:00".len())?;
    let shaped = seconds.bytes().enumerate().all(|(position, byte)| match position {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        17 => (b'0'..=b'5').contains(&byte),
        _ => byte.is_ascii_digit(),
    });
    let digits = fraction.strip_prefix('.');
    let whole = fraction.is_empty();
    let fractional =
        digits.is_some_and(|d| (1..=9).contains(&d.len()) && d.bytes().all(|byte| byte.is_ascii_digit()));
    if shaped && (whole || fractional) { text.parse().ok() } else { None }
}

/// A time in the form of the contract, cut to whole seconds. CONTRACT section 1.
#[must_use]
pub fn format_time(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// Bytes in lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// Longest RFC 1123 label, in characters.
pub const MAX_LABEL: usize = 63;
/// Longest component name, in characters.
const MAX_SUBDOMAIN: usize = 253;
/// Shortest and longest nonce, in characters.
const NONCE: RangeInclusive<usize> = 22..=64;

/// RFC 1123 label: 1 to 63 of `a-z 0-9 -`, no hyphen at either end.
fn is_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && is_dashed(text)
}

/// RFC 1123 subdomain as Kubernetes checks it: at most 253 characters, parts of any length.
fn is_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN && text.split('.').all(is_dashed)
}

fn is_dashed(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn is_nonce(text: &str) -> bool {
    NONCE.contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// RFC 9562: 8-4-4-4-12 hexadecimal digits, of either case.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(position, byte)| match position {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_key_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_their_form_and_nothing_else() {
        for good in ["a", "0", "prod-eu-1", &"a".repeat(63)] {
            assert!(Label::parse(good).is_some(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "a ", "ä", "a\n", &"a".repeat(64)] {
            assert!(Label::parse(bad).is_none(), "{bad}");
        }
        for good in ["a", "a.b", "a-b.c", &"a".repeat(253)] {
            assert!(ComponentName::parse(good).is_some(), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "a/b", "A", "..", &"a".repeat(254)] {
            assert!(ComponentName::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn nonces_identifiers_and_sequences_are_bounded() {
        assert!(Nonce::parse(&"a".repeat(21)).is_none());
        assert!(Nonce::parse(&"a".repeat(22)).is_some());
        assert!(Nonce::parse(&"_-".repeat(32)).is_some());
        assert!(Nonce::parse(&"a".repeat(65)).is_none());
        assert!(Nonce::parse(&"ä".repeat(15)).is_none());
        assert!(CommandId::parse("c5cefdd8-0273-45c9-821e-7a607108e022").is_some());
        assert!(CommandId::parse("c5cefdd8-0273-45c9-821e-7a607108e02").is_none());
        assert!(CommandId::parse("c5cefdd8+0273-45c9-821e-7a607108e022").is_none());
        assert!(CommandId::parse("{c5cefdd8-0273-45c9-821e-7a607108e0}").is_none());
        assert!(KeyId::parse(&"0f".repeat(32)).is_some());
        assert!(KeyId::parse(&"0F".repeat(32)).is_none());
        assert!(Sequence::new(0).is_none());
        assert!(Sequence::new(MAX_NUMBER).is_some());
        assert!(Sequence::new(9_007_199_254_740_992).is_none());
    }

    #[test]
    fn a_time_is_rfc_3339_in_utc_with_a_capital_z() {
        for good in ["2026-11-30T12:00:00Z", "2026-11-30T12:00:00.5Z", "2024-02-29T23:59:59.123456789Z"] {
            assert!(parse_time(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "Z",
            "yesterday",
            "2026-11-30T12:00:00z",
            "2026-11-30t12:00:00Z",
            "2026-11-30 12:00:00Z",
            "2026-11-30T12:00:00+00:00",
            "2026-11-30T12:00:00",
            "2026-11-30T12:00Z",
            "2026-11-30T12:00:00.Z",
            "2026-11-30T12:00:00,5Z",
            "2026-11-30T12:00:00.1234567890Z",
            "2026-11-30T12:00:60Z",
            "2026-11-30T24:00:00Z",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "+002026-11-30T12:00:00Z",
            " 2026-11-30T12:00:00Z",
            "2026-11-30T12:00:00Z ",
            "2026-11-30T12:00:00Z[UTC]",
            "2026-11-30T12:00:0äZ",
        ] {
            assert!(parse_time(bad).is_none(), "{bad}");
        }
        let time = parse_time("2026-11-30T12:00:00.9Z").unwrap();
        assert_eq!(format_time(time), "2026-11-30T12:00:00Z");
    }
}
