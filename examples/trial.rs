//! Many commands under a leader that keeps dying, on the real thing: an API server, the manager, two agents.
//!
//! `cargo run --release --example trial [-- --commands 1000]` queues commands over fifty names at the manager
//! while the leader is killed every few seconds; in the end every command has its one outcome, and the
//! cluster shows what the newest of each name asked for. Exit 1 on any difference.

use navin_test_support::{Agent, World, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many components the commands are about.
const NAMES: u64 = 50;
/// Short, so that there are many fail-overs.
const LEASE_S: u64 = 3;
/// How long a leader lives once it leads.
const LIFE: Duration = Duration::from_secs(2);
/// Longest wait for a leader.
const BOUND: Duration = Duration::from_secs(30);

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
        let queued: Vec<Queued> = (1..=commands).map(|number| queue(&world, number)).collect();
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

/// A command at the manager.
struct Queued {
    command_id: String,
    /// The component, and its spec where it is an apply; none for an inventory.
    about: Option<(String, Option<Value>)>,
}

/// Queues the `number`th: two applies, then a delete, of one name after another; now and then an inventory.
fn queue(world: &World, number: u64) -> Queued {
    let name = format!("c{:02}", number % NAMES);
    let (operation, arguments, about) = if number.is_multiple_of(97) {
        ("inventory.report", json!({}), None)
    } else if (number / NAMES) % 3 == 2 {
        ("managedcomponent.delete", json!({ "name": name }), Some((name, None)))
    } else {
        let spec = json!({ "number": number, "list": [number, { "text": "ü" }] });
        let arguments = json!({ "name": name, "spec": spec });
        ("managedcomponent.apply", arguments, Some((name, Some(spec))))
    };
    let queued = world.manager.command(world.cluster_id(), operation, &arguments);
    Queued { command_id: queued["command_id"].as_str().expect("a command_id").to_owned(), about }
}

/// The replica that holds the Lease and has written the state.
fn leader<'a>(world: &World, agents: &'a [Agent; 2]) -> &'a Agent {
    until("a leader", BOUND, || {
        let state = world.namespace.state()?;
        agents.iter().find(|agent| agent.leads(&world.namespace) && state["holder"] == agent.holder())
    })
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

/// What is not as it must be.
fn compare(world: &World, queued: &[Queued]) -> Vec<String> {
    let mut differences = Vec::new();
    let mut counts = BTreeMap::<String, u32>::new();
    let mut newest = BTreeMap::<&str, (u64, &Queued)>::new();
    let mut superseded = Vec::new();
    for command in queued {
        let shown = world.manager.command_status(world.cluster_id(), &command.command_id);
        let (status, receipt) = (shown["status"].as_str().unwrap_or("?"), &shown["receipt"]);
        let reason = receipt["reason"].as_str().unwrap_or("");
        *counts.entry(format!("{status} {reason}").trim().to_owned()).or_default() += 1;
        let others = shown["receipts"].as_array().into_iter().flatten().map(|kept| &kept["receipt"]);
        if others.clone().any(|other| other["recorded"] == true && other != receipt) {
            differences.push(format!("{} has two outcomes", command.command_id));
        }
        let sequence = shown["sequence"].as_u64().unwrap_or(0);
        match (&command.about, status, reason) {
            (None, "succeeded", _) => {}
            (Some((name, _)), "succeeded", _) => {
                let best = newest.entry(name).or_insert((sequence, command));
                if sequence > best.0 {
                    *best = (sequence, command);
                }
            }
            (Some((name, _)), "refused", "superseded") => superseded.push((name.as_str(), sequence)),
            (_, _, _) => differences.push(format!("{} is {status}: {receipt}", command.command_id)),
        }
    }
    for (outcome, count) in counts {
        println!("{count:>6} {outcome}");
    }
    for (name, sequence) in superseded {
        if newest.get(name).is_none_or(|(best, _)| *best < sequence) {
            differences.push(format!("{name}: {sequence} was superseded by nothing"));
        }
    }
    let state = world.namespace.state().expect("the agent's state");
    for (name, (sequence, command)) in newest {
        let wanted = command.about.as_ref().and_then(|(_, spec)| spec.as_ref());
        let live = world.namespace.component(name);
        if live.as_ref().map(|live| &live["spec"]) != wanted {
            differences.push(format!("{name} is {live:?}, and should be {wanted:?}"));
        }
        let written =
            live.as_ref().map(|live| &live["metadata"]["annotations"]["platform.navin.ai/sequence"]);
        if written.is_some_and(|text| text.as_str().and_then(|text| text.parse().ok()) != Some(sequence)) {
            differences.push(format!("{name} has the sequence {written:?}, not {sequence}"));
        }
        if state["components"][name]["succeeded"] != sequence {
            differences.push(format!("{name}: the state does not say {sequence}"));
        }
    }
    differences
}

/// What the running process takes now and took at most, of memory, and its threads.
fn memory(agent: &Agent) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.process().pid())).unwrap_or_default();
    let wanted = ["VmRSS", "VmHWM", "Threads"];
    let lines = status.lines().filter(|line| wanted.iter().any(|name| line.starts_with(name)));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join(", ")
}
