//! The inbox step by step, with a folder and a clock that the test holds.

mod fake;
mod leaders;
mod scans;

use super::*;
use crate::clock::HandClock;
use crate::event::Filed;
use crate::rules::election::Tenure;
use crate::rules::inbox::STATUS_NAME;
use crate::rules::messages::{Reason, Receipt, Refusal, Source};
use crate::rules::names::{CommandId, Nonce};
use crate::rules::report::Inventory;
use crate::rules::vectors::stamp;
use fake::FakeFolder;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, sync_channel};

struct Bench {
    inbox: Inbox,
    folder: FakeFolder,
    clock: Arc<HandClock>,
    permit: Arc<Permit>,
    desk: Arc<Desk>,
    events: Receiver<Event>,
}

impl Bench {
    /// An inbox that leads.
    fn new() -> Self {
        let bench = Self::following();
        bench.lead(1);
        bench
    }

    fn following() -> Self {
        let (clock, permit) = (Arc::new(HandClock::default()), Arc::new(Permit::default()));
        let (folder, desk) = (FakeFolder::default(), Arc::new(Desk::default()));
        let (leader, events) = sync_channel(4);
        let seen: Arc<dyn Clock> = clock.clone();
        let inbox =
            Inbox::new(Box::new(folder.clone()), &seen, &permit, Arc::clone(&desk), leader, "agent-a");
        Self { inbox, folder, clock, permit, desk, events }
    }

    fn lead(&self, transitions: u32) {
        let tenure = Tenure {
            holder: "agent-a_1".into(),
            transitions,
            lease_uid: "u".into(),
            first_start: false,
            since: Duration::ZERO,
        };
        self.permit.grant(&Arc::new(tenure), Duration::from_hours(9));
    }

    /// Steps whenever it asks to, until `seconds` have passed; what was handed over.
    fn pass(&mut self, seconds: f64) -> Vec<Filed> {
        let end = self.clock.monotonic() + Duration::from_secs_f64(seconds);
        let mut filed = Vec::new();
        let mut steps = 0;
        loop {
            let pause = self.inbox.step();
            for event in self.events.try_iter() {
                let Event::Filed(batch) = event else { panic!("{event:?}") };
                filed.extend(batch);
            }
            steps += 1;
            assert!(steps < 5_000, "a step every moment");
            let now = self.clock.monotonic();
            if now >= end {
                return filed;
            }
            self.clock.set(end.min(now + pause));
        }
    }

    fn answer(&self, ticket: Ticket, nonce: &str) {
        let answer = Answer { receipt: receipt(nonce), inventory: None };
        self.desk.reply(ticket, Reply::Answer(Box::new(answer)));
    }
}

fn rows(texts: &[&str]) -> Vec<Box<RawValue>> {
    texts.iter().map(|text| to_raw_value(text).unwrap()).collect()
}

/// With one kind: nodes.
fn inventory(nodes: &[&str]) -> Inventory {
    let mut inventory = Inventory::default();
    inventory.list("nodes", "ok", rows(nodes));
    inventory
}

fn nonce(text: &str) -> Nonce {
    Nonce::parse(&format!("{text:0<22}")).unwrap()
}

fn receipt(text: &str) -> Receipt {
    let id = CommandId::parse("00000000-0000-4000-8000-000000000001").unwrap();
    let refusal = Refusal { reason: Reason::Expired, message: String::new(), ids: Some((id, nonce(text))) };
    Receipt::refused(&stamp(Source::Inbox), &refusal, false, None)
}

#[test]
fn a_file_is_handed_over_a_second_after_its_last_change_and_answered_beside_it() {
    let mut bench = Bench::new();
    bench.pass(1.0);
    bench.folder.put("a.json", b"{\"n\": 1}");
    bench.desk.hint();
    assert!(bench.pass(0.9).is_empty());
    bench.folder.put("a.json", b"{\"n\": 2}");
    bench.desk.hint();
    assert!(bench.pass(0.9).is_empty(), "it changed");
    let filed = bench.pass(0.3);
    assert_eq!(filed[0].content.as_deref(), Ok(b"{\"n\": 2}".as_slice()));
    bench.answer(filed[0].ticket, "a");
    assert!(bench.pass(60.0).is_empty(), "it has its answer");
    assert_eq!(bench.folder.text("a.receipt.json").unwrap()["reason"], "expired");
    assert_eq!(bench.folder.lock().reads, ["a.json"], "read once");
}

#[test]
fn one_that_is_cut_off_is_given_ten_seconds_to_become_whole() {
    let mut bench = Bench::new();
    bench.folder.put("half.json", b"{\"n\": ");
    bench.folder.put("empty.json", b"");
    assert!(bench.pass(5.0).is_empty());
    bench.folder.put("half.json", b"{\"n\": 1}");
    bench.folder.put("empty.json", b"{\"n\": 2}");
    bench.desk.hint();
    assert_eq!(bench.pass(2.0).len(), 2, "each once, and whole");
    bench.folder.put("dead.json", b"{\"n\": ");
    bench.desk.hint();
    assert!(bench.pass(9.9).is_empty());
    let dead = bench.pass(0.5);
    assert_eq!(dead[0].content.as_deref(), Ok(b"{\"n\": ".as_slice()), "its writer is gone: it is judged");
}

