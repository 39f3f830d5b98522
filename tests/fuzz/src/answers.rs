//! A server whose answers are the bytes of a check.
//!
//! A text holds answers one after another, with a line of `%%` between two: a status, lines with headers, an empty
//! line, the body. Where the first line is no status, all of it is the body of a 200.

use jiff::Timestamp;
use navin_cluster_agent::clock::Clock;
use navin_cluster_agent::http::{Http, HttpError, Request, Response};
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Most requests that are answered: a list that never ends would be read for long.
const MOST: usize = 40;

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// `Retry-After`
    pub retry_after: Option<String>,
    /// `Date`
    pub date: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The answers of a text; at least one.
    #[must_use]
    pub fn all(bytes: &[u8]) -> Vec<Self> {
        const BETWEEN: &[u8] = b"\n%%\n";
        let mut answers = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
            answers.push(Self::read(&rest[..end]));
            rest = &rest[end + BETWEEN.len()..];
        }
        answers.push(Self::read(rest));
        answers
    }

    fn read(bytes: &[u8]) -> Self {
        let whole = || Self { status: 200, body: bytes.to_vec(), ..Self::default() };
        let Some((first, mut rest)) = line(bytes) else { return whole() };
        // What a status line can hold. RFC 9110 section 15.
        let Some(status) = first.parse().ok().filter(|status| (100..600).contains(status)) else {
            return whole();
        };
        let mut answer = Self { status, ..Self::default() };
        while let Some((header, after)) = line(rest) {
            rest = after;
            match header.split_once(':').map(|(name, value)| (name, value.trim().to_owned())) {
                Some(("date", value)) => answer.date = Some(value),
                Some(("retry-after", value)) => answer.retry_after = Some(value),
                Some(_) => {}
                None => break,
            }
        }
        answer.body = rest.to_vec();
        answer
    }

    /// Whether it is a success.
    #[must_use]
    pub fn succeeds(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The first line, where it can be of a head: visible ASCII and blanks.
fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let text = str::from_utf8(&bytes[..end]).ok()?;
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')).then_some((text, &bytes[end + 1..]))
}

/// How a body arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At most so many bytes at a time.
    InPieces(usize),
    /// The connection breaks after so many bytes.
    Broken(usize),
    /// The body ends, in order, after so many bytes.
    Ended(usize),
}

/// Where bytes are cut: everywhere where they are few, else at some places that they themselves decide.
pub fn cuts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let step = (bytes.len() / 24).max(1);
    let sum = bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    (sum % step..bytes.len()).step_by(step)
}

/// The server: gives its answers in order, over and over.
pub struct Server {
    answers: Vec<Answer>,
    arrival: Arrival,
    requests: Mutex<Vec<String>>,
}

impl Server {
    /// A server with these answers.
    #[must_use]
    pub fn new(answers: &[Answer], arrival: Arrival) -> Arc<Self> {
        Arc::new(Self { answers: answers.to_vec(), arrival, requests: Mutex::default() })
    }

    /// The paths that were asked for.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Http for Server {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() >= MOST {
            return Err(HttpError::Unsent("asked too often".to_owned()));
        }
        let answer = &self.answers[requests.len() % self.answers.len()];
        requests.push(request.path.clone());
        let Answer { status, retry_after, date, body } = answer.clone();
        Ok(Response {
            status,
            retry_after,
            date,
            body: Box::new(Body { bytes: body, at: 0, arrival: self.arrival }),
        })
    }
}

struct Body {
    bytes: Vec<u8>,
    at: usize,
    arrival: Arrival,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (end, most) = match self.arrival {
            Arrival::InPieces(most) => (self.bytes.len(), most),
            Arrival::Broken(end) | Arrival::Ended(end) => (end.min(self.bytes.len()), usize::MAX),
        };
        if self.at == end && matches!(self.arrival, Arrival::Broken(_)) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let count = (end - self.at).min(most).min(buffer.len());
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// A clock that stands at [`crate::envelope::NOW`].
pub struct Still;

impl Clock for Still {
    fn wall(&self) -> Timestamp {
        crate::envelope::NOW.parse().expect("a time")
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(1_000)
    }

    fn sleep(&self, _: Duration) {}

    fn random(&self) -> u64 {
        0
    }
}
