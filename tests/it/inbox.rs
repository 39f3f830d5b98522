//! The break-glass inbox (CONTRACT section 7), with a gateway that answers.

use crate::gateway::Scripted;
use crate::inbox_lab::{
    answer, id, left, online, options, put, receipt, receipt_now, receipt_within, submit,
};
use crate::lab::{BOUND, POD, hold_in_deletion, let_go, live, state, until_accepted, until_done};
use crate::signer::{Signer, seconds_from_now};
use navin_test_support::until;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use std::{fs, thread};

#[test]
fn a_good_file_runs_once_and_its_receipt_is_beside_it_and_at_the_manager() {
    let scripted = Scripted::start("inbox-good", &json!({}));
    let agent = online(&scripted);
    let payload = scripted.signer.apply("ingress", 5, &json!({ "replicas": 2 }));
    let envelope = scripted.signer.sign(&payload);
    let first = answer(&agent, "one", &envelope);
    assert_eq!((&first["status"], &first["source"]), (&json!("succeeded"), &json!("inbox")), "{first}");
    assert_eq!((&first["recorded"], &first["command_id"]), (&json!(true), &payload["command_id"]));
    assert_eq!(live(&scripted.world, "ingress")["spec"], json!({ "replicas": 2 }));
    let record = until_done(&scripted.world, id(&envelope));
    assert_eq!(record["phase"]["done"]["receipt"], first, "the recorded outcome");
    until("the receipt at the manager", BOUND, || {
        (scripted.gateway.receipts_of(id(&envelope)) == [first.clone()]).then_some(())
    });

    // Under another name, and from the gateway: the same nonce, the same record.
    let again = answer(&agent, "two", &envelope);
    assert_eq!((&again["reason"], &again["original"]), (&json!("nonce_replayed"), &first));
    let delivered = scripted.answer_to(&envelope);
    assert_eq!((&delivered["reason"], &delivered["original"]), (&json!("nonce_replayed"), &first));
    // And the other way round.
    let other = scripted.signer.sign(&scripted.signer.delete("ingress", 6));
    let outcome = scripted.answer_to(&other);
    assert_eq!(outcome["status"], "succeeded");
    assert_eq!(answer(&agent, "three", &other)["original"], outcome);
    let older = scripted.signer.sign(&scripted.signer.apply("ingress", 4, &json!({})));
    assert_eq!(answer(&agent, "four", &older)["reason"], "superseded");
    assert!(scripted.world.namespace.component("ingress").is_none());

    // A file that has its receipt is not read again, whatever is in it.
    put(&agent, "four", scripted.signer.sign(&scripted.signer.apply("late", 9, &json!({}))).to_string());
    answer(&agent, "five", &other);
    assert_eq!(receipt(&agent, "four")["reason"], "superseded");
    assert!(scripted.world.namespace.component("late").is_none());
}

#[test]
fn what_is_not_authentic_is_answered_in_the_inbox_and_never_to_the_manager() {
    let scripted = Scripted::start("inbox-forged", &json!({}));
    let agent = online(&scripted);
    let before = state(&scripted.world);
    let good = |sequence| scripted.signer.apply("ingress", sequence, &json!({}));
    let mut tampered = scripted.signer.sign(&good(1));
    tampered["payload"]["sequence"] = json!(2);
    let (mut tenant, mut target) = (good(3), good(4));
    tenant["tenant_id"] = json!("other");
    target["target"]["id"] = json!("other");
    let mut unknown_member = scripted.signer.sign(&good(5));
    unknown_member["more"] = json!(1);
    for (name, envelope, reason) in [
        ("tampered", tampered, "invalid_signature"),
        ("nobody", Signer::of_nobody(&scripted.world).sign(&good(6)), "unknown_key"),
        ("tenant", scripted.signer.sign(&tenant), "wrong_tenant"),
        ("target", scripted.signer.sign(&target), "wrong_target"),
        ("member", unknown_member, "invalid_envelope"),
    ] {
        let receipt = answer(&agent, name, &envelope);
        assert_eq!((&receipt["reason"], &receipt["recorded"]), (&json!(reason), &json!(false)), "{receipt}");
        assert_eq!(receipt["command_id"], envelope["payload"]["command_id"]);
    }
    put(&agent, "noise", "not JSON");
    let noise = receipt(&agent, "noise");
    assert_eq!((&noise["reason"], noise.get("nonce")), (&json!("invalid_envelope"), None), "{noise}");

    // Authentic, and refused without a trace: the manager is told.
    let mut expired = good(7);
    expired["not_before"] = json!(seconds_from_now(-900));
    expired["not_after"] = json!(seconds_from_now(-60));
    let expired = scripted.signer.sign(&expired);
    let receipt = answer(&agent, "expired", &expired);
    assert_eq!((&receipt["reason"], &receipt["recorded"]), (&json!("expired"), &json!(false)));
    until("the receipt at the manager", BOUND, || scripted.gateway.receipts_of(id(&expired)).pop());
    assert_eq!(scripted.gateway.receipts(), [receipt], "that one alone");
    assert_eq!(state(&scripted.world), before, "no trace in the state");
}

