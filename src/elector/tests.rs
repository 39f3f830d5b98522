//! When the Lease is taken, kept, lost and left.

use super::*;
use crate::clock::HandClock;
use crate::http::{Http, HttpError, Request, Response};
use std::io::Cursor;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;

/// Finds nothing, and makes nothing, as where the namespace was deleted; counts.
#[derive(Default)]
struct Nowhere(AtomicU32);

impl Http for Nowhere {
    fn send(&self, _: &Request) -> Result<Response, HttpError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Response { status: 404, retry_after: None, date: None, body: Box::new(Cursor::new("{}")) })
    }
}

#[test]
fn where_nothing_is_found_the_lease_is_tried_no_faster_than_a_follower_looks() {
    let (clock, http) = (Arc::new(HandClock::default()), Arc::new(Nowhere::default()));
    let duration = Duration::from_secs(3);
    let kube = Kube::new(http.clone(), "navin-platform", duration / 3);
    let (leader, _events) = sync_channel(1);
    let mut elector = Elector::new(kube, clock.clone(), Arc::default(), leader, "a_1".to_owned(), duration);
    while clock.monotonic() < Duration::from_mins(1) {
        let pause = elector.step();
        clock.sleep(pause);
    }
    // The Lease, the state, and the making of the Lease.
    let calls = http.0.load(Ordering::Relaxed);
    assert!((100..=3 * 60).contains(&calls), "{calls} calls in a minute");
}
