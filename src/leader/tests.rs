//! The leader thread over an API server of a few lines and a clock that the test holds: the link, and the
//! inbox beside the gateway. What the real ones do is in the scenarios.

use super::*;
use crate::clock::HandClock;
use crate::elector::Elector;
use crate::event::Filed;
use crate::http::{Http, HttpError, Method, Request, Response};
use crate::inbox::Reply;
use crate::notices::Crier;
use crate::rules::link::{HAND_OVER_AFTER, Link};
use crate::rules::messages::Reason;
use crate::rules::vectors::{apply, sign, trust};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

mod altered;
mod filed;
mod inventory;
mod memory;
mod overload;
mod told;
mod trust;
mod upkeep;

const COMPONENTS: &str = "/apis/platform.navin.ai/v1/namespaces/navin-platform/managedcomponents";

/// An API server that holds what it is given, with resource versions as preconditions.
#[derive(Default)]
struct FakeApi {
    objects: Mutex<(BTreeMap<String, Value>, u64)>,
    clock: Arc<HandClock>,
    /// How long each call takes.
    latency: Mutex<Duration>,
    /// Paths that end so are answered 500.
    broken: Mutex<Option<&'static str>>,
    busy: Mutex<Option<Busy>>,
    calls: Mutex<Vec<(Method, String)>>,
}

/// Paths that end so are answered so, with this `Retry-After`, up to a moment.
struct Busy {
    end: &'static str,
    status: u16,
    retry_after: &'static str,
    until: Duration,
}

impl FakeApi {
    fn put(objects: &mut (BTreeMap<String, Value>, u64), path: String, mut object: Value) -> Value {
        objects.1 += 1;
        object["metadata"]["resourceVersion"] = json!(objects.1.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("u-{}", objects.1));
        }
        object["metadata"]["generation"] = json!(1);
        objects.0.insert(path, object.clone());
        object
    }
}

impl Http for FakeApi {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let path = request.path.split('?').next().unwrap().to_owned();
        self.clock.advance(*self.latency.lock().unwrap());
        self.calls.lock().unwrap().push((request.method, path.clone()));
        if self.broken.lock().unwrap().is_some_and(|end| path.ends_with(end)) {
            let body = Box::new(Cursor::new(b"{}".to_vec()));
            return Ok(Response { status: 500, retry_after: None, date: None, body });
        }
        if let Some(busy) = &*self.busy.lock().unwrap()
            && path.ends_with(busy.end)
            && self.clock.monotonic() < busy.until
        {
            let body = Box::new(Cursor::new(b"{}".to_vec()));
            let retry_after = Some(busy.retry_after.to_owned());
            return Ok(Response { status: busy.status, retry_after, date: None, body });
        }
        let body: Option<Value> = request.body.as_ref().map(|body| serde_json::from_slice(body).unwrap());
        let mut objects = self.objects.lock().unwrap();
        let (status, answer) = match (request.method, body, objects.0.get(&path).cloned()) {
            (Method::Get, _, Some(object)) => (200, object),
            (Method::Post, Some(object), _) => {
                let path = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
                (201, Self::put(&mut objects, path, object))
            }
            (Method::Delete, _, Some(object)) => {
                objects.0.remove(&path);
                (200, object)
            }
            (Method::Put, Some(object), Some(found)) => {
                let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                if version(&object) == version(&found) {
                    (200, Self::put(&mut objects, path, object))
                } else {
                    (409, json!({ "reason": "Conflict" }))
                }
            }
            (Method::Get | Method::Put | Method::Post | Method::Patch | Method::Delete, _, _) => {
                (404, json!({}))
            }
        };
        let body = Box::new(Cursor::new(answer.to_string().into_bytes()));
        Ok(Response { status, retry_after: None, date: None, body })
    }
}

/// An API server with a Lease that `a_1` holds.
fn with_lease() -> FakeApi {
    let api = FakeApi::default();
    let lease = json!({ "metadata": { "name": "navin-cluster-agent", "uid": "lease" },
        "spec": { "holderIdentity": "a_1", "leaseTransitions": 1 } });
    let path = "/apis/coordination.k8s.io/v1/namespaces/navin-platform/leases/navin-cluster-agent";
    FakeApi::put(&mut api.objects.lock().unwrap(), path.to_owned(), lease);
    api
}

struct Bench {
    leader: Leader,
    api: Arc<FakeApi>,
    clock: Arc<HandClock>,
    permit: Arc<Permit>,
    desk: Arc<Desk>,
    outbox: Arc<outbox::Queue>,
}

