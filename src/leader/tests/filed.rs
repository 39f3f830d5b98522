//! Files of the inbox beside the commands of the gateway.

use super::*;

#[test]
fn of_one_name_the_gateways_command_goes_first_and_the_file_waits_without_being_lost() {
    let mut bench = Bench::new();
    let (one, two) = (sign(&apply("a", 1, &json!({}))), sign(&apply("a", 2, &json!({}))));
    bench.leader.world.contact.note_answered(Duration::from_secs(1));
    bench.advance(Duration::from_secs(1));
    bench.file(7, &two);
    bench.deliver(&one);
    bench.leader.work();
    assert_eq!(bench.replies(), [(7, "later".to_owned())]);
    bench.file(8, &two);
    bench.leader.work();
    let replies = bench.replies();
    assert_eq!(replies, [(8, "under way".to_owned()), (8, "succeeded".to_owned())]);
    assert_eq!(bench.outbox.len(), 2, "both receipts go to the manager");
}

#[test]
fn while_connecting_a_sensitive_file_waits_and_offline_it_is_refused() {
    let mut bench = Bench::new();
    let file = sign(&apply("a", 1, &json!({})));
    bench.file(1, &file);
    bench.leader.work();
    assert_eq!(bench.replies(), [(1, "later".to_owned())]);
    bench.advance(Duration::from_mins(2));
    bench.file(2, &file);
    bench.leader.work();
    bench.file(3, &file);
    bench.leader.work();
    assert_eq!(bench.replies(), [(2, "manager_unreachable".to_owned()), (3, "nonce_replayed".to_owned())]);
    assert_eq!(bench.outbox.len(), 2);
}

#[test]
fn what_is_not_authentic_goes_to_the_manager_from_the_gateway_alone() {
    let mut bench = Bench::new();
    let mut forged = sign(&apply("a", 1, &json!({})));
    forged["payload"]["sequence"] = json!(2);
    bench.file(1, &forged);
    bench.leader.work();
    assert_eq!(bench.replies(), [(1, "invalid_signature".to_owned())]);
    assert_eq!(bench.outbox.len(), 0);
    bench.deliver(&forged);
    bench.leader.work();
    assert_eq!(bench.outbox.len(), 1);
    bench.desk.open(Ticket(2));
    let content = Err("larger than 256 KiB".to_owned());
    bench.leader.handle(Event::Filed(vec![Filed { ticket: Ticket(2), content }]));
    bench.leader.work();
    assert_eq!(bench.replies(), [(2, "invalid_envelope".to_owned())]);
    assert_eq!(bench.outbox.len(), 1);
}

#[test]
fn what_waits_when_the_leadership_ends_is_answered_by_nobody() {
    let mut bench = Bench::new();
    bench.file(1, &sign(&apply("a", 1, &json!({}))));
    bench.permit.revoke();
    bench.leader.work();
    let news = bench.desk.take();
    assert_eq!((news.replies.len(), news.reigns_ended), (0, 1));
}

#[test]
fn a_file_that_is_taken_back_before_it_is_judged_is_not_begun() {
    let mut bench = Bench::new();
    bench.leader.world.contact.note_answered(Duration::from_secs(1));
    bench.advance(Duration::from_secs(1));
    bench.file(1, &sign(&apply("a", 1, &json!({}))));
    bench.file(2, &sign(&apply("b", 2, &json!({}))));
    bench.desk.close(Ticket(1));
    bench.leader.work();
    assert_eq!(bench.replies(), [(2, "under way".to_owned()), (2, "succeeded".to_owned())]);
    assert_eq!(bench.outbox.len(), 1);
}

#[test]
fn what_came_for_a_leadership_that_ended_before_the_takeover_is_not_kept_for_the_next() {
    let mut bench = Bench::new();
    bench.permit.revoke();
    bench.leader.work();
    bench.desk.take();
    let file = sign(&apply("a", 1, &json!({})));
    bench.file(1, &file);
    bench.leader.work();
    let news = bench.desk.take();
    assert_eq!((news.replies.len(), news.reigns_ended), (0, 2), "the inbox begins anew");
    assert!(bench.leader.queue.is_empty());
}
