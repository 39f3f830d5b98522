//! The manager's gateway (CONTRACT section 4): poll, receipt, report.
//!
//! Every body has its limit. What is not 200 with the contract's shape is a failure, and nothing but that makes us online.
//! Its `Date` counts for nothing but whether records may be dropped, and for what people are told.

mod answers;
mod probe;

pub use probe::Probe;

use crate::clock::Clock;
use crate::http::{Http, HttpError, Method, Request, Response};
use crate::rules::backoff::{clock_offset_ms, retry_after};
use crate::rules::json::{fault, parse_foreign};
use crate::rules::link::clock_trusted;
use crate::rules::messages::Receipt;
use crate::rules::report::Carrier;
use crate::threads::Shared;
use answers::{Commands, InventoryAnswer, POLL_MOST, Recorded, ReportAnswer};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Limit on a receipt's or report's exchange.
const POST_LIMIT: Duration = Duration::from_secs(30);
/// How much longer than the asked wait a poll may take.
const POLL_SLACK: Duration = Duration::from_secs(15);
/// Largest answer to a poll, in bytes: 4 MiB of envelopes, and what is around them.
const POLL_BYTES: usize = 5 * 1024 * 1024;
/// Largest answer to anything else, in bytes.
const ANSWER_BYTES: usize = 64 * 1024;
/// Longest code of an error that is kept, in characters.
const CODE_CHARS: usize = 64;

/// Why a call to the gateway did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayError {
    /// An answer other than 200.
    Status {
        /// The HTTP status.
        status: u16,
        /// `error` of its body, if it has one.
        code: String,
        /// `Retry-After`, as sent.
        retry_after: Option<String>,
    },
    /// No answer, or one of the wrong shape.
    Failed(String),
}

impl GatewayError {
    /// How long the gateway asks to be left alone, if it does.
    #[must_use]
    pub fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        match self {
            Self::Status { retry_after: told, .. } => retry_after(told.as_deref(), now),
            Self::Failed(_) => None,
        }
    }
}

