//! What is kept, on an API server that is slow, or that fails in the middle.

use super::*;

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
