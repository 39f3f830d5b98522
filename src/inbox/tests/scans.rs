//! How often the folder is looked at, and how much of it is taken at once.

use super::*;

#[test]
fn at_most_twenty_files_are_read_a_second_and_are_with_the_leader_at_once() {
    let mut bench = Bench::new();
    for number in 0..2_000 {
        bench.folder.put(&format!("{number}.json"), b"{}");
    }
    assert!(bench.pass(0.99).is_empty());
    let first = bench.pass(5.0);
    assert_eq!(first.len(), 20, "until the leader answers");
    let mut open = first;
    let (mut answered, mut seconds) = (0, 0);
    while !open.is_empty() {
        for filed in &open {
            bench.answer(filed.ticket, "a");
        }
        answered += open.len();
        open = bench.pass(1.0);
        assert!(open.len() <= 20);
        seconds += 1;
    }
    assert_eq!(answered, 2_000);
    assert!(seconds <= 101, "{seconds}");
    let files = bench.folder.lock();
    assert_eq!(files.held.keys().filter(|name| crate::rules::inbox::is_receipt(name)).count(), 2_000);
    assert_eq!(files.reads.len(), 2_000, "each is read once");
    assert!(files.scans <= 25, "its own answers do not make it scan: {}", files.scans);
}

#[test]
fn an_idle_inbox_scans_on_its_timer_alone_and_hints_are_taken_together() {
    let mut bench = Bench::new();
    bench.pass(300.0);
    assert!((10..=12).contains(&bench.folder.lock().scans), "every 30 s: {}", bench.folder.lock().scans);
    let before = bench.folder.lock().scans;
    for _ in 0..100 {
        bench.desk.hint();
        bench.pass(0.01);
    }
    let scans = bench.folder.lock().scans - before;
    assert!((5..=6).contains(&scans), "in a second of hints: {scans}");
}

#[test]
fn what_cannot_be_judged_now_comes_again_and_does_not_hold_up_others() {
    let mut bench = Bench::new();
    for number in 0..25 {
        bench.folder.put(&format!("{number:02}.json"), b"{}");
    }
    let first = bench.pass(1.5);
    assert_eq!(first.len(), 20);
    for filed in &first {
        bench.desk.reply(filed.ticket, Reply::Later);
    }
    let before = bench.folder.lock().reads.len();
    bench.inbox.step();
    bench.clock.advance(2 * SECOND);
    bench.inbox.step();
    let next = bench.folder.lock().reads.split_off(before);
    assert_eq!(next[..5], ["20.json", "21.json", "22.json", "23.json", "24.json"]);
    assert_eq!(next.len(), 20);
}

#[test]
fn a_folder_that_cannot_be_listed_for_a_moment_costs_no_answer() {
    let mut bench = Bench::new();
    bench.folder.put("a.json", b"{}");
    let filed = bench.pass(1.5);
    bench.folder.lock().unlistable = true;
    bench.pass(60.0);
    bench.answer(filed[0].ticket, "a");
    bench.pass(0.0);
    assert!(bench.folder.text("a.receipt.json").is_some());
}

#[test]
fn no_more_than_ten_thousand_files_are_kept_in_mind() {
    let mut bench = Bench::new();
    for round in 0..2 {
        bench.folder.lock().held.clear();
        for number in 0..MOST + 5 {
            bench.folder.put(&format!("{round}-{number}.json"), b"{}");
        }
        bench.desk.hint();
        bench.pass(0.5);
        assert!((MOST - 20..=MOST).contains(&bench.inbox.files.len()), "{}", bench.inbox.files.len());
    }
    bench.pass(120.0);
    assert!(bench.inbox.files.keys().any(|name| name.starts_with("1-")), "those that are gone make room");
}

#[test]
fn the_time_that_a_file_has_rested_begins_when_it_was_seen_however_long_the_step_stood_still() {
    let mut bench = Bench::new();
    bench.folder.put("cut.json", b"{");
    bench.folder.lock().stalls = Some((Arc::clone(&bench.clock), Duration::from_secs(20)));
    assert!(bench.pass(0.0).is_empty());
    assert!(bench.pass(9.9).is_empty());
    assert_eq!(bench.pass(0.2).len(), 1);
}
