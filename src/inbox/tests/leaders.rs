//! Who leads: files are handed over to a leader that has room for them, and judged anew by each.

use super::*;

#[test]
fn a_follower_reads_and_answers_nothing_and_says_who_leads() {
    let mut bench = Bench::following();
    bench.folder.put("a.json", b"{}");
    bench.permit.saw_holder("agent-b_2");
    assert!(bench.pass(120.0).is_empty());
    assert_eq!(bench.folder.lock().scans, 0);
    let status = bench.folder.text(STATUS_NAME).unwrap();
    assert_eq!((&status["leads"], &status["leader"]), (&json!(false), &json!("agent-b")));
    assert!(status["written_at"].as_str() >= Some("1970-01-01T00:01:30Z"), "it stays fresh: {status}");

    bench.lead(1);
    let filed = bench.pass(4.0);
    assert_eq!(filed.len(), 1);
    let status = bench.folder.text(STATUS_NAME).unwrap();
    assert_eq!((&status["leads"], &status["leader"]), (&json!(true), &json!("agent-a")));

    bench.permit.revoke();
    bench.permit.saw_holder("agent-a_0");
    bench.answer(filed[0].ticket, "a");
    bench.pass(4.0);
    assert_eq!(bench.folder.text("a.receipt.json"), None);
    let status = bench.folder.text(STATUS_NAME).unwrap();
    assert_eq!((&status["leads"], &status["leader"]), (&json!(false), &Value::Null), "of before its restart");
}

#[test]
fn after_another_leadership_of_ours_every_file_is_judged_anew() {
    let mut bench = Bench::new();
    bench.folder.put("a.json", b"{}");
    let first = bench.pass(1.5);
    bench.desk.stepped_down();
    bench.answer(first[0].ticket, "a");
    let second = bench.pass(1.5);
    assert_eq!(bench.folder.text("a.receipt.json"), None);
    assert_eq!(second.len(), 1);
    bench.answer(second[0].ticket, "a");
    bench.pass(0.0);
    assert!(bench.folder.text("a.receipt.json").is_some());
}

#[test]
fn where_the_leader_is_busy_a_file_waits_in_the_folder() {
    let mut bench = Bench::new();
    let mut held = 0;
    while bench.inbox.leader.try_send(Event::Leadership).is_ok() {
        held += 1;
    }
    bench.folder.put("a.json", b"{}");
    bench.inbox.step();
    bench.clock.advance(SECOND);
    bench.inbox.step();
    assert_eq!(bench.folder.lock().reads, ["a.json"]);
    assert_eq!(bench.events.try_iter().count(), held);
    assert_eq!(bench.pass(1.0).len(), 1);
}
