//! Makes a failing run small: delta debugging over the numbers of the faults and of the workload.

use crate::faults::Allowed;
use crate::world::{Options, Outcome, run};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long shrinking may take.
const LIMIT: Duration = Duration::from_mins(1);

/// The fewest faults and items, as far as was found in time, with which `seed` breaks the same invariant.
#[must_use]
pub fn shrink(seed: u64, first: &Outcome) -> BTreeSet<u64> {
    let invariant = first.violation.as_ref().map(|violation| violation.invariant);
    let breaks = |numbers: &[u64]| {
        let allowed = Allowed::Only(numbers.iter().copied().collect());
        let outcome = run(seed, Options { allowed, speak: false, script: None });
        outcome.violation.map(|violation| violation.invariant) == invariant
    };
    let mut numbers: Vec<u64> = first.happened.clone();
    let began = Instant::now();
    let mut parts = 2;
    while numbers.len() > 1 && began.elapsed() < LIMIT {
        let size = numbers.len().div_ceil(parts);
        let without = (0..parts).map(|part| {
            let (from, to) = (part * size, ((part + 1) * size).min(numbers.len()));
            numbers.iter().take(from).chain(numbers.iter().skip(to)).copied().collect::<Vec<u64>>()
        });
        match without.filter(|rest| rest.len() < numbers.len()).find(|rest| breaks(rest)) {
            Some(rest) => {
                numbers = rest;
                parts = parts.saturating_sub(1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(numbers.len()),
        }
    }
    numbers.into_iter().collect()
}