#[test]
fn the_answer_to_inventory_report_in_the_inbox_alone_has_the_whole_inventory() {
    let scripted = Scripted::start("inbox-inventory", &json!({}));
    let agent = online(&scripted);
    let envelope = scripted.signer.sign(&scripted.signer.inventory(1));
    let receipt = answer(&agent, "inventory", &envelope);
    assert_eq!(receipt["status"], "succeeded", "{receipt}");
    let namespaces = &receipt["result"]["inventory"]["namespaces"];
    assert_eq!(namespaces["state"], "ok", "{receipt}");
    assert_eq!(
        namespaces["items"].as_array().map(Vec::len),
        receipt["result"]["counts"]["namespaces"].as_u64().and_then(|count| usize::try_from(count).ok())
    );
    let at_manager =
        until("the receipt at the manager", BOUND, || scripted.gateway.receipts_of(id(&envelope)).pop());
    let mut short = receipt;
    short["result"].as_object_mut().expect("a result").remove("inventory");
    assert_eq!(at_manager, short);
    let again = answer(&agent, "again", &envelope);
    assert_eq!(again["original"], short, "nor does the state keep it");
}

#[test]
fn a_command_that_ends_is_answered_at_once_in_every_file_that_waits_for_it() {
    let scripted = Scripted::start("inbox-waiting", &json!({}));
    let agent = online(&scripted);
    hold_in_deletion(&scripted.world, "held");
    let first = scripted.signer.sign(&scripted.signer.apply("held", 1, &json!({ "by": "first" })));
    let second = scripted.signer.sign(&scripted.signer.apply("held", 2, &json!({ "by": "second" })));
    put(&agent, "first", first.to_string());
    until_accepted(&scripted.world, id(&first));
    put(&agent, "first-again", first.to_string());
    put(&agent, "second", second.to_string());
    let other = scripted.signer.sign(&scripted.signer.apply("other", 3, &json!({})));
    assert_eq!(answer(&agent, "other", &other)["status"], "succeeded", "neither holds up another");
    for name in ["first", "first-again", "second"] {
        assert_eq!(receipt_now(&agent, name), None, "{name} waits, unanswered");
    }
    let_go(&scripted.world, "held");
    let ended = receipt(&agent, "first");
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(receipt_within(&agent, "first-again", Duration::from_secs(15)), ended);
    assert_eq!(receipt(&agent, "second")["status"], "succeeded", "its name is free");
    assert_eq!(live(&scripted.world, "held")["spec"], json!({ "by": "second" }));
}

