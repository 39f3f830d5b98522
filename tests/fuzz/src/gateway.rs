//! The manager's answers as the agent reads them: a poll, a receipt, a report, the doctor's question.
//!
//! - An answer means the same in whatever pieces it arrives; one that breaks off is none.
//! - What is no 200 is a refusal with its status, and with a code of at most 64 characters.
//! - A poll brings at most 64 envelopes, each a part of the body as it came; to open one forges nothing.
//! - `Retry-After` is honoured for 1 to 60 seconds. A `Date` that is taken is the same time to another parser, and
//!   each date that this one writes is taken.
//! - Only an answer of the contract's shape counts as one of the manager.

use crate::answers::{Answer, Arrival, Server, Still, cuts};
use crate::envelope::{opens_only_what_was_signed, stamp};
use jiff::Timestamp;
use navin_cluster_agent::clock::Clock;
use navin_cluster_agent::gateway::{Contact, Gateway, GatewayError, Probe};
use navin_cluster_agent::http::HttpError;
use navin_cluster_agent::rules::backoff::{MAX_RETRY_AFTER, MIN_RETRY_AFTER, http_date};
use navin_cluster_agent::rules::messages::{Reason, Receipt, Refusal};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Checks bytes as an answer to each call, and as a date.
pub fn check(bytes: &[u8]) {
    let all = Answer::all(bytes);
    let [answer, ..] = all.as_slice() else { return };
    let whole = Calls::of(answer, Arrival::InPieces(usize::MAX));
    assert_eq!(whole, Calls::of(answer, Arrival::InPieces(1)), "it depends on the pieces");
    whole.hold(answer);
    for cut in cuts(&answer.body) {
        Calls::of(answer, Arrival::Broken(cut)).fail(answer);
    }
    for text in answer.date.iter().map(String::as_str).chain(str::from_utf8(bytes)) {
        date(text);
    }
}

/// What each call makes of one answer.
#[derive(Debug, PartialEq, Eq)]
struct Calls {
    poll: Result<Vec<Vec<u8>>, GatewayError>,
    receipt: Result<bool, GatewayError>,
    report: Result<bool, GatewayError>,
    probe: Result<Probe, HttpError>,
    /// Whether each of the first three counted as an answer of the manager.
    counted: [bool; 3],
    /// What is known of the manager's clock after the poll.
    offset: Option<i64>,
    trusted: bool,
}

impl Calls {
    fn of(answer: &Answer, arrival: Arrival) -> Self {
        let gateway = || {
            let contact = Arc::new(Contact::default());
            let server = Server::new(std::slice::from_ref(answer), arrival);
            (Gateway::new(server, Arc::new(Still), Arc::clone(&contact)), contact)
        };
        let refusal = Refusal { reason: Reason::InvalidEnvelope, message: String::new(), ids: None };
        let receipt = Receipt::refused(&stamp(), &refusal, false, None);
        let (polled, posted, reported) = (gateway(), gateway(), gateway());
        Self {
            poll: polled.0.poll(30),
            receipt: posted.0.receipt(&receipt),
            report: reported.0.report(&serde_json::json!({})),
            probe: gateway().0.probe(),
            counted: [&polled, &posted, &reported].map(|(_, contact)| contact.answered().is_some()),
            offset: polled.1.clock_offset_ms(),
            trusted: polled.1.clock_trusted(Still.monotonic()),
        }
    }

    /// The errors of the first three calls.
    fn errors(&self) -> [Option<&GatewayError>; 3] {
        [self.poll.as_ref().err(), self.receipt.as_ref().err(), self.report.as_ref().err()]
    }

    fn hold(&self, answer: &Answer) {
        for error in self.errors() {
            match error {
                None => assert!(answer.status == 200),
                Some(GatewayError::Failed(_)) => {
                    assert!(answer.status == 200, "a refusal without its status");
                }
                Some(error @ GatewayError::Status { status, code, retry_after }) => {
                    assert!(
                        answer.status != 200
                            && (status, retry_after) == (&answer.status, &answer.retry_after)
                    );
                    assert!(code.chars().count() <= 64, "{code:?}");
                    let pause = error.retry_after(Still.wall());
                    assert!(pause.is_none_or(|pause| (MIN_RETRY_AFTER..=MAX_RETRY_AFTER).contains(&pause)));
                }
            }
        }
        // The poll's number of envelopes is judged after its shape.
        let [_, receipt, report] = self.errors().map(|error| error.is_none());
        assert_eq!(self.counted[1..], [receipt, report], "what counts is what was read");
        assert!(self.poll.is_err() || self.counted[0]);
        for envelope in self.poll.iter().flatten() {
            assert!(serde_json::from_slice::<&RawValue>(envelope).is_ok(), "not one value");
            assert!(answer.body.windows(envelope.len()).any(|part| part == envelope), "not as it came");
            opens_only_what_was_signed(envelope);
        }
        assert!(self.poll.iter().flatten().count() <= 64);
        let offset = answer.date.as_deref().and_then(http_date);
        let offset = offset.map(|date| date.as_millisecond() - Still.wall().as_millisecond());
        assert_eq!(self.offset, offset.filter(|_| self.counted[0]));
        assert_eq!(self.trusted, self.offset.is_some_and(|offset| offset.abs() <= 60_000));
        let probe = self.probe.as_ref().expect("it was answered");
        assert!(probe.status == answer.status && probe.code.chars().count() <= 64);
        assert_eq!(probe.clock_offset_ms, offset);
    }

    /// The body broke off.
    fn fail(&self, answer: &Answer) {
        for error in self.errors() {
            match error {
                Some(GatewayError::Failed(_)) => assert!(answer.status == 200),
                Some(GatewayError::Status { status, code, .. }) => {
                    assert_eq!((*status, code.as_str()), (answer.status, ""), "of a body that broke off");
                }
                None => panic!("an answer that broke off was taken"),
            }
        }
        assert_eq!((self.counted, self.offset), ([false; 3], None), "it counts as an answer");
    }
}

/// A date, and the form that it has to other people.
fn date(text: &str) {
    let theirs = httpdate::parse_http_date(text).ok();
    let seconds = theirs.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let seconds = seconds.and_then(|since| i64::try_from(since.as_secs()).ok());
    match (http_date(text), seconds) {
        (Some(ours), Some(theirs)) => assert_eq!(ours.as_second(), theirs, "{text:?}"),
        (None, Some(theirs)) => {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(theirs.unsigned_abs());
            let usual = httpdate::fmt_http_date(time) == text;
            assert!(!usual || theirs > Timestamp::MAX.as_second(), "{text:?} is not taken");
        }
        (Some(_) | None, None) => {}
    }
}
