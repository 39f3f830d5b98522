//! What somebody changed by hand: until it is as it was approved.

use crate::Plan;
use crate::lab::{BOUND, Lab, apply, component, things};
use crate::raw::Raw;
use crate::table::{Goal, Row, Sample};
use crate::units::milliseconds;
use navin_test_support::Namespace;
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How many objects each keeps.
const KEPT: u32 = 20;
/// From one restored to the next patch.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest life of a watch, in seconds: its thread ends with it.
const WATCHED_S: u32 = 300;

pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let world = lab.world("drift", &json!({}));
    let agent = lab.ours(&world, "drift-0");
    agent.wait_leads(&world.namespace, BOUND);
    for number in 0..KEPT {
        apply(&world, &name(number), number);
    }
    let limit = lab.cluster.namespace("drift-limit");
    restore_at_once(lab, &limit);
    let mut running = vec![];
    let mut places = vec![
        Place::watched(lab, &world.namespace.components_path()),
        Place::watched(lab, &limit.components_path()),
    ];
    for peer in &lab.peers {
        let namespace = lab.cluster.namespace(&format!("drift-{}", peer.name)).name;
        let replica = lab.theirs_in(&namespace, peer, "drift", "drift", KEPT);
        replica.wait("synced", BOUND);
        running.push(replica);
        places.push(Place::watched(lab, &things(&namespace)));
    }
    let mut hand = Raw::connect(lab);
    let mut measured = vec![vec![]; places.len()];
    for number in 0..plan.times(20) {
        for (place, measured) in places.iter().zip(&mut measured) {
            thread::sleep(PAUSE);
            measured.push(place.restored(&mut hand, &name(number % KEPT)));
        }
    }
    let sample = |place: usize, part: fn(&Restored) -> f64| Sample::of(measured[place].iter().map(part));
    let row = |what: &str, part: fn(&Restored) -> f64, goals: Vec<Goal>| Row {
        what: what.to_owned(),
        ours: sample(0, part),
        limit: Some(("watch event, one PUT", sample(1, part))),
        peers: lab.peers.iter().zip(2..).map(|(peer, place)| (peer.name, sample(place, part))).collect(),
        goals,
        ..Row::default()
    };
    let goals = vec![Goal::AtMost(5.5), Goal::TimesLimit(1.1)];
    vec![
        Row {
            published: "Karmada 10.5 ms; OCM work 63 to 347 s",
            ..row("drift: patch by hand sent to restored, ms", |restored| restored.sent, goals)
        },
        row("the same from the patch's answer, ms", |restored| restored.answered, vec![]),
    ]
}

fn name(number: u32) -> String {
    format!("want-{number:04}")
}

/// Milliseconds until an independent watch saw it restored.
#[derive(Clone, Copy)]
struct Restored {
    /// Since the patch was sent.
    sent: f64,
    /// Since it was answered; the restored object may be seen before that.
    answered: f64,
}

/// An object as the independent watch saw it.
struct Seen {
    at: Instant,
    name: String,
    color: String,
}

/// Where somebody keeps objects, and an independent watch of it.
struct Place {
    path: String,
    seen: Receiver<Seen>,
}

impl Place {
    fn watched(lab: &Lab, path: &str) -> Self {
        let (send, seen) = channel();
        let mut watch = Raw::connect(lab);
        watch.open(&watch_of(path));
        thread::spawn(move || follow(watch, |line, at| tell(&send, line, at)));
        Self { path: path.to_owned(), seen }
    }

    fn restored(&self, hand: &mut Raw, name: &str) -> Restored {
        self.seen.try_iter().for_each(drop);
        let path = format!("{}/{name}", self.path);
        let sent = Instant::now();
        let change = br#"{"spec":{"color":"red"}}"#;
        let (status, answer) = hand.call("PATCH", &path, "application/merge-patch+json", change);
        let answered = Instant::now();
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&answer));
        let mut changed = false;
        loop {
            let seen = self.seen.recv_timeout(BOUND).expect("the object, restored");
            match seen.color.as_str() {
                "red" if seen.name == name => changed = true,
                "blue" if seen.name == name && changed => {
                    let since = |from| milliseconds(seen.at.saturating_duration_since(from));
                    return Restored { sent: since(sent), answered: since(answered) };
                }
                _ => {}
            }
        }
    }
}

fn watch_of(path: &str) -> String {
    format!("{path}?watch=true&timeoutSeconds={WATCHED_S}")
}

/// Calls for each line of a watch, at the time it came.
fn follow(mut watch: Raw, mut each: impl FnMut(&[u8], Instant)) {
    watch.patient();
    let mut text = Vec::new();
    while watch.chunk(&mut text) {
        let at = Instant::now();
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            each(&text[..end], at);
            text.drain(..=end);
        }
    }
}

fn tell(to: &Sender<Seen>, line: &[u8], at: Instant) {
    let event: Value = serde_json::from_slice(line).expect("a line of a watch");
    let text = |pointer| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let seen = Seen { at, name: text("/object/metadata/name"), color: text("/object/spec/color") };
    // Nobody listens any more once all is measured.
    drop(to.send(seen));
}

/// The bare limit: what is seen changed is written as it was, with nothing decoded, judged or asked.
fn restore_at_once(lab: &Lab, place: &Namespace) {
    let (path, namespace) = (place.components_path(), place.name.as_str());
    let token = lab.cluster.service_account_token(namespace, "navin-cluster-agent");
    let connect = || Raw::connect_to(lab.cluster.url(), lab.cluster.ca_pem(), &token);
    let (mut watch, mut write) = (connect(), connect());
    for number in 0..KEPT {
        let body = component(namespace, &name(number), number, "");
        let (status, _) = write.call("POST", &path, "application/json", body.as_bytes());
        assert_eq!(status, 201, "{path}");
    }
    let namespace = namespace.to_owned();
    watch.open(&watch_of(&path));
    let restore = move |line: &[u8], _| {
        let text = String::from_utf8_lossy(line);
        let member = |name: &str| {
            let (_, rest) = text.split_once(&format!("\"{name}\":\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        if member("color").as_deref() == Some("red") {
            let (name, version) = (member("name"), member("resourceVersion"));
            let (name, version) = (name.expect("a name"), version.expect("a version"));
            let body = component(&namespace, &name, 0, &version);
            let path = format!("{path}/{name}?timeout=5s&fieldManager=limit");
            let (status, _) = write.call("PUT", &path, "application/json", body.as_bytes());
            assert_eq!(status, 200, "{path}");
        }
    };
    thread::spawn(move || follow(watch, restore));
}
