//! A command that is interrupted at any of its calls, in any way, ends as if it had not been.
//!
//! First the calls of each operation are recorded; then each of them is an experiment for each fault, on
//! real processes over the proxies. Experiments run side by side in namespaces of their own.

mod check;
mod lane;
mod point;

use lane::{Lane, Outcome};
use navin_test_support::say;
use point::{Fault, Operation, Point};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Namespaces side by side: they mostly wait for leases and second deliveries.
const LANES: usize = 24;
/// How often an experiment may miss its call before that is a failure.
const MISSES: u32 = 3;

/// The experiments, the long ones first.
fn experiments(lane: &mut Lane) -> VecDeque<Point> {
    let mut points = Vec::new();
    for operation in [Operation::Create, Operation::Replace, Operation::Delete, Operation::Inventory] {
        for step in lane.record(operation) {
            let poll = step.kind == "GET commands";
            for fault in [
                Fault::KilledBefore,
                Fault::KilledAfter,
                Fault::RestartedAfter,
                Fault::AnswerLost,
                Fault::Paused,
            ] {
                let meant = match fault {
                    // Before the poll that delivers it there is no command yet.
                    Fault::KilledBefore => !poll,
                    // A read that comes late changes nothing.
                    Fault::Paused => poll || step.writes(),
                    Fault::KilledAfter | Fault::AnswerLost => true,
                    Fault::RestartedAfter => step.writes(),
                };
                if meant {
                    points.push(Point { operation, step: step.clone(), fault, missed: 0 });
                }
            }
        }
    }
    points.sort_by_key(|point| (!point.step.comes_before_acceptance(), point.fault != Fault::Paused));
    points.into()
}

/// Names the experiment whose assertion failed.
struct Named<'p>(&'p Point);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            say(&format!("failed: {}", self.0));
        }
    }
}

#[test]
fn a_command_that_is_interrupted_at_any_call_ends_as_if_it_had_not_been() {
    let started = Instant::now();
    let mut first = Lane::start();
    // The API server sends away the first calls of a kind that it does not serve yet.
    first.record(Operation::Create);
    let points = Mutex::new(experiments(&mut first));
    let outcomes = Mutex::new(Vec::<(Point, Outcome)>::new());
    let total = points.lock().unwrap_or_else(PoisonError::into_inner).len();
    let next = || points.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = |mut lane: Lane| {
        while let Some(mut point) = next() {
            let named = Named(&point);
            let outcome = lane.run(&point);
            drop(named);
            if let Some(outcome) = outcome {
                outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((point, outcome));
            } else {
                point.missed += 1;
                assert!(point.missed < MISSES, "{point}: the call never came");
                points.lock().unwrap_or_else(PoisonError::into_inner).push_back(point);
            }
        }
        lane.check_history();
    };
    thread::scope(|scope| {
        for _ in 1..LANES {
            scope.spawn(|| work(Lane::start()));
        }
        work(first);
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(outcomes.len(), total);
    report(outcomes, started.elapsed());
}

fn report(mut outcomes: Vec<(Point, Outcome)>, took: Duration) {
    outcomes.sort_by_key(|(point, _)| point.to_string());
    println!("operation  call                         fault           recovery  by");
    for (point, outcome) in &outcomes {
        println!("{point} {:>6.2} s  {}", outcome.recovery.as_secs_f64(), outcome.by);
    }
    say(&format!(
        "{} crash points, all as without the crash, in {:.0} s",
        outcomes.len(),
        took.as_secs_f64()
    ));
}
