//! What is written of what is noted, with an API server that counts and a clock that the test holds.

use super::*;
use crate::clock::HandClock;
use crate::http::{Http, HttpError, Method, Request, Response};
use serde_json::{Value, json};
use std::io::Cursor;
use std::sync::Mutex;

/// With this chance the pause after failures becomes half a minute.
const HALF_A_MINUTE: u64 = 28_999;

/// Answers every write with this status, and keeps what was asked.
#[derive(Default)]
struct FakeApi {
    status: Mutex<u16>,
    retry_after: Mutex<Option<&'static str>>,
    asked: Mutex<Vec<(Method, Value)>>,
}

impl Http for FakeApi {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let body: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        self.asked.lock().unwrap().push((request.method, body));
        let body = Box::new(Cursor::new(json!({ "metadata": {} }).to_string().into_bytes()));
        let retry_after = self.retry_after.lock().unwrap().map(str::to_owned);
        Ok(Response { status: *self.status.lock().unwrap(), retry_after, date: None, body })
    }
}

struct Bench {
    crier: Crier,
    notices: Arc<Notices>,
    clock: Arc<HandClock>,
    api: Arc<FakeApi>,
}

impl Bench {
    fn new() -> Self {
        let (clock, api) = (
            Arc::new(HandClock { random: HALF_A_MINUTE, ..HandClock::default() }),
            Arc::new(FakeApi::default()),
        );
        *api.status.lock().unwrap() = 200;
        let notices = Arc::new(Notices::default());
        let kube = Kube::new(api.clone(), "navin-platform", Duration::from_secs(5));
        let crier = Crier::new(kube, clock.clone(), Arc::clone(&notices), "a".to_owned(), None);
        Self { crier, notices, clock, api }
    }

    /// Steps whenever it asks to until `seconds` have passed; how many writes there were.
    fn pass(&mut self, seconds: u64) -> usize {
        let before = self.api.asked.lock().unwrap().len();
        let end = self.clock.monotonic() + Duration::from_secs(seconds);
        loop {
            let pause = self.crier.step();
            let now = self.clock.monotonic();
            if now + pause >= end {
                self.clock.set(end);
                return self.api.asked.lock().unwrap().len() - before;
            }
            self.clock.advance(pause);
        }
    }
}

#[test]
fn what_fails_each_second_for_ten_minutes_is_one_event_of_a_dozen_writes() {
    let mut bench = Bench::new();
    for attempt in 0..600 {
        bench.notices.warning("CommandRefused", About::Pod, &format!("attempt {attempt} failed"));
        bench.pass(1);
    }
    bench.pass(120);
    let asked = bench.api.asked.lock().unwrap();
    assert!(asked.len() <= 12, "{}", asked.len());
    assert_eq!(asked.iter().filter(|(method, _)| *method == Method::Post).count(), 1);
    assert_eq!(asked.last().unwrap().1["count"], 600, "none is lost");
    assert_eq!(asked.last().unwrap().1["message"], "attempt 599 failed");
}

#[test]
fn two_hundred_objects_at_once_are_thirty_writes_a_minute() {
    let mut bench = Bench::new();
    for round in 0..30 {
        for number in 0..200 {
            bench.notices.warning("Contested", About::Component(format!("c{number}")), "again and again");
        }
        assert!(bench.pass(59) <= 30, "round {round}");
        bench.pass(1);
    }
    assert!(bench.crier.posted.len() <= REMEMBERED);
    assert!(bench.notices.0.lock().dropped);
    bench.pass(600);
    assert!(!bench.notices.0.lock().dropped, "the next flood is said again");
}

#[test]
fn the_oldest_event_is_forgotten_for_a_new_kind() {
    let mut bench = Bench::new();
    for number in 0..REMEMBERED + 2 {
        bench.notices.warning("Contested", About::Component(format!("{number:04}")), "");
        bench.pass(3);
    }
    let kind = |number: usize| ("Contested", About::Component(format!("{number:04}")));
    assert_eq!(bench.crier.posted.len(), REMEMBERED);
    let known = [1, 2, REMEMBERED + 1].map(|number| bench.crier.posted.contains_key(&kind(number)));
    assert_eq!(known, [false, true, true]);
}

#[test]
fn an_api_that_takes_no_events_is_not_asked_at_every_notice() {
    for status in [403, 404, 422, 429, 500] {
        let mut bench = Bench::new();
        *bench.api.status.lock().unwrap() = status;
        for number in 0..600 {
            bench.notices.warning("Contested", About::Component(format!("c{number}")), "");
            // Each notice wakes the thread.
            bench.crier.step();
            bench.crier.step();
            bench.pass(1);
        }
        let writes = bench.api.asked.lock().unwrap().len();
        assert!(writes <= 30, "{status}: {writes}");
        *bench.api.status.lock().unwrap() = 200;
        assert!(bench.pass(60) > 0, "{status}: it goes on");
    }
}

#[test]
fn an_api_that_asks_to_be_left_alone_is_not_told_meanwhile() {
    for (retry_after, writes) in [("7", 9), ("86400", 1)] {
        for status in [429, 503] {
            let mut bench = Bench::new();
            *bench.api.status.lock().unwrap() = status;
            *bench.api.retry_after.lock().unwrap() = Some(retry_after);
            let mut asked = 0;
            for number in 0..60 {
                bench.notices.warning("Contested", About::Component(format!("c{number}")), "");
                bench.crier.step();
                asked += bench.pass(1);
            }
            let all = bench.api.asked.lock().unwrap().len();
            assert!((1..=writes).contains(&all) && asked <= all, "{status} {retry_after}: {all}");
        }
    }
}
