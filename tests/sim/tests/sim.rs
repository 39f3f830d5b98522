//! A few hundred seeds with every build, and what the simulation promises about itself.

use navin_sim::faults::Allowed;
use navin_sim::shrink::shrink;
use navin_sim::world::{Options, run};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// How many seeds run here; thousands run by `cargo run --profile sim -p navin-sim -- --seeds 10000`.
const SEEDS: u64 = 300;

#[test]
fn no_seed_breaks_an_invariant() {
    let next = AtomicU64::new(1);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed > SEEDS {
                        return;
                    }
                    let outcome = run(seed, Options::default());
                    assert_eq!(
                        outcome.violation, None,
                        "cargo run --profile sim -p navin-sim -- --seed {seed}"
                    );
                }
            });
        }
    });
}

#[test]
fn one_seed_gives_one_trace() {
    for seed in 1..=10 {
        let [first, second] = [false, true].map(|speak| run(seed, Options { speak, ..Options::default() }));
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_ne!(first.hash, run(seed + 100, Options::default()).hash);
        assert!(!second.text.is_empty() && first.text.is_empty());
    }
}

#[test]
fn a_fault_that_is_not_allowed_does_not_happen() {
    let all = run(3, Options::default());
    assert!(all.happened.len() > 5);
    let none = run(3, Options { allowed: Allowed::Only([].into()), ..Options::default() });
    assert!(none.happened.is_empty());
    assert_eq!(none.stats.calls.iter().sum::<u64>() + none.stats.crashes, 0);
    // Without a command nothing is written, and one replica leads for the whole time.
    assert_eq!((none.stats.writes, none.stats.failovers, none.violation), (0, 1, None));
}

#[test]
fn nothing_broken_is_shrunk_to_nothing() {
    let outcome = run(3, Options::default());
    assert!(outcome.violation.is_none());
    assert!(shrink(3, &outcome).len() <= 1);
}
