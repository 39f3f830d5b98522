//! Pulses on a clock that the test holds.

use super::*;
use crate::clock::HandClock;
use crate::http::Method;
use std::io::Cursor;

/// Answers each request after 40 s, and its body is read after 40 more.
struct Slow(Arc<HandClock>);

impl Http for Slow {
    fn send(&self, _: &Request) -> Result<Response, HttpError> {
        self.0.advance(Duration::from_secs(40));
        let body = Box::new(Cursor::new(b"{}".to_vec()));
        Ok(Response { status: 200, retry_after: None, date: None, body })
    }
}

struct Bench {
    clock: Arc<HandClock>,
    heart: Heart,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(HandClock::default());
        let pulse = |name, longest| Pulse::new(name, Duration::from_secs(longest), clock.clone());
        let heart = Heart {
            dir: PathBuf::new(),
            clock: clock.clone(),
            permit: Arc::default(),
            leader: pulse("leader", 6),
            others: vec![pulse("poll", 45), pulse("watch", 300)],
        };
        Self { clock, heart }
    }

    /// The line of `health` after so many more seconds.
    fn after(&self, seconds: u64) -> Result<(), String> {
        self.clock.advance(Duration::from_secs(seconds));
        let text = self.heart.look(Duration::ZERO).to_json();
        Health::judge(text.as_bytes(), Duration::ZERO).map(drop).map_err(|why| why.to_string())
    }

    fn poll(&self) -> &Arc<Pulse> {
        &self.heart.others[0]
    }
}

#[test]
fn a_thread_that_hangs_is_named_after_its_own_limit() {
    let bench = Bench::new();
    bench.heart.leader.monotonic();
    assert_eq!(bench.after(91), Ok(()), "all have just begun");
    bench.heart.leader.took_events();
    bench.heart.leader.monotonic();
    let hung = bench.after(1).unwrap_err();
    assert_eq!(hung, "thread poll: silent for 92 s, its limit is 91 s");
    bench.poll().monotonic();
    assert_eq!(bench.after(1), Ok(()), "the watch may be silent for longer");
}

#[test]
fn a_leader_that_hangs_is_named_and_not_those_who_wait_for_it() {
    let bench = Bench::new();
    bench.clock.advance(Duration::from_secs(100));
    bench.heart.leader.took_events();
    bench.heart.leader.monotonic();
    bench.poll().monotonic();
    let hung = bench.after(92).unwrap_err();
    assert!(hung.contains("thread leader"), "{hung}");
    bench.heart.leader.monotonic();
    assert_eq!(bench.after(0), Ok(()), "it is busy, and the poll waits for it");
    bench.heart.leader.took_events();
    let hung = bench.after(0).unwrap_err();
    assert!(hung.contains("thread poll"), "it took what waited, so the poll does not wait: {hung}");
}

#[test]
fn a_thread_is_heard_by_its_clock_its_sleeps_its_requests_and_what_it_reads() {
    let bench = Bench::new();
    let silent = || bench.poll().heard(bench.clock.monotonic(), None).silent_ms;
    bench.clock.advance(Duration::from_secs(50));
    assert_eq!(silent(), 50_000);
    bench.poll().monotonic();
    assert_eq!(silent(), 0);
    bench.poll().sleep(Duration::from_secs(50));
    assert_eq!(silent(), 0);
    let http = bench.poll().over(Arc::new(Slow(bench.clock.clone())));
    let request =
        Request { method: Method::Get, path: "/".into(), body: None, timeout: Duration::ZERO, limit: 9 };
    let response = http.send(&request).unwrap();
    assert_eq!(silent(), 0, "an answer came");
    bench.clock.advance(Duration::from_secs(40));
    assert_eq!(response.bytes().unwrap(), b"{}");
    assert_eq!(silent(), 0, "and was read");
}
