//! An API server that has too much to do: it is asked again when it says so, and no sooner
//! (kubernetes/kubernetes#34938: retries after 429 made more of it). And a gateway that delivers too much.

use super::*;

const STATE: &str = "/configmaps/navin-cluster-agent-state";
const BUSY: Duration = Duration::from_secs(20);

impl Bench {
    /// For the next twenty seconds the state is answered with this.
    fn busy(&self, status: u16, retry_after: &'static str) {
        let until = self.clock.monotonic() + BUSY;
        *self.api.busy.lock().unwrap() = Some(Busy { end: STATE, status, retry_after, until });
        self.api.calls.lock().unwrap().clear();
    }

    /// How often the state was asked for or written since.
    fn asked(&self) -> usize {
        self.api.calls.lock().unwrap().iter().filter(|(_, path)| path.ends_with(STATE)).count()
    }
}

#[test]
fn a_write_of_the_state_is_repeated_when_the_server_wants_it_and_not_before() {
    // Twenty seconds in sevens; as many tries as a date that is past allows; and no more than a minute's wait.
    for (status, retry_after, tries, took_s) in [
        (429, "7", 4, 21),
        (503, "7", 4, 21),
        (429, "Mon, 30 Nov 2026 11:00:00 GMT", 21, 20),
        (429, "86400", 2, 60),
    ] {
        let mut bench = Bench::new();
        bench.leader.world.contact.note_answered(bench.clock.monotonic());
        bench.busy(status, retry_after);
        bench.deliver(&sign(&apply("c", 1, &json!({}))));
        let began = bench.clock.monotonic();
        bench.leader.work();
        assert_eq!(bench.asked(), tries + 1, "{retry_after}: tried, and then the outcome written");
        assert_eq!(bench.clock.monotonic().saturating_sub(began).as_secs(), took_s, "{retry_after}");
    }
}

#[test]
fn a_wait_for_the_server_ends_with_the_permission_to_act() {
    let mut bench = Bench::new();
    bench.leader.world.contact.note_answered(bench.clock.monotonic());
    bench.busy(429, "60");
    let tenure = bench.permit.tenure(bench.clock.monotonic()).unwrap();
    bench.permit.grant(&tenure, bench.clock.monotonic() + Duration::from_secs(5));
    bench.deliver(&sign(&apply("c", 1, &json!({}))));
    let began = bench.clock.monotonic();
    bench.leader.work();
    assert_eq!(bench.clock.monotonic().saturating_sub(began).as_secs(), 5);
    assert!(bench.leader.reign.is_none());
    assert_eq!(bench.asked(), 1);
}

#[test]
fn a_takeover_that_the_server_puts_off_is_tried_again_when_it_wants_it() {
    let mut bench = Bench::new();
    bench.permit.revoke();
    bench.leader.work();
    assert!(bench.leader.reign.is_none());
    bench.busy(429, "7");
    bench.grant(false);
    let mut steps = 0;
    while bench.leader.reign.is_none() {
        let pause = bench.leader.work();
        bench.clock.advance(pause);
        steps += 1;
        assert!(steps < 50, "it takes over in the end");
    }
    // Three in the twenty seconds, then the reading and the write of the takeover.
    assert_eq!(bench.asked(), 5);
}

#[test]
fn what_waits_to_be_judged_is_bounded_in_bytes_and_each_too_long_command_is_refused_as_such() {
    let mut bench = Bench::new();
    for number in 0..100 {
        let mut envelope = format!("[{number}").into_bytes();
        envelope.resize(1024 * 1024, b' ');
        bench.deliver_bytes(envelope);
    }
    let waiting = |bench: &Bench| -> Vec<usize> {
        bench.leader.queue.iter().map(|delivery| delivery.envelope.as_ref().unwrap().capacity()).collect()
    };
    let held = waiting(&bench);
    assert!(held.len() >= 60 && held.iter().sum::<usize>() < 17 * 1024 * 1024, "{held:?}");
    bench.leader.work();
    assert_eq!(waiting(&bench), [0_usize; 0]);
    let refused = bench.leader.world.board.take().refused;
    assert_eq!(refused.into_iter().collect::<Vec<_>>(), [("invalid_envelope", held.len() as u64)]);
    bench.deliver_bytes(sign(&apply("c", 1, &json!({}))).to_string().into_bytes());
    assert_eq!(waiting(&bench).len(), 1, "there is room again");
}

#[test]
fn what_is_refused_fills_no_log_however_much_it_differs() {
    let mut bench = Bench::new();
    for number in 0..1_000 {
        bench.deliver(&json!({ "not_an_envelope": "x".repeat(number) }));
        bench.leader.work();
    }
    assert_eq!(bench.leader.refused.len(), 64, "lines of a minute");
    assert_eq!(
        bench.leader.world.board.take().refused.get("invalid_envelope"),
        Some(&1_000),
        "each is counted"
    );
}
