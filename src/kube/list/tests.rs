//! What is read of a list, and for how long.

use super::*;
use crate::clock::HandClock;
use crate::http::{Http, HttpError, Request, Response};
use std::io::Cursor;
use std::sync::Arc;

/// An API server whose list never ends: each page has one object of a mebibyte, and takes a minute.
struct Endless(Arc<HandClock>);

impl Http for Endless {
    fn send(&self, _: &Request) -> Result<Response, HttpError> {
        self.0.advance(Duration::from_mins(1));
        let text = "x".repeat(1024 * 1024);
        let page = format!(r#"{{"metadata":{{"continue":"more"}},"items":[{{"text":"{text}"}}]}}"#);
        Ok(Response { status: 200, retry_after: None, date: None, body: Box::new(Cursor::new(page)) })
    }
}

/// Reads it so far as may be held; why it is not whole, and how many pages were read.
fn read(most: usize) -> (String, u64) {
    let clock: Arc<HandClock> = Arc::default();
    let kube = Kube::new(Arc::new(Endless(Arc::clone(&clock))), "navin", Duration::from_secs(5));
    let whole = |object: &[u8]| Ok(object.to_vec());
    let result = all(&kube, "/apis/x/v1/ys", &whole, &Limits::new(&*clock, Vec::len, most));
    let why = result.map(|_| ()).map_err(|error| error.to_string()).unwrap_err();
    (why, clock.monotonic().as_secs() / 60)
}

#[test]
fn no_more_of_a_list_is_held_than_may_be() {
    let (why, pages) = read(3 * 1024 * 1024);
    assert!(why.contains("too much in all"), "{why}");
    assert_eq!(pages, 3, "the third goes over it");
}

#[test]
fn a_list_that_does_not_end_is_given_up_after_ten_minutes() {
    let (why, pages) = read(usize::MAX);
    assert!(why.contains("longer than 600 s"), "{why}");
    assert_eq!(pages, 10);
}
