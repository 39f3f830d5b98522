//! `cargo run --profile sim -p navin-sim -- --seeds N`: runs the seeds 1 to N on all cores and sums up.
//! `-- --seed S`: replays one, shrinks it if it breaks something, and prints what happened.

use navin_sim::faults::{Allowed, CALL_KINDS};
use navin_sim::stats::Stats;
use navin_sim::world::{Options, Outcome, run};
use navin_sim::{shrink, speech};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

const USAGE: &str = "usage: navin-sim --seeds N [--from S] | --seed S [--whole]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)?.parse::<u64>().ok()
    };
    match (value("--seed"), value("--seeds")) {
        (Some(seed), _) => replay(seed, arguments.iter().any(|argument| argument == "--whole")),
        (None, Some(count)) => many(value("--from").unwrap_or(1), count),
        (None, None) => {
            eprintln!("{USAGE}");
            ExitCode::from(64)
        }
    }
}

fn replay(seed: u64, whole: bool) -> ExitCode {
    let first = run(seed, Options::default());
    let allowed = match (&first.violation, whole) {
        (Some(_), false) => Allowed::Only(shrink::shrink(seed, &first)),
        _ => Allowed::All,
    };
    speech::listen();
    let outcome = run(seed, Options { allowed, speak: true, script: None });
    print!("{}", outcome.text);
    println!("faults and items: {} of {}", outcome.happened.len(), first.happened.len());
    verdict(seed, &outcome)
}

fn verdict(seed: u64, outcome: &Outcome) -> ExitCode {
    let Some(violation) = &outcome.violation else {
        println!("seed {seed} breaks nothing; trace {:016x}", outcome.hash);
        return ExitCode::SUCCESS;
    };
    println!("seed {seed} breaks: {}\n  {}", violation.invariant, violation.what);
    println!("  replay: cargo run --profile sim -p navin-sim -- --seed {seed}");
    ExitCode::FAILURE
}

fn many(from: u64, count: u64) -> ExitCode {
    let began = Instant::now();
    let next = AtomicU64::new(from);
    let broken = AtomicBool::new(false);
    let sum = Mutex::new(Stats::default());
    let work = || {
        let mut mine = Stats::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= from + count || broken.load(Relaxed) {
                break;
            }
            if let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| run(seed, Options::default()))) {
                mine.add(&outcome.stats);
                if outcome.violation.is_some() && !broken.swap(true, Relaxed) {
                    let _failure = verdict(seed, &outcome);
                }
            } else {
                broken.store(true, Relaxed);
                println!("seed {seed} breaks: no panic");
            }
        }
        if let Ok(mut sum) = sum.lock() {
            sum.add(&mine);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    let seeds = next.load(Relaxed).min(from + count) - from;
    if let Ok(sum) = sum.lock() {
        summary(seeds, &sum, began.elapsed().as_secs_f64());
    }
    if broken.load(Relaxed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn summary(seeds: u64, sum: &Stats, seconds: f64) {
    println!("seeds               {seeds}");
    println!("  counted apart     {}", sum.apart);
    println!("steps               {}", sum.steps);
    println!("virtual hours       {}", sum.virtual_seconds / 3600);
    println!("crashes             {}", sum.crashes);
    println!("failovers           {}", sum.failovers);
    println!("component writes    {}", sum.writes);
    println!("late creates gone   {}", sum.late_creates);
    for (outcome, count) in &sum.outcomes {
        println!("outcome {outcome:<24} {count}");
    }
    for (reason, count) in &sum.files {
        println!("file    {reason:<24} {count}");
    }
    for (kind, count) in CALL_KINDS.iter().zip(sum.calls) {
        println!("call    {kind:<24} {count}");
    }
    for (kind, count) in &sum.troubles {
        println!("trouble {kind:<28} {count}");
    }
    println!("seconds             {seconds:.1}");
}
