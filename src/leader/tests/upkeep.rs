//! What is kept, on an API server that is slow, or that fails in the middle.

use super::*;
use crate::kube::watch::Sighting;

/// A leader that keeps this many components, applied over the gateway.
fn keeping(count: u64) -> Bench {
    let mut bench = Bench::new();
    bench.leader.world.contact.note_answered(bench.clock.monotonic());
    for number in 1..=count {
        bench.deliver(&sign(&apply(&format!("c{number}"), number, &json!({ "number": number }))));
    }
    bench.settle();
    assert_eq!(bench.components(), count);
    bench
}

impl Bench {
    /// Works until nothing is due; at most a hundred passes.
    fn settle(&mut self) -> usize {
        (0..100).find(|_| !self.leader.work().is_zero()).expect("it comes to rest")
    }

    fn components(&self) -> u64 {
        let objects = self.api.objects.lock().unwrap();
        objects.0.keys().filter(|path| path.starts_with(COMPONENTS)).count().try_into().unwrap()
    }

    /// Deletes all components by hand, and lets the watch say so.
    fn delete_all(&mut self) {
        self.api.objects.lock().unwrap().0.retain(|path, _| !path.starts_with(COMPONENTS));
        self.leader.handle(Event::Listed(Vec::new()));
    }
}

#[test]
fn what_was_deleted_is_made_anew_however_slow_the_api_server_is() {
    let mut bench = keeping(40);
    *bench.api.latency.lock().unwrap() = Duration::from_millis(300);
    bench.delete_all();
    bench.settle();
    assert_eq!(bench.components(), 40);
}

#[test]
fn a_lease_that_cannot_be_read_for_a_moment_ends_no_reign() {
    let mut bench = keeping(2);
    bench.delete_all();
    *bench.api.broken.lock().unwrap() = Some("/leases/navin-cluster-agent");
    let before = bench.api.calls.lock().unwrap().len();
    let pause = bench.leader.work();
    assert!(bench.leader.reign.is_some());
    assert!(pause > Duration::from_millis(500), "{pause:?}");
    assert_eq!(bench.components(), 0, "nothing is written unless the Lease was read");
    assert!(bench.api.calls.lock().unwrap().len() - before <= 3);
    *bench.api.broken.lock().unwrap() = None;
    bench.advance(pause);
    bench.settle();
    assert_eq!(bench.components(), 2);
}

impl Bench {
    /// What was asked since the number of calls was `since`: the method and the path's end, reads of the Lease as
    /// `lease`.
    fn asked_since(&self, since: usize) -> Vec<String> {
        let word = |(method, path): &(Method, String)| match path.rsplit('/').next().unwrap() {
            "navin-cluster-agent" => "lease".to_owned(),
            end => format!("{method:?} {end}"),
        };
        self.api.calls.lock().unwrap()[since..].iter().map(word).collect()
    }

    fn calls(&self) -> usize {
        self.api.calls.lock().unwrap().len()
    }

    /// Changes a component by hand; the object as the watch shows it.
    fn change(&mut self, name: &str) -> (Sighting, Box<str>) {
        let mut objects = self.api.objects.lock().unwrap();
        objects.1 += 1;
        let version = objects.1.to_string();
        let object = objects.0.get_mut(&format!("{COMPONENTS}/{name}")).unwrap();
        object["spec"] = json!({ "by": "hand" });
        object["metadata"]["generation"] = json!(2);
        object["metadata"]["resourceVersion"] = json!(version);
        let sighting = Sighting {
            name: name.to_owned(),
            uid: object["metadata"]["uid"].as_str().unwrap().to_owned(),
            generation: 2,
            created: None,
            terminating: false,
        };
        (sighting, object.to_string().into())
    }
}

#[test]
fn a_component_that_the_watch_does_not_see_is_created_unread() {
    let mut bench = Bench::new();
    bench.leader.world.contact.note_answered(bench.clock.monotonic());
    bench.leader.world.board.listed(vec![]);
    bench.deliver(&sign(&apply("c1", 1, &json!({ "number": 1 }))));
    let before = bench.calls();
    bench.settle();
    let state = "Put navin-cluster-agent-state";
    assert_eq!(bench.asked_since(before), [state, "lease", "Post managedcomponents", state]);
}

#[test]
fn a_component_that_the_watch_has_not_shown_yet_is_read() {
    let mut bench = Bench::new();
    bench.leader.world.contact.note_answered(bench.clock.monotonic());
    bench.deliver(&sign(&apply("c1", 1, &json!({ "number": 1 }))));
    let before = bench.calls();
    bench.settle();
    assert!(bench.asked_since(before).contains(&"Get c1".to_owned()), "nothing was listed");
}

#[test]
fn what_the_watch_shows_changed_is_restored_over_that_version_unread() {
    let mut bench = keeping(2);
    let (sighting, object) = bench.change("c1");
    bench.leader.handle(Event::Seen(sighting, Some(object)));
    let before = bench.calls();
    bench.settle();
    assert_eq!(bench.asked_since(before), ["lease", "Put c1"]);
    assert_eq!(
        bench.api.objects.lock().unwrap().0[&format!("{COMPONENTS}/c1")]["spec"],
        json!({ "number": 1 })
    );
}

#[test]
fn what_the_watch_showed_and_is_over_is_read_anew() {
    let mut bench = keeping(2);
    let (sighting, object) = bench.change("c1");
    bench.change("c1");
    bench.leader.handle(Event::Seen(sighting, Some(object)));
    let before = bench.calls();
    bench.settle();
    let asked = bench.asked_since(before);
    assert_eq!(asked, ["lease", "Put c1", "Get c1", "lease", "Put c1"], "the first conflicts");
}

#[test]
fn what_the_watch_shows_in_sync_is_believed_only_once_it_was_read() {
    let mut bench = keeping(1);
    let object = bench.api.objects.lock().unwrap().0[&format!("{COMPONENTS}/c1")].to_string();
    let (sighting, _) = bench.change("c1");
    bench.leader.handle(Event::Seen(sighting, Some(object.into())));
    let before = bench.calls();
    bench.settle();
    assert_eq!(bench.asked_since(before), ["Get c1", "lease", "Put c1"]);
}
