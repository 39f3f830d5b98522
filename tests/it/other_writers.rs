//! What others write into the state while a leader does. Each scenario is a public report about another program,
//! named with it.

use crate::lab::{BOUND, POD, record, state, succeeded, until_event};
use crate::wired::{STATE, Wired, writes_component};
use navin_test_support::until;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn put_states(wired: &Wired, from: usize) -> Vec<u16> {
    let record = wired.wire.since(from).into_iter().filter(|exchange| exchange.call.is("PUT", STATE));
    record.filter_map(|exchange| Some(exchange.reply?.status)).collect()
}

/// rancher/rancher#56930, chideat/valkey-operator#108: a newest version on an old copy, and no conflict.
#[test]
fn a_label_that_somebody_puts_on_the_state_survives_and_the_command_goes_on() {
    let wired = Wired::start("labelled", &json!({}));
    let _replica = wired.replica(POD);
    succeeded(&wired.world.apply("first", &json!({}), BOUND));
    until("the acknowledgement", BOUND, || {
        state(&wired.world)["commands"].to_string().contains("\"acknowledged\":true").then_some(())
    });
    let from = wired.wire.len();
    let label = json!({ "metadata": { "labels": { "other.example/label": "kept" } },
        "data": { "other.txt": "kept" } });
    let (status, answer) = wired.world.cluster.admin().patch(&wired.world.namespace.state_path(), &label);
    assert_eq!(status, 200, "{answer}");
    succeeded(&wired.world.apply("second", &json!({}), BOUND));
    assert_eq!(put_states(&wired, from)[..2], [409, 200], "a conflict, then over what was read anew");
    let (_, object) = wired.world.cluster.admin().get(&wired.world.namespace.state_path());
    assert_eq!(object["metadata"]["labels"]["other.example/label"], "kept");
    assert_eq!(object["data"]["other.txt"], "kept");
    assert_eq!(state(&wired.world)["term"], 1, "it went on leading");
}

/// chideat/valkey-operator#108: entries vanished or came back.
#[test]
fn what_another_writer_wrote_into_the_state_is_read_and_decided_on_again() {
    let wired = Wired::start("other-writer", &json!({}));
    let _replica = wired.replica(POD);
    let first = wired.world.apply("first", &json!({}), BOUND);
    succeeded(&first);
    until("the acknowledgement", BOUND, || {
        state(&wired.world)["commands"].to_string().contains("\"acknowledged\":true").then_some(())
    });
    let mut changed = state(&wired.world);
    changed["highest_sequence"] = json!(77);
    let (nonce, other) = ("written-by-another-hand", changed["commands"].as_object().expect("records"));
    let mut other = other.values().next().expect("a record").clone();
    other["phase"]["done"]["receipt"]["nonce"] = json!(nonce);
    changed["commands"][nonce] = other.clone();
    let from = wired.wire.len();
    let data = json!({ "data": { "state.json": changed.to_string() } });
    let (status, answer) = wired.world.cluster.admin().patch(&wired.world.namespace.state_path(), &data);
    assert_eq!(status, 200, "{answer}");

    let second = wired.world.apply("second", &json!({}), BOUND);
    succeeded(&second);
    assert_eq!(put_states(&wired, from).first(), Some(&409));
    let merged = state(&wired.world);
    assert_eq!(merged["highest_sequence"], 77);
    assert_eq!(merged["commands"][nonce]["phase"]["done"]["receipt"]["nonce"], nonce);
    for command in [&first, &second] {
        let command_id = command["command_id"].as_str().expect("a command_id");
        assert!(record(&merged, command_id).is_some(), "{command_id} is there too");
    }
    assert_eq!(merged["term"], 2, "it began anew from what it found");
    until_event(&wired.world, "StateConflict", 1);
}

/// The same report: many conflicts in a row.
#[test]
fn somebody_who_writes_the_states_metadata_all_the_time_does_not_keep_a_command_from_its_end() {
    let wired = Wired::start("restless", &json!({}));
    let _replica = wired.replica(POD);
    until("the first leader's first write", BOUND, || wired.world.namespace.state()?["term"].as_u64());
    let over = AtomicBool::new(false);
    let from = wired.wire.len();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (admin, path) = (wired.world.cluster.admin(), wired.world.namespace.state_path());
            for number in 0.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let label = json!({ "metadata": { "labels": { "other.example/n": number.to_string() } } });
                assert_eq!(admin.patch(&path, &label).0, 200);
                // A pause in which a read and a write fit, now and then.
                thread::sleep(Duration::from_millis(number % 8));
            }
        });
        for number in 0..10 {
            succeeded(&wired.world.apply("contested", &json!({ "n": number }), BOUND));
        }
        over.store(true, Ordering::Relaxed);
    });
    let statuses = put_states(&wired, from);
    let conflicts = statuses.iter().filter(|status| **status == 409).count();
    assert!(conflicts > 3, "there were conflicts: {statuses:?}");
    assert!(conflicts < 2_000, "and no storm of them: {conflicts}");
    let written = wired.wire.since(from).into_iter();
    let written = written.filter(|exchange| writes_component(exchange) && exchange.took_effect()).count();
    assert_eq!(written, 10, "each command once");
}