impl Bench {
    /// A leader that has taken over, with the manager never heard of.
    fn new() -> Self {
        let api = Arc::new(with_lease());
        let clock = Arc::clone(&api.clock);
        let (permit, desk, outbox) = (Arc::default(), Arc::default(), Arc::default());
        let leader = Leader::new(World {
            kube: Kube::new(api.clone(), "navin-platform", Duration::from_secs(5)),
            clock: clock.clone(),
            permit: Arc::clone(&permit),
            contact: Arc::default(),
            outbox: Arc::clone(&outbox),
            board: Arc::default(),
            desk: Arc::clone(&desk),
            trust: trust(),
            replica: "a".into(),
            notices: Arc::default(),
            pace: Cell::default(),
        });
        let mut bench = Self { leader, api, clock, permit, desk, outbox };
        bench.grant(true);
        bench.leader.work();
        assert!(bench.leader.reign.is_some());
        bench
    }

    /// It has taken the Lease just now.
    fn grant(&self, first_start: bool) {
        let tenure = Tenure {
            holder: "a_1".into(),
            transitions: 1,
            lease_uid: "lease".into(),
            first_start,
            since: self.clock.monotonic(),
        };
        self.permit.grant(&Arc::new(tenure), Duration::from_hours(9));
    }

    fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        self.leader.work();
    }

    fn leads(&self) -> bool {
        self.permit.tenure(self.clock.monotonic()).is_some()
    }

    fn file(&mut self, ticket: u64, envelope: &Value) {
        self.desk.open(Ticket(ticket));
        let content = Ok(envelope.to_string().into_bytes());
        self.leader.handle(Event::Filed(vec![Filed { ticket: Ticket(ticket), content }]));
    }

    fn deliver(&mut self, envelope: &Value) {
        self.deliver_bytes(envelope.to_string().into_bytes());
    }

    fn deliver_bytes(&mut self, envelope: Vec<u8>) {
        let (taken, _wait) = sync_channel(0);
        self.leader.handle(Event::Delivered { envelopes: vec![envelope], taken });
    }

    /// What became of the files, in words.
    fn replies(&self) -> Vec<(u64, String)> {
        let word = |reply: &Reply| match reply {
            Reply::UnderWay(_) => "under way".to_owned(),
            Reply::Later => "later".to_owned(),
            Reply::Answer(answer) => answer
                .receipt
                .reason
                .map_or_else(|| "succeeded".to_owned(), |reason| reason.as_str().to_owned()),
        };
        self.desk.take().replies.iter().map(|(ticket, reply)| (ticket.0, word(reply))).collect()
    }
}

#[test]
fn a_leader_that_is_offline_for_ten_minutes_hands_the_lease_over_for_a_moment() {
    let mut bench = Bench::new();
    bench.advance(Duration::from_secs(119));
    assert_eq!(bench.leader.link.now(), Some(Link::Connecting));
    bench.advance(Duration::from_secs(1));
    assert_eq!(bench.leader.link.now(), Some(Link::Offline));
    bench.advance(HAND_OVER_AFTER.saturating_sub(Duration::from_secs(1)));
    assert!(bench.leads());
    bench.advance(Duration::from_secs(1));
    assert!(!bench.leads());
    assert!(bench.leader.reign.is_none());
    let now = bench.clock.monotonic();
    assert_eq!(bench.permit.resigned_for(now), Some(HAND_OVER));
    assert_eq!(bench.permit.resigned_for(now + HAND_OVER), None);
}

#[test]
fn a_lease_that_was_resigned_is_released_however_late_the_lease_thread_looks() {
    let (clock, permit): (Arc<HandClock>, Arc<Permit>) = (Arc::default(), Arc::default());
    let (events, _events) = sync_channel(8);
    let seconds = Duration::from_secs;
    let kube = Kube::new(Arc::new(with_lease()), "navin-platform", seconds(5));
    let mut elector =
        Elector::new(kube.clone(), clock.clone(), Arc::clone(&permit), events, "a_1".to_owned(), seconds(60));
    let holder = || crate::kube::lease::get(&kube).unwrap().unwrap().0["spec"]["holderIdentity"].clone();
    elector.step();
    let tenure = permit.tenure(clock.monotonic()).expect("from itself it takes over at once");
    permit.resign(seconds(10));
    clock.set(seconds(15));
    elector.step();
    assert_eq!((holder(), permit.tenure(clock.monotonic())), (json!(""), None), "released");
    clock.set(seconds(17));
    elector.step();
    let again = permit.tenure(clock.monotonic()).expect("nobody took it");
    assert!(again.transitions > tenure.transitions);
}

#[test]
fn the_leader_wakes_when_the_link_is_to_change() {
    let mut bench = Bench::new();
    bench.clock.set(Duration::from_secs(118));
    assert_eq!(bench.leader.work(), Duration::from_secs(2));
}
