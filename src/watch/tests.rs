//! The watch over a server of a few lines and a clock that the test holds.

use super::*;
use crate::clock::HandClock;
use crate::http::{Http, HttpError, Request, Response};
use crate::rules::state::State;
use std::io::Cursor;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

/// What is answered to a list and to a watch, and when what was asked.
struct FakeApi {
    list: (u16, &'static str),
    watch: (u16, &'static str),
    retry_after: Option<&'static str>,
    clock: Arc<HandClock>,
    asked: Mutex<Vec<(Part, Duration)>>,
}

/// Lists well.
const EMPTY: (u16, &str) = (200, r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#);

impl Http for FakeApi {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let part = if request.path.contains("watch=") { Part::Watch } else { Part::List };
        self.asked.lock().unwrap().push((part, self.clock.monotonic()));
        let (status, body) = if part == Part::Watch { self.watch } else { self.list };
        let retry_after = self.retry_after.filter(|_| status != 200).map(str::to_owned);
        Ok(Response { status, retry_after, date: None, body: Box::new(Cursor::new(body.as_bytes())) })
    }
}

struct Bench {
    watcher: Watcher,
    api: Arc<FakeApi>,
    clock: Arc<HandClock>,
    events: Receiver<Event>,
}

impl Bench {
    fn new(list: (u16, &'static str), watch: (u16, &'static str), retry_after: Option<&'static str>) -> Self {
        let clock = Arc::new(HandClock::default());
        let (leader, events) = sync_channel(1_000);
        let api = Arc::new(FakeApi {
            list,
            watch,
            retry_after,
            clock: Arc::clone(&clock),
            asked: Mutex::default(),
        });
        let board = Arc::new(Board::default());
        board.lead(clock.wall(), clock.monotonic(), Arc::new(State::new(1, "a_1")));
        let watcher = Watcher {
            kube: Kube::new(api.clone(), "navin-platform", Duration::from_secs(5)),
            clock: clock.clone(),
            leader,
            board: Arc::clone(&board),
            progress: Progress::default(),
        };
        Self { watcher, api, clock, events }
    }

    /// Steps for a minute; when what was asked.
    fn minute(&mut self, mut check: impl FnMut(&Watcher)) -> Vec<(Part, Duration)> {
        while self.clock.monotonic() < Duration::from_mins(1) {
            let pause = self.watcher.step();
            check(&self.watcher);
            self.clock.sleep(pause);
        }
        self.api.asked.lock().unwrap().clone()
    }
}

#[test]
fn a_list_that_works_does_not_hide_a_watch_that_does_not() {
    // As with a Role that has only the one verb.
    let mut bench = Bench::new(EMPTY, (403, "{}"), None);
    let mut listed = None;
    bench.minute(|watcher| {
        let again = listed.is_some() && listed != watcher.progress.listed;
        assert!(!again || watcher.progress.broken == Some(Part::Watch), "it is not watched again");
        listed = watcher.progress.listed;
    });
    assert!(bench.events.try_iter().count() > 5, "it is listed again and again");
    assert_eq!(bench.watcher.progress.said.len(), 1);
}

/// kubernetes/kubernetes#34938: an overloaded server got more load from retries.
#[test]
fn a_server_that_asks_to_be_left_alone_is_left_alone_by_lists_and_watches() {
    for (retry_after, least, most) in [("7", 7, 9), ("86400", 60, 1)] {
        for (list, watch) in
            [((429, "{}"), EMPTY), ((503, ""), EMPTY), (EMPTY, (429, "{}")), (EMPTY, (503, ""))]
        {
            let mut bench = Bench::new(list, watch, Some(retry_after));
            let asked = bench.minute(|_| ());
            let refused = if list == EMPTY { Part::Watch } else { Part::List };
            let times: Vec<Duration> =
                asked.iter().filter(|(part, _)| *part == refused).map(|(_, at)| *at).collect();
            assert!((1..=most).contains(&times.len()), "{retry_after}: {times:?}");
            let kept = times.is_sorted_by(|one, next| next.saturating_sub(*one).as_secs() >= least);
            assert!(kept, "{retry_after}: {times:?}");
        }
    }
}

#[test]
fn another_leadership_begins_with_a_list_also_where_the_one_before_was_not_seen_to_end() {
    let mut bench = Bench::new(EMPTY, (200, ""), None);
    let asked =
        |bench: &Bench| bench.api.asked.lock().unwrap().iter().map(|asked| asked.0).collect::<Vec<_>>();
    bench.watcher.step();
    bench.clock.sleep(LEAST);
    bench.watcher.step();
    assert_eq!(asked(&bench), [Part::List, Part::Watch]);
    let board = Arc::clone(&bench.watcher.board);
    board.stepped_down();
    board.lead(bench.clock.wall(), bench.clock.monotonic(), Arc::new(State::new(2, "a_1")));
    bench.watcher.step();
    assert_eq!(asked(&bench), [Part::List, Part::Watch, Part::List]);
}