impl std::fmt::Display for GatewayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status { status, code, .. } => write!(f, "the gateway answered {status} {code:?}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<HttpError> for GatewayError {
    fn from(error: HttpError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What is known of the manager from its answers; shared by the threads.
#[derive(Default)]
pub struct Contact(Shared<Seen>);

#[derive(Clone, Copy, Default)]
struct Seen {
    answered: Option<Duration>,
    offset: Option<(i64, Duration)>,
}

impl Contact {
    /// Waits until a request that was sent after `sent` (monotonic) was answered 200, at most `limit`.
    pub fn await_answer(&self, sent: Duration, limit: Duration) {
        self.0.wait_while(limit, |seen| seen.answered <= Some(sent));
    }

    /// A request that was sent then (monotonic) was answered 200.
    #[cfg(test)]
    pub(crate) fn note_answered(&self, sent: Duration) {
        self.0.tell(|seen| seen.answered = seen.answered.max(Some(sent)));
    }

    /// When the last request that was answered 200 was sent (monotonic).
    #[must_use]
    pub fn answered(&self) -> Option<Duration> {
        self.0.lock().answered
    }

    /// The gateway's clock less ours, in milliseconds, as last seen.
    #[must_use]
    pub fn clock_offset_ms(&self) -> Option<i64> {
        self.0.lock().offset.map(|(offset, _)| offset)
    }

    /// Whether the gateway's `Date` of the last minute is within 60 s of our clock.
    #[must_use]
    pub fn clock_trusted(&self, now: Duration) -> bool {
        self.0.lock().offset.is_some_and(|(offset, at)| clock_trusted(offset, now.saturating_sub(at)))
    }
}

/// A client of the gateway.
pub struct Gateway {
    http: Arc<dyn Http>,
    clock: Arc<dyn Clock>,
    /// What is known from the answers to whoever asked.
    pub contact: Arc<Contact>,
}

impl Gateway {
    /// A client over `http`, which carries the identity's certificate.
    #[must_use]
    pub fn new(http: Arc<dyn Http>, clock: Arc<dyn Clock>, contact: Arc<Contact>) -> Self {
        Self { http, clock, contact }
    }

    /// Asks for commands and waits up to `wait_s` seconds for one; each envelope keeps its own bytes.
    ///
    /// # Errors
    ///
    /// See [`GatewayError`].
    pub fn poll(&self, wait_s: u64) -> Result<Vec<Vec<u8>>, GatewayError> {
        let request = Request {
            method: Method::Get,
            path: format!("/v1/cluster-agent/commands?wait_s={wait_s}"),
            body: None,
            timeout: Duration::from_secs(wait_s).saturating_add(POLL_SLACK),
            limit: POLL_BYTES,
        };
        let answer: Commands = self.call(&request)?;
        if answer.commands.len() > POLL_MOST {
            return Err(GatewayError::Failed(format!("more than {POLL_MOST} commands in one answer")));
        }
        Ok(answer.commands.iter().map(|envelope| envelope.get().as_bytes().to_vec()).collect())
    }

    /// Hands over a receipt; true where it became the recorded one.
    ///
    /// # Errors
    ///
    /// See [`GatewayError`].
    pub fn receipt(&self, receipt: &Receipt) -> Result<bool, GatewayError> {
        let body = serde_json::to_vec(receipt).map_err(|e| GatewayError::Failed(e.to_string()))?;
        let answer: Recorded = self.call(&post("/v1/cluster-agent/receipts", body))?;
        Ok(answer.recorded)
    }

    /// Hands over a report; true where the manager wants the inventory with the next one.
    ///
    /// # Errors
    ///
    /// See [`GatewayError`].
    pub fn report(&self, report: &Carrier) -> Result<bool, GatewayError> {
        let body = report.to_json();
        let answer: ReportAnswer = self.call(&post("/v1/cluster-agent/report", body))?;
        Ok(answer.inventory == InventoryAnswer::Needed)
    }

    fn call<T: DeserializeOwned>(&self, request: &Request) -> Result<T, GatewayError> {
        let sent = self.clock.monotonic();
        let response = self.http.send(request)?;
        log::debug!("gateway method={:?} path={} status={}", request.method, request.path, response.status);
        if response.status != 200 {
            return Err(refusal(response));
        }
        let date = response.date.clone();
        let body = response.bytes()?;
        let answer = serde_json::from_slice(&body)
            .map_err(|e| format!("the answer is not of the contract's shape: {}", fault(&e)))
            .map_err(GatewayError::Failed)?;
        self.note_answer(sent, date.as_deref());
        Ok(answer)
    }

    fn note_answer(&self, sent: Duration, date: Option<&str>) {
        let offset = date.and_then(|date| clock_offset_ms(date, self.clock.wall()));
        self.contact.0.tell(|seen| {
            seen.answered = seen.answered.max(Some(sent));
            if let Some(offset) = offset {
                seen.offset = Some((offset, self.clock.monotonic()));
            }
        });
    }
}

fn post(path: &str, body: Vec<u8>) -> Request {
    Request {
        method: Method::Post,
        path: path.to_owned(),
        body: Some(body),
        timeout: POST_LIMIT,
        limit: ANSWER_BYTES,
    }
}

fn refusal(response: Response) -> GatewayError {
    let status = response.status;
    let retry_after = response.retry_after.clone();
    GatewayError::Status { status, code: error_code(response), retry_after }
}

/// `error` of a body that is of the contract's shape, else nothing.
fn error_code(response: Response) -> String {
    let body = response.bytes().ok().and_then(|body| parse_foreign(&body, ANSWER_BYTES).ok());
    let code = body.as_ref().and_then(|body| body.get("error")).and_then(Value::as_str).unwrap_or("");
    code.chars().take(CODE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HandClock;

    /// Answers with this status, in the contract's shape.
    struct Answering(u16);

    impl Http for Answering {
        fn send(&self, _: &Request) -> Result<Response, HttpError> {
            let body = Box::new(std::io::Cursor::new(b"{\"commands\":[]}"));
            Ok(Response { status: self.0, retry_after: None, date: None, body })
        }
    }

    #[test]
    fn no_status_but_200_is_an_answer_of_the_contract() {
        for status in [200, 201, 202, 204, 206, 299, 304] {
            let contact = Arc::new(Contact::default());
            let clock = Arc::new(HandClock::default());
            let polled = Gateway::new(Arc::new(Answering(status)), clock, Arc::clone(&contact)).poll(0);
            assert_eq!(
                (polled.is_ok(), contact.answered().is_some()),
                (status == 200, status == 200),
                "{status}"
            );
        }
    }
}
