//! Thousands of agents at one gateway, by the manager's own load example.

use crate::Plan;
use crate::lab::Lab;
use crate::table::{Goal, Row, Sample};
use navin_test_support::workspace_dir;
use std::process::Command;

pub(crate) fn rows(_: &Lab, plan: &Plan) -> Vec<Row> {
    let agents = if plan.quick { "2000" } else { "10000" };
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--locked", "--release", "-p", "navin-manager", "--example", "load", "--"])
        .args(["--agents", agents, "--only", "sqlite"])
        .current_dir(workspace_dir())
        .output()
        .expect("cargo");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let row = |what: &str, figure: f64, goal: f64| Row {
        what: format!("gateway with {agents} agents: {what}"),
        ours: Sample::one(figure),
        goals: vec![Goal::AtMost(goal)],
        ..Row::default()
    };
    vec![
        row("kB of each idle agent", figure(&text, "memory of an idle agent", 0), 25.0),
        row("idle: % of a core", figure(&text, "processor while idle", 0), 2.0),
        row("command to each of 100, p99: ms", figure(&text, "command to each of 100", 1), 50.0),
    ]
}

/// The number with this place among those that stand on the line after its label.
fn figure(text: &str, label: &str, place: usize) -> f64 {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(label)).expect(label);
    let numbers = rest.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    numbers.clone().nth(place).unwrap_or_else(|| panic!("{label}: {rest}"))
}
