//! The order of receipts over an outage, with a gateway that answers as the test says.

use super::*;
use crate::clock::HandClock;
use crate::gateway::Contact;
use crate::http::{Http, HttpError, Request, Response};
use crate::rules::messages::Source;
use crate::rules::names::Nonce;
use crate::rules::vectors::{apply, open, stamp};
use serde_json::{Value, json};
use std::io::Cursor;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

#[derive(Default)]
struct FakeGateway {
    down: Mutex<bool>,
    /// Never answered, by its number.
    cursed: Mutex<Option<u64>>,
    /// Refused for its form, by its number.
    unfit: Mutex<Option<u64>>,
    tried: Mutex<Vec<u64>>,
    taken: Mutex<Vec<u64>>,
}

impl Http for FakeGateway {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let receipt: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
        let number = receipt["nonce"].as_str().unwrap().rsplit('-').next().unwrap().parse().unwrap();
        self.tried.lock().unwrap().push(number);
        if *self.down.lock().unwrap() || *self.cursed.lock().unwrap() == Some(number) {
            return Err(HttpError::Unanswered("silence".into()));
        }
        if *self.unfit.lock().unwrap() == Some(number) {
            let body = Box::new(Cursor::new(br#"{"error":"malformed"}"#));
            return Ok(Response { status: 422, retry_after: None, date: None, body });
        }
        self.taken.lock().unwrap().push(number);
        let body = Box::new(Cursor::new(json!({ "recorded": true }).to_string().into_bytes()));
        Ok(Response { status: 200, retry_after: None, date: None, body })
    }
}

struct Bench {
    outbox: Outbox,
    gateway: Arc<FakeGateway>,
    clock: Arc<HandClock>,
    acknowledged: Receiver<Event>,
}

impl Bench {
    fn new(receipts: u64) -> Self {
        let (gateway, clock) = (
            Arc::new(FakeGateway::default()),
            Arc::new(HandClock { random: 7_777_777, ..HandClock::default() }),
        );
        let queue = Arc::new(Queue::default());
        let (leader, acknowledged) = sync_channel(64);
        let client = Gateway::new(gateway.clone(), clock.clone(), Arc::new(Contact::default()));
        for number in 1..=receipts {
            queue.push(receipt(number));
        }
        Self { outbox: Outbox::new(queue, client, clock.clone(), leader), gateway, clock, acknowledged }
    }

    fn pass(&mut self, seconds: u64) {
        let end = self.clock.monotonic() + Duration::from_secs(seconds);
        loop {
            let pause = self.outbox.step();
            let now = self.clock.monotonic();
            if now >= end {
                return;
            }
            self.clock.set(end.min(now + pause));
        }
    }
}

fn receipt(number: u64) -> Receipt {
    let command = open(&apply("a", number, &json!({})));
    Receipt::succeeded(&stamp(Source::Inbox), command.value(), json!({}))
}

#[test]
fn after_an_outage_receipts_go_out_in_their_order() {
    let mut bench = Bench::new(5);
    *bench.gateway.down.lock().unwrap() = true;
    bench.pass(3_600);
    let tried = std::mem::take(&mut *bench.gateway.tried.lock().unwrap());
    assert!(tried.iter().all(|number| *number == 1), "none loses its place: {tried:?}");
    assert!(tried.len() < 900, "it backs off: {}", tried.len());
    *bench.gateway.down.lock().unwrap() = false;
    bench.pass(30);
    assert_eq!(*bench.gateway.taken.lock().unwrap(), [1, 2, 3, 4, 5]);
    let first = bench.acknowledged.try_iter().next();
    let Some(Event::Acknowledged(nonce)) = first else { panic!("{first:?}") };
    assert_eq!(Some(nonce), receipt(1).nonce.as_ref().and_then(|n| Nonce::parse(n.as_str())));
}

#[test]
fn one_that_is_never_answered_does_not_hold_up_the_others() {
    let mut bench = Bench::new(4);
    *bench.gateway.cursed.lock().unwrap() = Some(1);
    let clock = Arc::clone(&bench.clock);
    // The poll is answered all the while.
    for second in 0..20 {
        bench.outbox.gateway.contact.note_answered(clock.monotonic());
        bench.pass(1);
        if bench.gateway.taken.lock().unwrap().len() == 3 {
            assert!(second > 0);
            break;
        }
    }
    assert_eq!(*bench.gateway.taken.lock().unwrap(), [2, 3, 4]);
    *bench.gateway.cursed.lock().unwrap() = None;
    bench.pass(60);
    assert_eq!(*bench.gateway.taken.lock().unwrap(), [2, 3, 4, 1]);
}

#[test]
fn one_that_is_refused_for_its_form_is_tried_hourly_and_does_not_hold_up_the_others() {
    let mut bench = Bench::new(3);
    *bench.gateway.unfit.lock().unwrap() = Some(1);
    bench.pass(4 * 3_600 + 60);
    assert_eq!(*bench.gateway.taken.lock().unwrap(), [2, 3]);
    assert_eq!(bench.gateway.tried.lock().unwrap().iter().filter(|number| **number == 1).count(), 5);
    *bench.gateway.unfit.lock().unwrap() = None;
    bench.pass(3_600);
    assert_eq!(*bench.gateway.taken.lock().unwrap(), [2, 3, 1]);
}
