//! A question that changes nothing, for `doctor`: a poll would take commands away from the leader.

use super::{ANSWER_BYTES, Gateway, error_code};
use crate::http::{HttpError, Method, Request};
use crate::rules::backoff::clock_offset_ms;
use std::time::Duration;

/// Limit on its exchange.
const LIMIT: Duration = Duration::from_secs(10);

/// What the gateway answers to a question that changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The HTTP status.
    pub status: u16,
    /// `error` of its body, if it has one.
    pub code: String,
    /// Its clock less ours.
    pub clock_offset_ms: Option<i64>,
}

impl Gateway {
    /// Asks for what there is not, which changes nothing: who answers, and whether it knows us.
    ///
    /// # Errors
    ///
    /// There is no answer.
    pub fn probe(&self) -> Result<Probe, HttpError> {
        let path = "/v1/cluster-agent/report".to_owned();
        let request = Request { method: Method::Get, path, body: None, timeout: LIMIT, limit: ANSWER_BYTES };
        let response = self.http.send(&request)?;
        let (status, date) = (response.status, response.date.clone());
        let clock_offset_ms = date.and_then(|date| clock_offset_ms(&date, self.clock.wall()));
        Ok(Probe { status, code: error_code(response), clock_offset_ms })
    }
}
