//! The time, as the database keeps it and as the contract writes it.

use jiff::Timestamp;
use navin_cluster_agent::rules::names::format_time;

/// Milliseconds of a second.
pub(crate) const SECOND_MS: i64 = 1000;

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Now in whole seconds, as milliseconds since 1970.
pub(crate) fn now_whole_ms() -> i64 {
    now_ms().div_euclid(SECOND_MS).saturating_mul(SECOND_MS)
}

/// A time as the contract writes it: RFC 3339, whole seconds, `Z`.
pub(crate) fn text(ms: i64) -> String {
    format_time(Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX))
}
