//! How long to pause after a failure. CONTRACT section 4.

use super::json::MAX_NUMBER;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use std::time::Duration;

/// Shortest pause, in milliseconds.
const MIN_MS: u64 = 1_000;

/// Longest pause, in milliseconds.
const MAX_MS: u64 = 30_000;

/// The shortest pause after a `Retry-After`: 0 and dates in the past make no hot loop.
pub const MIN_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The longest `Retry-After` that is honoured: 60 s.
pub const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// Exponential backoff with full jitter: each pause is anywhere from 1 s to a ceiling that doubles,
/// 2 s to 30 s. By default there was no failure yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after one more failure, with any random number.
    pub fn next(&mut self, random: u64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let ceiling = MIN_MS.saturating_mul(2_u64.saturating_pow(self.failures)).min(MAX_MS);
        let width = ceiling.saturating_sub(MIN_MS).saturating_add(1);
        let jitter = random.checked_rem(width).unwrap_or(0);
        Duration::from_millis(MIN_MS.saturating_add(jitter))
    }

    /// A success: the next failure is the first.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// How many failures there were since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// What a `Retry-After` asks for, in seconds or as a date, 1 s to 60 s. `None` where there is none
/// that can be read. RFC 9110 section 10.2.3.
#[must_use]
pub fn retry_after(header: Option<&str>, now: Timestamp) -> Option<Duration> {
    let text = header?.trim();
    let asked = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds are a long time, too.
        Duration::from_secs(text.parse().unwrap_or(MAX_NUMBER))
    } else {
        // A date that is past asks for nothing.
        Duration::try_from(http_date(text)?.duration_since(now)).unwrap_or(Duration::ZERO)
    };
    Some(asked.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER))
}

/// An HTTP date as all of today's servers write it, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110
/// section 5.6.7). Deviation: the two obsolete forms are not read.
#[must_use]
pub fn http_date(text: &str) -> Option<Timestamp> {
    const PARSER: DateTimeParser = DateTimeParser::new();
    if !text.ends_with(" GMT") {
        return None;
    }
    PARSER.parse_timestamp(text).ok()
}

/// How far the clock of whoever sent this `Date` is ahead of ours, in milliseconds.
#[must_use]
pub fn clock_offset_ms(date: &str, now: Timestamp) -> Option<i64> {
    http_date(date).map(|date| date.as_millisecond().saturating_sub(now.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_between_one_and_thirty_seconds_and_grow() {
        for random in [0, 1, 999, 1_000, 12_345_678, u64::MAX] {
            let mut backoff = Backoff::default();
            for ceiling in [2, 4, 8, 16, 30, 30, 30] {
                let pause = backoff.next(random);
                assert!((Duration::from_secs(1)..=Duration::from_secs(ceiling)).contains(&pause));
            }
            for _ in 0..100 {
                assert!(backoff.next(random) <= Duration::from_secs(30));
            }
            backoff.reset();
            assert!(backoff.next(random) <= Duration::from_secs(2));
        }
        let spread: std::collections::BTreeSet<_> = (0..2_000_u64)
            .map(|n| Backoff { failures: 9 }.next(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        assert!(spread.len() > 1_500);
    }

    #[test]
    fn retry_after_is_read_in_both_forms_and_capped() {
        let now: Timestamp = "1994-11-06T08:49:00Z".parse().unwrap();
        let s = Duration::from_secs;
        for (header, wanted) in [
            (None, None),
            (Some(""), None),
            (Some("soon"), None),
            (Some("-1"), None),
            (Some("1.5"), None),
            (Some("0"), Some(s(1))),
            (Some(" 7 "), Some(s(7))),
            (Some("60"), Some(s(60))),
            (Some("3600"), Some(s(60))),
            (Some("99999999999999999999999999"), Some(s(60))),
            (Some("Sun, 06 Nov 1994 08:49:37 GMT"), Some(s(37))),
            (Some("Sun, 06 Nov 1994 08:48:37 GMT"), Some(s(1))),
            (Some("Fri, 31 Dec 9999 23:59:59 GMT"), None),
            (Some("Thu, 30 Dec 9999 21:59:59 GMT"), Some(s(60))),
            (Some("Sun, 06 Nov 1994 08:49:37 +0000"), None),
            (Some("Mon, 06 Nov 1994 08:49:37 GMT"), None),
        ] {
            assert_eq!(retry_after(header, now), wanted, "{header:?}");
        }
    }
}
