//! The streams of changes: of the components and of the Lease.
//!
//! - The events are the same in whatever pieces the stream arrives.
//! - Of a stream that breaks, or ends, after any byte, the events are the first of the whole one's. Only a line
//!   that is wrong behind its value may be a right one before that.
//! - A line is as another reader sees it.

use crate::answers::{Answer, Arrival, cuts};
use crate::kube::client;
use navin_cluster_agent::kube::watch::{self, Change, Status};
use navin_cluster_agent::kube::{Kube, Object, lease};
use navin_cluster_agent::rules::json::parse_foreign;
use serde_json::Value;
use std::fmt::Debug;

/// Larger than any line here.
const ANY_SIZE: usize = 64 * 1024 * 1024;

/// Checks bytes as either stream, cut at some places.
pub fn check(bytes: &[u8]) {
    check_cut(bytes, &cuts(bytes).collect::<Vec<_>>());
}

/// Checks bytes as either stream, cut after each of so many bytes.
pub fn check_cut(bytes: &[u8], cuts: &[usize]) {
    let components = |kube: &Kube| {
        let mut watch = watch::open(kube, "1", 240).expect("it is answered");
        gather(|| watch.read())
    };
    let whole = pieces(bytes, cuts, components);
    for ((change, version), line) in whole.events.iter().zip(bytes.split(|byte| *byte == b'\n')) {
        if let Ok(line) = parse_foreign(line, ANY_SIZE) {
            same(change, version.as_deref(), &line);
        }
    }
    let leases = |kube: &Kube| {
        let mut watch = lease::watch(kube, "1", 60).expect("it is answered");
        gather(|| watch.read())
    };
    let whole = pieces(bytes, cuts, leases);
    assert!(whole.events.iter().all(|lease: &Object| lease.name() == Some(lease::NAME)));
}

/// What a stream gave, and whether it ended in order.
#[derive(Debug, PartialEq)]
struct Read<T> {
    events: Vec<T>,
    orderly: bool,
}

fn gather<T>(mut next: impl FnMut() -> Result<Option<T>, String>) -> Read<T> {
    let mut events = Vec::new();
    loop {
        match next() {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return Read { events, orderly: true },
            Err(_) => return Read { events, orderly: false },
        }
    }
}

/// The stream in one piece, in several, and cut.
fn pieces<T: Debug + PartialEq>(bytes: &[u8], cuts: &[usize], read: impl Fn(&Kube) -> Read<T>) -> Read<T> {
    let answer = Answer { status: 200, body: bytes.to_vec(), ..Answer::default() };
    let arriving = |arrival| read(&client(std::slice::from_ref(&answer), arrival).0);
    let whole = arriving(Arrival::InPieces(usize::MAX));
    for most in [1, 7] {
        assert_eq!(whole, arriving(Arrival::InPieces(most)), "it depends on the pieces");
    }
    for &cut in cuts {
        let broken = arriving(Arrival::Broken(cut));
        assert!(whole.events.starts_with(&broken.events), "of a stream that broke after {cut} bytes");
        // It may have ended in order before: a Lease that is deleted ends it.
        assert!(!broken.orderly || broken.events == whole.events, "a stream that broke ended in order");
        let ended = arriving(Arrival::Ended(cut)).events;
        let more = ended.len() == whole.events.len() + 1 && !whole.orderly;
        let common = if more { &ended[..whole.events.len()] } else { &ended[..] };
        assert!(whole.events.starts_with(common), "of a stream that ended after {cut} bytes");
    }
    whole
}

/// One change, beside the line that it is of.
fn same(change: &Change, version: Option<&str>, line: &Value) {
    let metadata = &line["object"]["metadata"];
    let text = |member: &str| metadata[member].as_str().unwrap_or_default();
    assert_eq!(version, metadata["resourceVersion"].as_str());
    let kind = line["type"].as_str().expect("a type");
    match change {
        Change::Seen(sighting, status) => {
            assert!(["ADDED", "MODIFIED"].contains(&kind));
            assert_eq!((sighting.name.as_str(), sighting.uid.as_str()), (text("name"), text("uid")));
            assert_eq!(sighting.terminating, metadata["deletionTimestamp"].is_string());
            assert!(*status != Status::Absent || line["object"]["status"].is_null());
        }
        Change::Gone(name) => assert_eq!((kind, name.as_str()), ("DELETED", text("name"))),
        Change::Bookmark => assert_eq!(kind, "BOOKMARK"),
        Change::Failed(_) => assert!(!["ADDED", "MODIFIED", "DELETED", "BOOKMARK"].contains(&kind)),
    }
}
