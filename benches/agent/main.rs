//! The agent beside the agents that one would write instead, and beside the bare cost of the same API calls.
//!
//! `cargo bench --bench agent` builds the agent as it is released and the two peers (`benches/peers`), starts
//! etcd, kube-apiserver and managers, measures ours and theirs by turns in one run, and prints a table: each
//! figure, its spread, its goal, and whether that is met. About twenty minutes. The same as JSON is in
//! `target/bench.json`.
//!
//! `cargo bench --bench agent -- --only rest,drift` measures some, `--quick` fewer times each.
//!
//! `cargo bench --bench agent -- --check` holds what does not depend on the machine: see `benches/check`.
//!
//! Exit code: 0 measured (a goal that is missed is said, not failed), 1 `--check` found too much, 64 wrong
//! arguments, 101 it could not be measured.

mod audit;
mod big_cluster;
mod check;
mod lab;
mod measure;
mod operator;
mod peers;
mod raw;
mod rows;
mod table;
mod units;

use lab::Lab;
use serde_json::json;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::Instant;
use table::Row;

/// What is measured, and how often.
pub(crate) struct Plan {
    only: Vec<String>,
    pub(crate) quick: bool,
}

impl Plan {
    /// So many times, or the fewest that give a spread.
    pub(crate) fn times(&self, full: u32) -> u32 {
        if self.quick { full.min(3) } else { full }
    }

    fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == group)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [inner, rest @ ..] = arguments.as_slice()
        && let Some(run) = rows::inner(inner)
    {
        run(rest);
        return ExitCode::SUCCESS;
    }
    if arguments == ["--check"] {
        return check::run();
    }
    let Some(plan) = plan(&arguments) else {
        let names: Vec<&str> = rows::GROUPS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: cargo bench --bench agent [-- [--quick] [--only {}] | --check]", names.join(","));
        return ExitCode::from(64);
    };
    let (started, peers) = (Instant::now(), peers::versions());
    let lab = Lab::start();
    let mut measured: Vec<Row> = Vec::new();
    for (name, measure) in rows::GROUPS.iter().filter(|(name, _)| plan.wants(name)) {
        eprintln!("measuring: {name} (load {})", load());
        let rows = measure(&lab, &plan);
        // At once: whoever stops a long run keeps what was measured.
        eprintln!("{}", table::markdown(&rows));
        measured.extend(rows);
    }
    let about = json!({
        "date": jiff::Timestamp::now().to_string(),
        "machine": machine(),
        "seconds": started.elapsed().as_secs(),
        "peers": peers,
        "cluster": lab.version(),
        "load": load(),
    });
    println!("{}", table::markdown(&measured));
    println!("{about}");
    let file = navin_test_support::target_dir().join("bench.json");
    table::write_json(&file, &about, &measured).expect("the results as JSON");
    let (met, held) = measured
        .iter()
        .filter_map(Row::met)
        .fold((0, 0), |(met, held), row| (met + u32::from(row), held + 1));
    println!("goals met: {met} of {held}; {}", file.display());
    ExitCode::SUCCESS
}

fn plan(arguments: &[String]) -> Option<Plan> {
    let mut plan = Plan { only: vec![], quick: false };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => plan.quick = true,
            "--only" => plan.only.extend(arguments.next()?.split(',').map(str::to_owned)),
            _ => return None,
        }
    }
    let known = |only: &String| rows::GROUPS.iter().any(|(name, _)| name == only);
    plan.only.iter().all(known).then_some(plan)
}

/// The load averages, since a busy machine stretches every time.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = Command::new("uname")
        .arg("-r")
        .output()
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} x {}, Linux {}", model.map_or("?", |(_, name)| name), kernel.unwrap_or_default())
}
