//! When a certificate ends (RFC 5280 section 4.1.2.5): the one thing that the agent reads of its own
//! certificate, to warn in time. Trust in certificates is decided by rustls alone.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

#[cfg(test)]
mod tests;

/// Time left on a certificate below which people are told: enough for whoever reads about it once a week.
pub const EXPIRING: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Whether a certificate that ends at `end` is to be replaced soon, or has ended already.
#[must_use]
pub fn is_expiring(end: Timestamp, now: Timestamp) -> bool {
    end.duration_since(now) < EXPIRING
}

/// `notAfter` of a DER certificate, or none where it is not of the expected form.
#[must_use]
pub fn not_after(der: &[u8]) -> Option<Timestamp> {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = element(der, SEQUENCE)?;
    let (_, mut fields, _) = element(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields, VERSION)?.2;
    }
    // serialNumber, signature and issuer come before validity.
    for tag in [0x02, SEQUENCE, SEQUENCE] {
        fields = element(fields, tag)?.2;
    }
    let (_, validity, _) = element(fields, SEQUENCE)?;
    let not_before = *validity.first()?;
    let rest = element(validity, not_before)?.2;
    let (tag, text, _) = element(rest, *rest.first()?)?;
    time(tag, std::str::from_utf8(text).ok()?)
}

/// One DER element with the given tag: tag, contents, and what follows.
fn element(bytes: &[u8], tag: u8) -> Option<(u8, &[u8], &[u8])> {
    let (&found, bytes) = bytes.split_first()?;
    let (&first, bytes) = bytes.split_first()?;
    if found != tag {
        return None;
    }
    let (length, bytes) = if first < 0x80 {
        (usize::from(first), bytes)
    } else {
        let (digits, bytes) = bytes.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0_usize, |length, &digit| (length << 8) | usize::from(digit)), bytes)
    };
    let (contents, rest) = bytes.split_at_checked(length)?;
    Some((found, contents, rest))
}

/// `UTCTime` (`YYMMDDHHMMSSZ`, 1950 to 2049) or `GeneralizedTime` (`YYYYMMDDHHMMSSZ`).
fn time(tag: u8, text: &str) -> Option<Timestamp> {
    const UTC_TIME: u8 = 0x17;
    const GENERALIZED_TIME: u8 = 0x18;
    let text = match tag {
        UTC_TIME if text.get(..1)? < "5" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let text = text.strip_suffix('Z')?;
    let time = DateTime::strptime("%Y%m%d%H%M%S", text).ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}
