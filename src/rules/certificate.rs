//! When people are told that a certificate ends. Trust in certificates is decided by rustls alone.

use jiff::{SignedDuration, Timestamp};

/// Time left on a certificate below which people are told: enough for whoever reads about it once a week.
pub const EXPIRING: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Whether a certificate that ends at `end` is to be replaced soon, or has ended already.
#[must_use]
pub fn is_expiring(end: Timestamp, now: Timestamp) -> bool {
    end.duration_since(now) < EXPIRING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_from_thirty_days_before_the_end_on() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let end = time("2026-12-31T12:00:00Z");
        for (now, told) in [
            ("2026-12-01T12:00:00Z", false),
            ("2026-12-01T12:00:01Z", true),
            ("2026-12-31T12:00:00Z", true),
            ("2027-02-01T00:00:00Z", true),
            ("2025-01-01T00:00:00Z", false),
        ] {
            assert_eq!(is_expiring(end, time(now)), told, "{now}");
        }
    }
}
