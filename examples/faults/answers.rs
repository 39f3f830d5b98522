//! Answers that no good server gives.

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimePrinter};
use navin_test_support::{Fate, Raw};
use serde_json::json;
use std::time::Duration;

/// A page as a proxy in between shows it.
const PAGE: &str =
    "<!DOCTYPE html><html><head><title>Sign in</title></head><body>captive portal</body></html>";

/// An error of the shape that either side knows, with a `Retry-After`.
fn error(status: u16, retry_after: Option<String>) -> Fate {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
        "reason": "Scripted", "message": "scripted", "error": "scripted" });
    let retry_after = retry_after.map_or_else(String::new, |value| format!("Retry-After: {value}\r\n"));
    given(status, &format!("Content-Type: application/json\r\n{retry_after}"), &body.to_string())
}

fn given(status: u16, headers: &str, body: &str) -> Fate {
    let head = format!("HTTP/1.1 {status} Scripted\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    Fate::Raw(Raw { bytes: (head + body).into_bytes(), ..Raw::default() })
}

pub(crate) fn page(_: u64) -> Fate {
    given(200, "Content-Type: text/html\r\n", PAGE)
}

/// A gigabyte that is said to be JSON, and is not over before.
pub(crate) fn huge(_: u64) -> Fate {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n{";
    Fate::Raw(Raw { bytes: head.into(), spaces: 999_999_999, ..Raw::default() })
}

pub(crate) fn redirect(number: u64) -> Fate {
    let status = [301, 302, 307, 308][usize::try_from(number % 4).unwrap_or(0)];
    given(status, "Location: https://localhost:1/elsewhere\r\n", "")
}

pub(crate) fn unauthorized(_: u64) -> Fate {
    error(401, None)
}

pub(crate) fn forbidden(_: u64) -> Fate {
    error(403, None)
}

pub(crate) fn not_found(_: u64) -> Fate {
    error(404, None)
}

pub(crate) fn conflict(_: u64) -> Fate {
    error(409, None)
}

pub(crate) fn gone(_: u64) -> Fate {
    error(410, None)
}

fn seconds(status: u16) -> Fate {
    error(status, Some("3".to_owned()))
}

/// As a date (RFC 9110 section 5.6.7).
fn date(status: u16) -> Fate {
    let then = Timestamp::now().checked_add(SignedDuration::from_secs(4)).expect("a time near now");
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&then).expect("a date");
    error(status, Some(date))
}

/// What nobody means: a day, a number without end, something negative, words, dates at the ends of the calendar.
fn absurd(status: u16, number: u64) -> Fate {
    let values = [
        "86400",
        "99999999999999999999999999",
        "-5",
        "soon",
        "Thu, 30 Dec 9999 21:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "1e3",
    ];
    let value = values[usize::try_from(number % 7).unwrap_or(0)];
    error(status, Some(value.to_owned()))
}

pub(crate) fn busy_seconds(_: u64) -> Fate {
    seconds(429)
}

pub(crate) fn busy_date(_: u64) -> Fate {
    date(429)
}

pub(crate) fn busy_absurd(number: u64) -> Fate {
    absurd(429, number)
}

pub(crate) fn down_seconds(_: u64) -> Fate {
    seconds(503)
}

pub(crate) fn down_date(_: u64) -> Fate {
    date(503)
}

pub(crate) fn down_absurd(number: u64) -> Fate {
    absurd(503, number)
}

/// Nothing, for longer than anybody waits.
pub(crate) fn none(_: u64) -> Fate {
    Fate::Delay(Duration::from_mins(2))
}

/// What comes from whatever stands in between: an error of the server, pages, nothing at all.
pub(crate) fn broken(number: u64) -> Fate {
    match number % 4 {
        0 => error(500, None),
        1 => given(502, "Content-Type: text/html\r\n", PAGE),
        2 => given(503, "", ""),
        _ => given(504, "Content-Type: text/plain\r\n", "upstream timed out"),
    }
}

/// A head of a gigabyte, without an end.
pub(crate) fn endless_head(_: u64) -> Fate {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Padding: ";
    Fate::Raw(Raw { bytes: head.into(), spaces: 1_000_000_000, ..Raw::default() })
}

/// Nothing at all: what was asked is done, and the connection ends.
pub(crate) fn lost(_: &[u8]) -> Raw {
    Raw::default()
}

/// The true answer twice, so that the second could be taken for that of the next call.
pub(crate) fn twice(answer: &[u8]) -> Raw {
    Raw { bytes: answer.repeat(2), keep: true, ..Raw::default() }
}

/// The true answer after one that is only informational (RFC 9110 section 15.2).
pub(crate) fn hinted(answer: &[u8]) -> Raw {
    let hint = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
    Raw { bytes: [hint, answer].concat(), keep: true, ..Raw::default() }
}

/// The true answer as the last one of its connection.
pub(crate) fn closing(answer: &[u8]) -> Raw {
    let line_end = answer.windows(2).position(|window| window == b"\r\n").map_or(answer.len(), |at| at + 2);
    let (line, rest) = answer.split_at(line_end);
    Raw { bytes: [line, b"Connection: close\r\n", rest].concat(), ..Raw::default() }
}

/// The true answer, a byte a second.
pub(crate) fn slow(answer: &[u8]) -> Raw {
    Raw { bytes: answer.to_vec(), pause: Duration::from_secs(1), ..Raw::default() }
}

/// The true answer without the second half of its body.
pub(crate) fn cut(answer: &[u8]) -> Raw {
    let body = answer.len() - body_at(answer);
    Raw { bytes: answer[..answer.len() - body.div_ceil(2)].to_vec(), ..Raw::default() }
}

/// The true answer, said to be half as long as it is.
pub(crate) fn understated(answer: &[u8]) -> Raw {
    let (head, body) = answer.split_at(body_at(answer));
    let head = String::from_utf8_lossy(head);
    let kept = |line: &&str| {
        let line = line.to_ascii_lowercase();
        !line.starts_with("content-length") && !line.starts_with("transfer-encoding")
    };
    let lines: Vec<&str> = head.trim_end().split("\r\n").filter(kept).collect();
    let head = format!("{}\r\nContent-Length: {}\r\n\r\n", lines.join("\r\n"), body.len() / 2);
    Raw { bytes: [head.as_bytes(), body].concat(), ..Raw::default() }
}

fn body_at(answer: &[u8]) -> usize {
    answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(answer.len(), |at| at + 4)
}
