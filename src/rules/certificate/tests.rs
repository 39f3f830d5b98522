//! When real certificates end, and that nothing else is taken for one.

use super::*;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

fn ending(year: i32, month: u8, day: u8) -> Vec<u8> {
    let mut params = CertificateParams::new(["agent.example".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(year, month, day);
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

/// Where the `notAfter` of a certificate that ends at this text lies, its tag included.
fn position(der: &[u8], tag: u8, text: &str) -> usize {
    let length = u8::try_from(text.len()).unwrap();
    let wanted: Vec<u8> = [tag, length].into_iter().chain(text.bytes()).collect();
    der.windows(wanted.len())
        .position(|window| window == wanted)
        .expect("the time in the form that it must have")
}

#[test]
fn both_forms_of_a_time_are_read() {
    const UTC_TIME: u8 = 0x17;
    const GENERALIZED_TIME: u8 = 0x18;
    for (date, tag, text, wanted) in [
        ((2026, 11, 30), UTC_TIME, "261130000000Z", "2026-11-30T00:00:00Z"),
        ((2049, 12, 31), UTC_TIME, "491231000000Z", "2049-12-31T00:00:00Z"),
        ((2050, 1, 1), GENERALIZED_TIME, "20500101000000Z", "2050-01-01T00:00:00Z"),
        ((9999, 1, 1), GENERALIZED_TIME, "99990101000000Z", "9999-01-01T00:00:00Z"),
    ] {
        let der = ending(date.0, date.1, date.2);
        position(&der, tag, text);
        assert_eq!(not_after(&der), Some(wanted.parse().unwrap()), "{wanted}");
    }
}

#[test]
fn the_last_day_of_9999_is_no_end_that_anyone_need_be_warned_of() {
    // RFC 5280 section 4.1.2.5: "99991231235959Z" says that there is no well-defined end.
    assert_eq!(not_after(&ending(9999, 12, 31)), None);
}

#[test]
fn two_digits_of_a_year_are_those_of_1950_to_2049() {
    let der = ending(2049, 12, 31);
    let at = position(&der, 0x17, "491231000000Z");
    for (year, wanted) in [("00", "2000"), ("49", "2049"), ("50", "1950"), ("99", "1999")] {
        let mut der = der.clone();
        der[at + 2..at + 4].copy_from_slice(year.as_bytes());
        assert_eq!(not_after(&der), Some(format!("{wanted}-12-31T00:00:00Z").parse().unwrap()));
    }
}

#[test]
fn a_time_of_another_form_is_none() {
    let der = ending(2049, 12, 31);
    let at = position(&der, 0x17, "491231000000Z");
    for text in [
        "491331000000Z",
        "490230000000Z",
        "491231240000Z",
        "491231006000Z",
        "4912310000000",
        "49123100000 Z",
        "+91231000000Z",
    ] {
        let mut der = der.clone();
        der[at + 2..at + 15].copy_from_slice(text.as_bytes());
        assert_eq!(not_after(&der), None, "{text}");
    }
    for tag in [0x16, 0x18, 0x04, 0x00] {
        let mut der = der.clone();
        der[at] = tag;
        assert_eq!(not_after(&der), None, "tag {tag}");
    }
}

#[test]
fn an_element_of_another_tag_or_of_a_length_beyond_four_bytes_is_none() {
    let der = ending(2049, 12, 31);
    assert_eq!(der[..2], [0x30, 0x82], "a length of two bytes");
    let mut set = der.clone();
    set[0] = 0x31;
    assert_eq!(not_after(&set), None);
    for (length, taken) in [(3, true), (4, true), (5, false), (9, false)] {
        let mut long = vec![0x30, 0x80 | length];
        long.resize(usize::from(length), 0);
        long.extend_from_slice(&der[2..]);
        assert_eq!(not_after(&long).is_some(), taken, "{length} bytes");
    }
}

#[test]
fn what_is_cut_short_is_none() {
    let der = ending(2050, 1, 1);
    for length in 0..der.len() {
        assert_eq!(not_after(&der[..length]), None, "{length} of {} bytes", der.len());
    }
}

#[test]
fn no_change_of_one_byte_makes_a_panic() {
    let der = ending(2049, 12, 31);
    for at in 0..der.len() {
        for byte in [0x00, 0x01, 0x7f, 0x80, 0x84, 0x85, 0xff] {
            let mut changed = der.clone();
            changed[at] = byte;
            // Most changes lie in the key or the signature, which are not looked at.
            std::hint::black_box(not_after(&changed));
        }
    }
}

#[test]
fn garbage_is_none() {
    for garbage in [
        &b""[..],
        b"\0",
        b"-----BEGIN CERTIFICATE-----",
        &[0x30],
        &[0x30, 0x80],
        &[0x30, 0x81],
        &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
        &[0x30, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
        &[0x30, 0xff],
        &[0xff; 64],
        &[0x30; 64],
        &[0x30, 0x02, 0x30, 0x00],
        &[0x30, 0x04, 0x30, 0x02, 0xa0, 0x00],
    ] {
        assert_eq!(not_after(garbage), None, "{garbage:02x?}");
    }
}

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
