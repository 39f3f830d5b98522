//! Reports to a gateway that answers as a test wants.

use super::*;
use crate::clock::HandClock;
use crate::http::{Http, HttpError, Request, Response};
use crate::identity::Identity;
use crate::notices::Crier;
use crate::rules::vectors::trust;
use std::io::Cursor;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

/// An API server that has nothing and a gateway, which keep what they are told; both say the time, or do not.
#[derive(Default)]
struct Peer {
    date: Option<&'static str>,
    reports: Mutex<Vec<Value>>,
    events: Mutex<Vec<Value>>,
}

impl Http for Peer {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let is_report = request.path == "/v1/cluster-agent/report";
        if let Some(body) = &request.body {
            let kept = if is_report { &self.reports } else { &self.events };
            kept.lock().unwrap().push(serde_json::from_slice(body).unwrap());
        }
        let (status, body) = if is_report { (200, "{\"inventory\":\"kept\"}") } else { (404, "{}") };
        let (date, body) = (self.date.map(str::to_owned), Box::new(Cursor::new(body)));
        Ok(Response { status, retry_after: None, date, body })
    }
}

/// Two reports to a gateway that says this of the time, and the Events beside them.
fn told(date: Option<&'static str>) -> Peer {
    let peer = Arc::new(Peer { date, ..Peer::default() });
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
    let (kube, notices) = (reporter.kube.clone(), Arc::clone(&reporter.notices));
    drop(reporter);
    Crier::new(kube, clock, notices, "agent-a".to_owned(), None).step();
    Arc::into_inner(peer).unwrap()
}

#[test]
fn a_clock_that_was_not_seen_is_not_reported_to_be_in_step() {
    let offsets = |date| -> Vec<Value> {
        let reports = told(date).reports.into_inner().unwrap();
        reports.iter().map(|report| report["clock_offset_ms"].clone()).collect()
    };
    assert_eq!(offsets(None), [Value::Null, Value::Null]);
    assert_eq!(offsets(Some("Mon, 30 Nov 2026 12:00:07 GMT")), [Value::Null, json!(7_000)]);
}

#[test]
fn a_manager_whose_clock_is_more_than_a_minute_away_is_told_in_an_event() {
    let events = |date| told(Some(date)).events.into_inner().unwrap();
    assert_eq!(events("Mon, 30 Nov 2026 12:01:00 GMT"), Vec::<Value>::new());
    let events = events("Mon, 30 Nov 2026 11:58:59 GMT");
    assert_eq!((events.len(), &events[0]["reason"]), (1, &json!("ClockSkew")));
    assert!(events[0]["message"].as_str().unwrap().contains("61 s behind"), "{events:?}");
}
