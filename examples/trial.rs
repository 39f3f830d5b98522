//! Many commands under a leader that keeps dying, on the real thing: an API server, the manager, two agents.
//!
//! `cargo run --release --example trial [-- --commands 1000]` queues commands over fifty names at the manager
//! while the leader is killed every few seconds; in the end every command has its one outcome, and the
//! cluster shows what the newest of each name asked for. Exit 1 on any difference.

#[path = "support/commands.rs"]
mod commands;

use commands::{BOUND, Queued, compare, leader, queue};
use navin_test_support::{Agent, Reading, World, until};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Short, so that there are many fail-overs.
const LEASE_S: u64 = 3;
/// How long a leader lives once it leads.
const LIFE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let Some(commands) = arguments() else {
        eprintln!("usage: cargo run --release --example trial [-- --commands NUMBER]");
        return ExitCode::from(64);
    };
    let world = World::start("trial", &json!({ "lease_duration_s": LEASE_S }));
    let agents = [world.agent("agent-0"), world.agent("agent-1")];
    leader(&world, &agents);
    let started = Instant::now();
    let over = AtomicBool::new(false);
    let (queued, kills) = thread::scope(|scope| {
        let killing = scope.spawn(|| kill_leaders(&world, &agents, &over));
        let queued: Vec<Queued> = (1..=commands).map(|number| queue(&world, number, None)).collect();
        println!("{commands} commands queued in {:.1} s", started.elapsed().as_secs_f64());
        let ended = await_outcomes(&world, commands);
        over.store(true, Ordering::Relaxed);
        let kills = killing.join().expect("the killing ends");
        println!("{ended} outcomes after {:.1} s", started.elapsed().as_secs_f64());
        (queued, kills)
    });
    let term = world.namespace.state().map_or(Value::Null, |state| state["term"].clone());
    println!("{kills} kills, {term} takeovers");
    for agent in &agents {
        println!("{}: {}", agent.pod(), memory(agent));
    }
    let differences = compare(&world, &queued);
    for difference in &differences {
        println!("DIFFERENT: {difference}");
    }
    if differences.is_empty() {
        println!("every command has one outcome, and the cluster shows them");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn arguments() -> Option<u64> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => Some(1_000),
        [option, number] if option == "--commands" => number.parse().ok().filter(|number| *number > 0),
        _ => None,
    }
}

/// Kills one leader after another: one starts again at once and takes over from itself, the next only when
/// the other replica has taken over.
fn kill_leaders(world: &World, agents: &[Agent; 2], over: &AtomicBool) -> u32 {
    let mut kills = 0;
    while !over.load(Ordering::Relaxed) {
        let victim = leader(world, agents);
        thread::sleep(LIFE);
        victim.process().kill9();
        kills += 1;
        if kills % 2 == 0 {
            until("the other to lead", BOUND, || (!victim.leads(&world.namespace)).then_some(()));
        }
        victim.process().start_again();
    }
    kills
}

/// Waits until no command is without an outcome, or nothing has happened for long; how many have one.
fn await_outcomes(world: &World, commands: u64) -> u64 {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let shown = world.manager.cluster(world.cluster_id())["commands"].clone();
        let count = |status: &str| shown[status].as_u64().unwrap_or(0);
        let ended = commands - count("queued") - count("delivered");
        if ended != last {
            (last, since) = (ended, Instant::now());
        }
        if ended == commands || since.elapsed() > Duration::from_mins(2) {
            return ended;
        }
        thread::sleep(Duration::from_millis(250));
    }
}

/// What the running process takes now and took at most, of memory, and its threads.
fn memory(agent: &Agent) -> String {
    let now = Reading::of(agent.process().pid());
    format!("RSS {} KiB, at most {} KiB, {} threads", now.rss_kib, now.peak_kib, now.threads)
}
