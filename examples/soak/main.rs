//! The agent for an hour, on the real thing, while much goes wrong: does it stay as small as it was?
//!
//! `cargo run --release --example soak [-- --minutes 60]`: two replicas with the Lease's usual 15 s, a command a
//! second, components changed and deleted by hand, tokens rotated, identities issued anew, the manager away,
//! one replica killed and ended again and again, the other stopped for longer than the Lease but never ended.
//! A line a minute; in the end every command has its one outcome, the cluster shows them, and the one that
//! lived through it all takes no more memory, threads and files than after a quarter of the time. Else exit 1.

#[path = "../support/commands.rs"]
mod commands;
mod memory;
mod trouble;

use commands::{BOUND, NAMES, Queued, compare, leader, queue};
use memory::Samples;
use navin_test_support::{Agent, AgentOptions, World};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Between two commands; three times as many in a short run.
const COMMANDS: Duration = Duration::from_secs(1);
/// A run that is shorter is a short one.
const SHORT: Duration = Duration::from_mins(10);
/// How long each is good for, and so how long its record is kept: longer than any trouble.
const VALID_S: u64 = 300;
/// Between two samples.
const SAMPLES: Duration = Duration::from_secs(1);

/// What the threads share.
struct Soak {
    world: World,
    /// The first is never ended.
    agents: [Agent; 2],
    length: Duration,
    began: Instant,
    over: AtomicBool,
    /// Held by who calls the manager, or takes it away.
    manager: Mutex<()>,
    queued: AtomicU64,
    drifts: AtomicU32,
    starts: AtomicU32,
    troubles: AtomicU32,
}

fn main() -> ExitCode {
    let Some(minutes) = arguments() else {
        eprintln!("usage: cargo run --release --example soak [-- --minutes NUMBER]");
        return ExitCode::from(64);
    };
    let world = World::start("soak", &identity());
    let agents = ["agent-0", "agent-1"].map(|pod| {
        let inbox = Some(world.folder().join(format!("inbox-{pod}")));
        world.agent_with(AgentOptions { inbox, ..world.agent_options(pod) })
    });
    leader(&world, &agents);
    let soak = Soak {
        world,
        agents,
        length: Duration::from_mins(minutes),
        began: Instant::now(),
        over: AtomicBool::new(false),
        manager: Mutex::default(),
        queued: AtomicU64::new(0),
        drifts: AtomicU32::new(0),
        starts: AtomicU32::new(0),
        troubles: AtomicU32::new(0),
    };
    let (queued, samples) = thread::scope(|scope| {
        let hands = scope.spawn(|| soak.drift());
        let trouble = scope.spawn(|| soak.make_trouble());
        let watching = scope.spawn(|| soak.watch());
        let queued = soak.command();
        hands.join().expect("the hands rest");
        trouble.join().expect("the trouble ends");
        soak.await_outcomes(&queued);
        soak.over.store(true, Ordering::Relaxed);
        (queued, watching.join().expect("the samples"))
    });
    let differences = compare(&soak.world, &queued);
    for difference in &differences {
        println!("DIFFERENT: {difference}");
    }
    let flat = samples.report();
    println!(
        "{} commands, {} changes by hand, {} troubles, {} starts of a replica",
        queued.len(),
        soak.drifts.load(Ordering::Relaxed),
        soak.troubles.load(Ordering::Relaxed),
        soak.starts.load(Ordering::Relaxed)
    );
    if differences.is_empty() && flat {
        println!(
            "every command has one outcome, the cluster shows them, and the agent stayed within its bounds"
        );
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What every identity says.
fn identity() -> Value {
    json!({ "lease_duration_s": 15, "report_interval_s": 30 })
}

fn arguments() -> Option<u64> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => Some(60),
        [option, number] if option == "--minutes" => number.parse().ok().filter(|n| (2..=10_000).contains(n)),
        _ => None,
    }
}

impl Soak {
    /// Between two commands.
    fn pace(&self) -> Duration {
        if self.length < SHORT { COMMANDS / 3 } else { COMMANDS }
    }

    /// The time before the end in which nothing is done by hand any more, so that each component is commanded
    /// once more.
    fn quiet(&self) -> Duration {
        self.pace() * u32::try_from(NAMES + 10).unwrap_or(u32::MAX)
    }

    fn left(&self) -> Duration {
        self.length.saturating_sub(self.began.elapsed())
    }

    /// Queues commands until the time is over.
    fn command(&self) -> Vec<Queued> {
        let mut queued = Vec::new();
        for number in 1.. {
            if self.left().is_zero() {
                break;
            }
            let manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
            queued.push(queue(&self.world, number, Some(VALID_S)));
            drop(manager);
            self.queued.store(number, Ordering::Relaxed);
            thread::sleep(self.pace());
        }
        queued
    }

    /// How many commands have an outcome; none while the manager is away.
    fn done(&self) -> Option<u64> {
        let _manager = self.manager.try_lock().ok()?;
        let shown = self.world.manager.cluster(self.world.cluster_id())["commands"].take();
        let count = |status: &str| shown[status].as_u64().unwrap_or(0);
        Some(self.queued.load(Ordering::Relaxed).saturating_sub(count("queued") + count("delivered")))
    }

    /// Waits until every command has its outcome, or long enough.
    fn await_outcomes(&self, queued: &[Queued]) {
        let began = Instant::now();
        while self.done() != Some(queued.len() as u64) && began.elapsed() < 4 * BOUND {
            thread::sleep(SAMPLES);
        }
    }

    /// Samples, and prints a line a minute.
    fn watch(&self) -> Samples {
        let mut samples = Samples::default();
        memory::head();
        let (mut minute, mut done) = (0, 0);
        while !self.over.load(Ordering::Relaxed) {
            let readings = samples.take(self.began.elapsed(), &self.agents);
            if self.began.elapsed().as_secs() / 60 >= minute {
                done = self.done().unwrap_or(done);
                let leads = [0, 1].map(|number| self.agents[number].leads(&self.world.namespace));
                let starts = self.starts.load(Ordering::Relaxed);
                memory::line(minute, &readings, leads, done, starts);
                minute += 1;
            }
            thread::sleep(SAMPLES);
        }
        samples
    }
}