#[test]
fn what_cannot_be_read_is_handed_over_as_such() {
    let mut bench = Bench::new();
    bench.folder.put("big.json", &vec![b' '; MAX_BYTES + 1]);
    bench.folder.put("fifo.json", b"");
    bench.folder.lock().held.get_mut("fifo.json").unwrap().0.unreadable = Some("not a regular file");
    let contents: Vec<_> = bench.pass(2.0).into_iter().map(|filed| filed.content).collect();
    assert_eq!(contents, [Err("larger than 256 KiB".to_owned()), Err("not a regular file".to_owned())]);
    assert!(bench.folder.lock().reads.is_empty());
}

const MAX_BYTES: usize = crate::rules::json::MAX_ENVELOPE_BYTES;

#[test]
fn a_command_that_ends_answers_every_file_of_its_nonce_with_the_whole_inventory() {
    let mut bench = Bench::new();
    for name in ["a.json", "b.json", "c.json"] {
        bench.folder.put(name, b"{}");
    }
    let filed = bench.pass(2.0);
    bench.desk.reply(filed[0].ticket, Reply::UnderWay(nonce("x")));
    bench.desk.reply(filed[1].ticket, Reply::UnderWay(nonce("x")));
    bench.desk.reply(filed[2].ticket, Reply::UnderWay(nonce("y")));
    bench.pass(1.0);
    assert_eq!(bench.folder.text("a.receipt.json"), None);
    let ended = Receipt { result: Some(json!({ "revision": "r" })), ..receipt("x") };
    bench.desk.ended(&ended, Some(&inventory(&["n"])));
    bench.pass(0.0);
    for name in ["a.receipt.json", "b.receipt.json"] {
        let answer = bench.folder.text(name).unwrap();
        assert_eq!(
            answer["result"],
            json!({ "revision": "r", "inventory": { "nodes": { "state": "ok", "items": ["n"] } } })
        );
    }
    assert_eq!(bench.folder.text("c.receipt.json"), None);
    let again = bench.pass(31.0);
    assert_eq!(again.len(), 1, "should its end be missed, it is asked for again");
    bench.answer(again[0].ticket, "y");
    bench.pass(1.0);
    assert!(bench.folder.text("c.receipt.json").is_some());
}

#[test]
fn a_command_that_ends_while_its_file_is_handed_over_again_answers_it_all_the_same() {
    for busy in [false, true] {
        let mut bench = Bench::new();
        bench.folder.put("a.json", b"{}");
        let filed = bench.pass(1.5);
        bench.desk.reply(filed[0].ticket, Reply::UnderWay(nonce("x")));
        let again = bench.pass(31.0);
        assert_eq!(again.len(), 1);
        if busy {
            bench.desk.reply(again[0].ticket, Reply::Later);
            bench.pass(0.0);
        }
        let ended = Receipt { result: Some(json!({})), ..receipt("x") };
        bench.desk.ended(&ended, Some(&inventory(&["n"])));
        bench.answer(again[0].ticket, "x");
        bench.pass(0.0);
        let answer = bench.folder.text("a.receipt.json").expect("the command's own answer");
        assert_eq!(answer["result"]["inventory"], json!({ "nodes": { "state": "ok", "items": ["n"] } }));
    }
}

#[test]
fn of_an_inventory_too_large_for_a_report_the_answer_leaves_out_what_a_report_would() {
    let mut inventory = inventory(&[&"x".repeat(9 * 1024 * 1024)]);
    inventory.list("crds", "ok", rows(&["a"]));
    let receipt = Receipt { result: Some(json!({ "revision": "r" })), ..receipt("x") };
    let answer = Answer { receipt, inventory: Some(inventory) }.to_json();
    let result = serde_json::from_slice::<Value>(&answer).unwrap()["result"].take();
    assert_eq!(result["inventory"]["nodes"], json!({ "state": "too_large", "items": [] }));
    assert_eq!(result["inventory"]["crds"]["items"], json!(["a"]));
}

#[test]
fn a_file_that_is_rewritten_or_removed_under_way_gets_no_answer_of_its_former_content() {
    let mut bench = Bench::new();
    bench.folder.put("a.json", b"{\"n\": 1}");
    bench.folder.put("b.json", b"{\"n\": 1}");
    let filed = bench.pass(1.5);
    bench.folder.put("a.json", b"{\"n\": 2}");
    bench.folder.remove("b.json").unwrap();
    for filed in &filed {
        bench.answer(filed.ticket, "a");
    }
    assert!(bench.pass(0.5).is_empty());
    assert_eq!(bench.folder.text("a.receipt.json"), None);
    assert_eq!(bench.folder.text("b.receipt.json"), None);
    let filed = bench.pass(1.0);
    assert_eq!(filed[0].content.as_deref(), Ok(b"{\"n\": 2}".as_slice()));
    bench.answer(filed[0].ticket, "a");
    bench.pass(0.0);
    assert!(bench.folder.text("a.receipt.json").is_some());
}

#[test]
fn an_answer_that_cannot_be_written_is_tried_again_and_nothing_is_judged_twice() {
    let mut bench = Bench::new();
    bench.folder.put("a.json", b"{}");
    let filed = bench.pass(1.5);
    bench.folder.lock().read_only = true;
    bench.answer(filed[0].ticket, "a");
    assert!(bench.pass(100.0).is_empty());
    bench.folder.lock().read_only = false;
    bench.pass(5.0);
    assert!(bench.folder.text("a.receipt.json").is_some());
}