/// J03, and what a writer can do besides.
#[test]
fn a_file_that_is_still_being_written_is_answered_once_and_for_its_whole_content() {
    let scripted = Scripted::start("inbox-written", &json!({}));
    let agent = online(&scripted);
    let command = |sequence: u64| {
        let payload = scripted.signer.apply(&format!("c-{sequence}"), sequence, &json!({ "n": sequence }));
        scripted.signer.sign(&payload).to_string()
    };
    let path = |name: &str| agent.inbox().join(format!("{name}.json"));
    let halves: Vec<(String, String)> = (1..=4)
        .map(|n| {
            let text = command(n);
            let (a, b) = text.split_at(text.len() / 2);
            (a.into(), b.into())
        })
        .collect();
    fs::write(path("slow"), &halves[0].0).unwrap();
    fs::write(path("rewritten"), &halves[1].0).unwrap();
    fs::write(path("empty"), "").unwrap();
    fs::write(path("dead"), &halves[3].0).unwrap();
    thread::sleep(Duration::from_secs(3));
    fs::write(path("slow"), format!("{}{}", halves[0].0, halves[0].1)).unwrap();
    fs::write(path("rewritten"), "").unwrap();
    thread::sleep(Duration::from_secs(2));
    fs::write(path("rewritten"), command(2)).unwrap();
    fs::write(path("empty"), command(3)).unwrap();
    // A writer that pauses at every few bytes.
    let dribbled = command(5);
    for end in (0..=dribbled.len()).step_by(97).chain([dribbled.len()]) {
        fs::write(path("dribbled"), &dribbled[..end]).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    for name in ["slow", "rewritten", "empty", "dribbled"] {
        let receipt = receipt(&agent, name);
        assert_eq!(receipt["status"], "succeeded", "{name}: {receipt}");
    }
    let dead = receipt(&agent, "dead");
    assert_eq!(dead["reason"], "invalid_envelope", "after ten seconds it is told: {dead}");
    assert!(path("dead").exists(), "and is left where it is");
    assert_eq!(agent.count_log("refused "), 1, "no half counted as an envelope");
    assert_eq!(agent.count_log("accepted "), 4);
}

#[test]
fn another_content_in_place_of_one_that_is_under_way_gets_its_own_answer() {
    let scripted = Scripted::start("inbox-replaced", &json!({}));
    let agent = online(&scripted);
    hold_in_deletion(&scripted.world, "held");
    let first = scripted.signer.sign(&scripted.signer.apply("held", 1, &json!({})));
    let other = scripted.signer.sign(&scripted.signer.apply("other", 2, &json!({})));
    put(&agent, "file", first.to_string());
    until_accepted(&scripted.world, id(&first));
    put(&agent, "file", other.to_string());
    let_go(&scripted.world, "held");
    assert_eq!(receipt(&agent, "file")["command_id"], id(&other));
    let first = until("the first's receipt", BOUND, || scripted.gateway.receipts_of(id(&first)).pop());
    assert_eq!(first["status"], "succeeded", "it ran all the same");
}

#[test]
fn followers_leave_files_alone_and_submit_names_the_leader() {
    let scripted = Scripted::start("inbox-followers", &json!({ "lease_duration_s": 3 }));
    let leader = online(&scripted);
    let follower = scripted.world.agent_with(options(&scripted.world, "agent-b"));
    let command = |sequence| {
        scripted
            .signer
            .sign(&scripted.signer.apply(&format!("c-{sequence}"), sequence, &json!({})))
            .to_string()
    };
    put(&follower, "waits", command(1));

    let (code, out, err) = submit(follower.inbox(), 20, &command(2));
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    assert!(err.contains(POD) && err.lines().count() == 1, "it names the leader's pod: {err}");
    let (code, out, err) = submit(leader.inbox(), 20, &command(2));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let printed: Value = serde_json::from_str(&out).expect("a receipt");
    assert_eq!((&printed["status"], &printed["replica"]), (&json!("succeeded"), &json!(POD)));
    let (code, out, _) = submit(leader.inbox(), 20, "not JSON");
    assert_eq!(code, Some(1), "{out}");
    assert!(left(&leader).is_empty(), "{:?}", left(&leader));

    assert_eq!(receipt_now(&follower, "waits"), None);
    assert_eq!(follower.count_log("inbox scanned"), 0);
    leader.process().kill9();
    follower.wait_leads(&scripted.world.namespace, BOUND);
    let receipt = receipt(&follower, "waits");
    assert_eq!((&receipt["status"], &receipt["replica"]), (&json!("succeeded"), &json!("agent-b")));
}

#[test]
fn submit_takes_back_what_got_no_receipt_in_time() {
    let scripted = Scripted::start("inbox-timeout", &json!({}));
    let agent = online(&scripted);
    hold_in_deletion(&scripted.world, "held");
    let envelope = scripted.signer.sign(&scripted.signer.apply("held", 1, &json!({})));
    let (code, out, err) = submit(agent.inbox(), 10, &envelope.to_string());
    assert_eq!((code, out.as_str()), (Some(75), ""), "{err}");
    assert!(err.contains("no receipt within 10 s"), "{err}");
    until_accepted(&scripted.world, id(&envelope));
    let_go(&scripted.world, "held");
    let first = until("the receipt", BOUND, || scripted.gateway.receipts_of(id(&envelope)).pop());
    let (code, out, _) = submit(agent.inbox(), 20, &envelope.to_string());
    let again: Value = serde_json::from_str(&out).expect("a receipt");
    assert_eq!((code, &again["original"]), (Some(0), &first), "to submit it again tells what became of it");
    assert!(left(&agent).is_empty(), "{:?}", left(&agent));
}

#[test]
fn a_restart_answers_what_was_left_unanswered() {
    let scripted = Scripted::start("inbox-restart", &json!({}));
    let agent = online(&scripted);
    hold_in_deletion(&scripted.world, "held");
    let envelope = scripted.signer.sign(&scripted.signer.apply("held", 1, &json!({})));
    put(&agent, "held", envelope.to_string());
    until_accepted(&scripted.world, id(&envelope));
    agent.process().kill9();
    let_go(&scripted.world, "held");
    let started = Instant::now();
    agent.process().start_again();
    let receipt = receipt(&agent, "held");
    assert!(started.elapsed() < BOUND);
    // It ended before or after the file was read anew.
    let outcome = if receipt["reason"] == "nonce_replayed" { &receipt["original"] } else { &receipt };
    assert_eq!((&outcome["status"], &outcome["source"]), (&json!("succeeded"), &json!("inbox")), "{receipt}");
    agent.wait_log("inbox answered", BOUND);
}

#[test]
fn a_file_in_the_inboxes_of_two_replicas_runs_once() {
    let scripted = Scripted::start("inbox-two", &json!({ "lease_duration_s": 3 }));
    let first = online(&scripted);
    let envelope = scripted.signer.sign(&scripted.signer.apply("ingress", 1, &json!({ "replicas": 1 })));
    let outcome = answer(&first, "file", &envelope);
    let second = scripted.world.agent_with(options(&scripted.world, "agent-b"));
    put(&second, "file", envelope.to_string());
    first.process().terminate();
    assert_eq!(first.process().wait_exit(BOUND), Some(0));
    let replayed = receipt(&second, "file");
    assert_eq!((&replayed["reason"], &replayed["original"]), (&json!("nonce_replayed"), &outcome));
    assert_eq!(live(&scripted.world, "ingress")["metadata"]["generation"], 1, "one act");
}
