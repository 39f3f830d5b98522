//! How the cost grows with what is kept: components, and recorded commands.

use crate::Plan;
use crate::lab::{BOUND, Lab, who};
use crate::measure::cpu_ms;
use crate::operator::Operator;
use crate::table::{Row, Sample};
use crate::units::{bytes, figure, kilobytes, milliseconds};
use jiff::Timestamp;
use navin_test_support::{Agent, Reading, World, until};
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks for a receipt.
const LOOK: Duration = Duration::from_millis(2);
/// After the last command: the acknowledgements have been written, and a report was sent.
const SETTLED: Duration = Duration::from_secs(8);
/// How often one command is measured.
const TIMES: u32 = 9;
/// How many names the recorded commands are about.
const NAMES: u32 = 10;

/// What is recorded in one window ends at some 550 commands: the state is full then, and the rest waits.
pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let sizes: &[u32] = if plan.quick { &[10, 100] } else { &[10, 100, 500] };
    let rest = Duration::from_secs(if plan.quick { 5 } else { 20 });
    let kept: Vec<_> = sizes.iter().map(|size| (*size, components(lab, *size, rest))).collect();
    let recorded: Vec<_> = sizes.iter().map(|size| (*size, records(lab, *size))).collect();
    let mut rows = grown(
        "components",
        &["leader's PSS, kB", "CPU at rest, ms a minute", "all looked at after a takeover, ms", "state, kB"],
        &kept,
    );
    rows.extend(grown("recorded commands", &["one command, ms", "each write of the state, kB"], &recorded));
    rows
}

/// A row for each figure of each size, with the factor since the one before.
fn grown(of: &str, figures: &[&str], measured: &[(u32, Vec<Sample>)]) -> Vec<Row> {
    let row = |number: usize, figure: &str, size: usize| {
        let (count, samples) = &measured[size];
        let before = size.checked_sub(1).map(|before| &measured[before]);
        let factor = before.map_or(String::new(), |(fewer, before)| {
            let grown = samples[number].median() / before[number].median();
            format!(" (x {grown:.1} for x {})", count / fewer)
        });
        Row {
            what: format!("{count} {of}: {figure}{factor}"),
            ours: samples[number].clone(),
            ..Row::default()
        }
    };
    let of_figure = |(number, figure): (usize, &&str)| -> Vec<Row> {
        (0..measured.len()).map(|size| row(number, figure, size)).collect()
    };
    figures.iter().enumerate().flat_map(of_figure).collect()
}

fn leader(lab: &Lab) -> (World, Agent, Operator) {
    let world = lab.world("growth", &json!({}));
    let agent = lab.ours(&world, "growth-0");
    agent.wait_leads(&world.namespace, BOUND);
    let operator = Operator::of(&world);
    (world, agent, operator)
}

fn kilobytes_of_state(world: &World) -> f64 {
    let state = world.cluster.admin().get(&world.namespace.state_path()).1;
    let text = state["data"]["state.json"].as_str().expect("a state");
    kilobytes(figure(text.len()))
}

/// Memory, CPU at rest, the first look at all of a new leader, the state.
fn components(lab: &Lab, size: u32, rest: Duration) -> Vec<Sample> {
    let (world, agent, mut operator) = leader(lab);
    let ids: Vec<String> =
        (0..size).map(|number| operator.apply(&format!("c-{number:04}"), &json!({ "n": number }))).collect();
    for id in &ids {
        operator.wait(id, LOOK);
    }
    thread::sleep(SETTLED);
    let pid = agent.process().pid();
    let before = cpu_ms(pid);
    thread::sleep(rest);
    let cpu = (cpu_ms(pid) - before) * 60.0 / rest.as_secs_f64();
    let pss = kilobytes(bytes(figure(Reading::of(pid).pss_kib)));
    let state = kilobytes_of_state(&world);
    let since = Timestamp::now();
    agent.process().start_again();
    let looked = until("a look at all components", BOUND, || {
        let mut calls = lab.audit.of(&who(&agent), since);
        calls.retain(|call| call.resource == "managedcomponents" && call.verb == "get");
        let all = calls.len() >= size.try_into().expect("not so many");
        let ends = (calls.iter().map(|c| c.received).min(), calls.iter().map(|c| c.answered).max());
        all.then_some(ends)
    });
    let (Some(first), Some(last)) = looked else { unreachable!("there is at least one component") };
    let ms = milliseconds(last.duration_since(first).unsigned_abs());
    [pss, cpu, ms, state].map(Sample::one).into()
}

/// One command beside so many that are recorded, and what is written each time.
fn records(lab: &Lab, size: u32) -> Vec<Sample> {
    let (world, _agent, mut operator) = leader(lab);
    let ids: Vec<String> = (0..size)
        .map(|number| operator.apply(&format!("r-{:04}", number % NAMES), &json!({ "n": number })))
        .collect();
    for id in &ids {
        operator.wait(id, LOOK);
    }
    let one = |number: u32| {
        thread::sleep(LOOK * 600);
        let id = operator.apply("r-0000", &json!({ "m": number }));
        let began = Instant::now();
        operator.wait(&id, Duration::ZERO);
        milliseconds(began.elapsed())
    };
    let times = Sample::of((0..TIMES).map(one));
    vec![times, Sample::one(kilobytes_of_state(&world))]
}
