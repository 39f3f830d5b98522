//! Reports to a gateway that answers as a test wants.

use super::*;
use crate::clock::HandClock;
use crate::http::{Http, HttpError, Request, Response};
use crate::identity::Identity;
use crate::rules::vectors::trust;
use std::io::Cursor;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

/// An API server that has nothing, and a gateway that keeps what it is told; both say the time, or do not.
struct Peer {
    date: Option<&'static str>,
    reports: Mutex<Vec<Value>>,
}

impl Http for Peer {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let is_report = request.path == "/v1/cluster-agent/report";
        if let Some(body) = request.body.as_ref().filter(|_| is_report) {
            self.reports.lock().unwrap().push(serde_json::from_slice(body).unwrap());
        }
        let (status, body) = if is_report { (200, "{\"inventory\":\"kept\"}") } else { (404, "{}") };
        let (date, body) = (self.date.map(str::to_owned), Box::new(Cursor::new(body)));
        Ok(Response { status, retry_after: None, date, body })
    }
}

/// Two reports to a gateway that says this of the time.
fn reports(date: Option<&'static str>) -> Vec<Value> {
    let peer = Arc::new(Peer { date, reports: Mutex::default() });
    let (clock, contact) = (Arc::new(HandClock::default()), Arc::new(Contact::default()));
    let board = Arc::new(Board::default());
    board.lead(clock.wall(), clock.monotonic(), Arc::new(State::new(1, "a_1")));
    let mut reporter = Reporter {
        kube: Kube::new(peer.clone(), "navin-platform", Duration::from_secs(5)),
        gateway: Gateway::new(peer.clone(), clock.clone(), Arc::clone(&contact)),
        contact,
        clock: clock.clone(),
        board,
        leader: sync_channel(1).0,
        notices: Arc::default(),
        identity: Arc::new(Current::new(Arc::new(Identity::of(trust())))),
        replica: "agent-a".to_owned(),
        progress: Progress::default(),
    };
    for _ in 0..2 {
        let pause = reporter.step();
        clock.advance(pause);
    }
    drop(reporter);
    Arc::into_inner(peer).unwrap().reports.into_inner().unwrap()
}

#[test]
fn a_clock_that_was_not_seen_is_not_reported_to_be_in_step() {
    let offsets =
        |date| reports(date).iter().map(|report| report["clock_offset_ms"].clone()).collect::<Vec<_>>();
    assert_eq!(offsets(None), [Value::Null, Value::Null]);
    assert_eq!(offsets(Some("Mon, 30 Nov 2026 12:00:07 GMT")), [Value::Null, json!(7_000)]);
}
