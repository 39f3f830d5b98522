//! What the report and the log say of what goes on for long.

use super::*;

#[test]
fn a_takeover_that_is_done_again_does_not_make_the_manager_go_away_once_more() {
    let mut bench = Bench::new();
    bench.advance(Duration::from_mins(2));
    let link = |bench: &Bench| bench.leader.link.now();
    assert_eq!(link(&bench), Some(Link::Offline));
    for _ in 0..2 {
        bench.leader.step_down("test");
        bench.advance(Duration::from_mins(4));
        assert_eq!(link(&bench), Some(Link::Offline));
    }
    assert_eq!(bench.leader.world.board.take().offline_periods, 1);
    bench.advance(HAND_OVER_AFTER.saturating_sub(Duration::from_mins(8)));
    assert!(!bench.leads(), "counted from when it went offline");
}

#[test]
fn after_a_hand_over_ten_minutes_are_counted_anew_and_the_period_goes_on() {
    let mut bench = Bench::new();
    bench.advance(Duration::from_mins(2));
    bench.advance(HAND_OVER_AFTER);
    assert!(!bench.leads());
    assert!(bench.permit.take_resigned().is_some());
    bench.grant(false);
    bench.advance(Duration::from_mins(5));
    bench.advance(HAND_OVER_AFTER.saturating_sub(Duration::from_secs(1)));
    assert!(bench.leads());
    assert_eq!(bench.leader.world.board.take().offline_periods, 1);
    bench.leader.world.contact.note_answered(bench.clock.monotonic());
    bench.leader.work();
    bench.advance(Duration::from_mins(3));
    assert_eq!(bench.leader.world.board.take().offline_periods, 2, "it was back in between");
}

#[test]
fn the_state_counts_as_full_until_there_is_room_whatever_else_is_taken_in() {
    let mut bench = Bench::new();
    let full = |bench: &Bench| bench.leader.world.board.take().full;
    bench.leader.world.contact.note_answered(Duration::from_secs(1));
    bench.advance(Duration::from_secs(1));
    let spec = json!({ "text": "x".repeat(240 * 1024) });
    let mut sequence = 0;
    let mut deliver = |bench: &mut Bench, name: &str, spec: &Value| {
        sequence += 1;
        bench.deliver(&sign(&apply(name, sequence, spec)));
        bench.leader.work();
        bench.leader.work();
    };
    deliver(&mut bench, "a", &spec);
    deliver(&mut bench, "b", &spec);
    *bench.api.broken.lock().unwrap() = Some("/a");
    deliver(&mut bench, "a", &spec);
    assert!(!full(&bench));
    deliver(&mut bench, "b", &spec);
    assert!(full(&bench), "it is left to the gateway");
    deliver(&mut bench, "c", &json!({}));
    assert!(full(&bench), "that a smaller one fits changes nothing");
    *bench.api.broken.lock().unwrap() = None;
    for _ in 0..35 {
        bench.advance(Duration::from_secs(1));
    }
    assert!(!full(&bench), "though nothing was delivered since");
}

#[test]
fn the_same_envelope_is_refused_aloud_once_a_minute() {
    let mut bench = Bench::new();
    let mut forged = sign(&apply("a", 1, &json!({})));
    forged["payload"]["sequence"] = json!(2);
    let aloud = |bench: &mut Bench| {
        bench.deliver(&forged);
        bench.leader.work();
        bench.leader.refused.len()
    };
    assert_eq!([aloud(&mut bench), aloud(&mut bench)], [1, 1]);
    let counted = bench.leader.world.board.take().refused;
    assert_eq!(counted.get("invalid_signature"), Some(&2), "each is counted");
}

/// Begins anew with what a former leader accepted and may have sent, long after its window.
fn with_a_write_without_an_answer(bench: &mut Bench) {
    bench.clock.advance(Duration::from_hours(1));
    bench.begin_anew(|state| {
        state["components"] = json!({});
        let envelope = sign(&apply("a", 1, &json!({ "of": 1 })));
        state["commands"]["nonce-of-the-test-000001"]["phase"] =
            json!({ "accepted": { "envelope": envelope } });
    });
}

fn accepted(bench: &Bench) -> usize {
    bench.leader.reign.as_ref().unwrap().store.state().counts().accepted
}

/// Posts what is noted, and reads the messages of these Events.
fn events(bench: &Bench, reason: &str) -> Vec<String> {
    let world = &bench.leader.world;
    let mut crier =
        Crier::new(world.kube.clone(), world.clock.clone(), Arc::clone(&world.notices), "a".into(), None);
    for _ in 0..4 {
        crier.step();
    }
    let objects = bench.api.objects.lock().unwrap();
    let told = objects.0.values().filter(|object| object["reason"] == reason);
    told.filter_map(|object| Some(object["message"].as_str()?.to_owned())).collect()
}

#[test]
fn a_write_that_cannot_be_settled_over_what_is_not_to_be_read_whole_is_told_and_ends_when_that_is_gone() {
    let mut bench = Bench::applied(1);
    let path = format!("{COMPONENTS}/a");
    let deep: Value = serde_json::from_str(&format!("{}0{}", "[".repeat(122), "]".repeat(122))).unwrap();
    let by_hand = json!({ "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent", "metadata": { "name": "a" }, "spec": deep });
    FakeApi::put(&mut bench.api.objects.lock().unwrap(), path.clone(), by_hand);
    with_a_write_without_an_answer(&mut bench);
    assert_eq!(accepted(&bench), 1, "nothing is concluded");
    let told = events(&bench, "NotSettled");
    assert!(told.iter().any(|message| message.contains("make it smaller")), "{told:?}");
    bench.api.objects.lock().unwrap().0.remove(&path);
    bench.advance(Duration::from_mins(1));
    assert_eq!(accepted(&bench), 0);
}

#[test]
fn a_write_that_cannot_be_settled_for_want_of_a_right_is_told_and_ends_when_that_is_given() {
    let mut bench = Bench::applied(1);
    let until = bench.clock.monotonic() + Duration::from_hours(2);
    *bench.api.busy.lock().unwrap() =
        Some(Busy { end: "managedcomponents/a", status: 403, retry_after: "1", until });
    with_a_write_without_an_answer(&mut bench);
    bench.advance(Duration::from_mins(1));
    assert_eq!(accepted(&bench), 1, "nothing is concluded");
    let told = events(&bench, "NotSettled");
    assert!(told.iter().any(|message| message.contains("apply the rights")), "{told:?}");
    *bench.api.busy.lock().unwrap() = None;
    for _ in 0..4 {
        bench.advance(Duration::from_mins(1));
    }
    assert_eq!(accepted(&bench), 0);
}
