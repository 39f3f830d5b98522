//! Thousands of agents at one manager, on loopback: each has an issued certificate and one connection, polls,
//! and answers each command with a receipt.
//!
//! `cargo run --release -p navin-manager --example load -- --agents 5000` measures an idle fleet (memory of
//! an agent at the manager, processor time), how soon commands arrive, and what a restart costs; then the
//! manager is killed, and asked to end, while commands are queued, and in the end every command has its one
//! outcome. The same again with two gateways on one PostgreSQL, one of which is killed. Exit 1 where
//! anything is not as it must be. `--short` is for every build: short measurements, and nothing that only
//! waits; with 300 agents it takes less than half a minute. `NAVIN_MANAGER` names another manager to measure
//! than the one that is built.

mod fleet;
mod ledger;
mod operator;
mod site;
mod wire;

use fleet::{World, random};
use hyper::Method;
use operator::{Call, Done, Operators};
use serde_json::{Value, json};
use site::Site;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wire::tls;

/// Calls of operators at once, where it is many that matter.
const MANY: usize = 16;
/// Calls at once, where it is how soon each arrives.
const FEW: usize = 4;
/// The longest wait for a fleet to be as it should.
const SETTLED: Duration = Duration::from_mins(3);

/// What is asked for.
#[derive(Clone, Copy)]
struct Plan {
    agents: usize,
    short: bool,
    sqlite: bool,
    postgres: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(plan) = arguments() else {
        eprintln!("usage: load [--agents NUMBER] [--short] [--only sqlite|postgres]");
        return ExitCode::from(64);
    };
    let mut violations = Vec::new();
    if plan.sqlite {
        println!("one manager, SQLite, {} agents", plan.agents);
        violations.extend(run(plan, Site::one, true).await);
    }
    if plan.postgres {
        println!("a manager and a gateway, PostgreSQL, {} agents", plan.agents);
        violations.extend(run(plan, Site::two, false).await);
    }
    for violation in violations.iter().take(20) {
        println!("BROKEN: {violation}");
    }
    if violations.is_empty() {
        println!("every command has one outcome, and none was delivered twice while a delivery stood");
        ExitCode::SUCCESS
    } else {
        println!("{} violations", violations.len());
        ExitCode::FAILURE
    }
}

fn arguments() -> Option<Plan> {
    let mut plan = Plan { agents: 5000, short: false, sqlite: true, postgres: true };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--agents" => plan.agents = arguments.next()?.parse().ok().filter(|agents| *agents > 0)?,
            "--short" => plan.short = true,
            "--only" => match arguments.next()?.as_str() {
                "sqlite" => plan.postgres = false,
                "postgres" => plan.sqlite = false,
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(plan)
}

async fn run(plan: Plan, site: fn(usize) -> Site, with_silence: bool) -> Vec<String> {
    // It waits with the thread that it is on.
    let site = tokio::task::spawn_blocking(move || site(plan.agents)).await.expect("a site");
    let operators = Operators::new(site.rest, &site.ca, &site.token);
    let identities = issue(&operators, &site, plan.agents).await;
    let world = Arc::new(World {
        site,
        ledger: ledger::Ledger::default(),
        polling: 0.into(),
        put_off: 0.into(),
        // What is delivered again is so after 15 s: once is enough for every build.
        silence: (!plan.short || with_silence).into(),
        opened: 0.into(),
    });
    let before: f64 = world.site.gateways.iter().map(site::Gateway::memory_kb).sum();
    let started = Instant::now();
    let agents: Vec<_> =
        identities.into_iter().enumerate().map(|(number, tls)| fleet::start(number, &world, tls)).collect();
    all_poll(&world, plan).await;
    println!("  connected after                {:>8.1} s", started.elapsed().as_secs_f64());
    idle(&world, plan, before).await;
    let mut queued = deliver(&world, plan, &operators).await;
    world.silence.fetch_and(!plan.short, Ordering::Relaxed);
    let last = world.site.gateways.len() - 1;
    queued += interrupt(&world, plan, &operators, "killed", move |site| site.gateways[last].kill()).await;
    if !plan.short {
        let terminate = move |site: &Site| site.gateways[last].terminate();
        queued += interrupt(&world, plan, &operators, "asked to end", terminate).await;
    }
    until("all receipts are answered", async || world.ledger.count_open() == 0).await;
    println!("  commands                       {queued:>8}");
    println!("  of them delivered again        {:>8}", world.ledger.delivered_again());
    println!("  answers 429 or 503 to agents   {:>8}", world.put_off.load(Ordering::Relaxed));
    println!("  connections opened by agents   {:>8}", world.opened.load(Ordering::Relaxed));
    let mut violations = world.ledger.violations(&world.site.gateways);
    violations.extend(outcomes(&operators, plan.agents).await);
    for agent in agents {
        if agent.is_finished() {
            violations.push("an agent was given an answer that is not of the contract".to_owned());
        }
        agent.abort();
    }
    tokio::task::spawn_blocking(move || drop(world)).await.expect("the end of the processes");
    violations
}

/// Registers the clusters, and issues an identity for each.
async fn issue(operators: &Operators, site: &Site, agents: usize) -> Vec<Arc<rustls::ClientConfig>> {
    let started = Instant::now();
    let register = |number: usize| {
        let body = json!({ "cluster_id": cluster(number), "namespace": "navin" });
        post("/api/v1/clusters".to_owned(), &body)
    };
    operators.all((0..agents).map(register).collect(), MANY).await;
    let gateway = format!("https://{}", site.gateways[0].address);
    let identity = |number: usize| {
        let path = format!("/api/v1/clusters/{}/kubernetes/agent", cluster(number));
        post(path, &json!({ "gateway_url": gateway }))
    };
    let issued = operators.all((0..agents).map(identity).collect(), MANY).await;
    println!("  identities issued in           {:>8.1} s", started.elapsed().as_secs_f64());
    let text = |done: &Done, name: &str| done.answer[name].as_str().expect("a PEM").to_owned();
    issued.iter().map(|done| tls(&site.ca, Some((&text(done, "tls_crt"), &text(done, "tls_key"))))).collect()
}

/// What an idle fleet costs.
async fn idle(world: &World, plan: Plan, before: f64) {
    tokio::time::sleep(Duration::from_secs(if plan.short { 1 } else { 10 })).await;
    let gateways = &world.site.gateways;
    let memory: f64 = gateways.iter().map(site::Gateway::memory_kb).sum();
    let agents = count(plan.agents);
    println!("  memory of an idle agent        {:>8.1} kB", (memory - before) / agents);
    let processor = || gateways.iter().map(site::Gateway::processor_s).sum::<f64>();
    let (taken, started) = (processor(), Instant::now());
    tokio::time::sleep(Duration::from_secs(if plan.short { 2 } else { 10 })).await;
    let share = (processor() - taken) / started.elapsed().as_secs_f64();
    println!("  processor while idle           {:>8.1} % of a core", share * 100.0);
}

/// How soon commands arrive: one for each of 100 agents, then one for each.
async fn deliver(world: &World, plan: Plan, operators: &Operators) -> usize {
    let some = 100.min(plan.agents);
    let first = usize::try_from(random(count_u64(plan.agents))).unwrap_or(0);
    let chosen = (0..some).map(|step| (first + step * (plan.agents / some)) % plan.agents);
    let to_some = operators.all(chosen.map(command).collect(), FEW).await;
    arrived(world, &to_some, &format!("to each of {some}")).await;
    let started = Instant::now();
    let to_all = operators.all((0..plan.agents).map(command).collect(), MANY).await;
    println!("  queued for all in              {:>8.1} s", started.elapsed().as_secs_f64());
    arrived(world, &to_all, "to all").await;
    to_some.len() + to_all.len()
}

async fn arrived(world: &World, queued: &[Done], to: &str) {
    let arrival =
        |done: &Done| Some(world.ledger.arrival(id(&done.answer))?.saturating_duration_since(done.began));
    until("the commands arrive", async || queued.iter().all(|done| arrival(done).is_some())).await;
    let mut took: Vec<Duration> = queued.iter().filter_map(arrival).collect();
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)].as_secs_f64() * 1000.0;
    println!("  command {to:<23}{:>8.1} ms median, {:.1} ms p99, from the operator's call", at(50), at(99));
}

/// Queues a command for every agent; in the middle of it a gateway ends, and is started again.
async fn interrupt(
    world: &Arc<World>,
    plan: Plan,
    operators: &Operators,
    how: &str,
    end: impl FnOnce(&Site) + Send + 'static,
) -> usize {
    let (first, second): (Vec<usize>, Vec<usize>) = (0..plan.agents).partition(|number| number % 2 == 0);
    let mut queued = operators.all(first.into_iter().map(command).collect(), MANY).await;
    let queueing = tokio::spawn({
        let operators = operators.clone();
        async move { operators.all(second.into_iter().map(command).collect(), MANY).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let of = Arc::clone(world);
    let ended = Instant::now();
    let again = tokio::task::spawn_blocking(move || {
        end(&of.site);
        of.site.gateways[of.site.gateways.len() - 1].start_again();
        Instant::now()
    });
    let again = again.await.expect("a start");
    all_poll(world, plan).await;
    let (down, back) = (again.saturating_duration_since(ended), again.elapsed());
    println!(
        "  {how:<14} down {:.1} s, all polling again after {:>6.1} s",
        down.as_secs_f64(),
        back.as_secs_f64()
    );
    queued.extend(queueing.await.expect("operators"));
    let ids = || queued.iter().map(|done| id(&done.answer));
    until("all receipts arrive", async || world.ledger.count_acknowledged(ids()) == queued.len()).await;
    println!("  {how:<14} all receipts after            {:>6.1} s", ended.elapsed().as_secs_f64());
    queued.len()
}

/// Waits until nearly every agent has a poll open: between two polls it has none.
async fn all_poll(world: &World, plan: Plan) {
    let enough = plan.agents - plan.agents / 100;
    until("all agents poll", async || world.polling.load(Ordering::Relaxed) >= enough).await;
}

/// Every command, as the manager has it, has its one outcome.
async fn outcomes(operators: &Operators, agents: usize) -> Vec<String> {
    let list = |number: usize| Call {
        method: Method::GET,
        path: format!("/api/v1/clusters/{}/kubernetes/commands?limit=1000", cluster(number)),
        body: String::new(),
    };
    let lists = operators.all((0..agents).map(list).collect(), MANY).await;
    let commands = lists.iter().flat_map(|done| done.answer["commands"].as_array().expect("commands"));
    commands
        .filter(|command| command["status"] != "succeeded" || command["receipt_recorded"] != true)
        .map(|command| format!("{}: {}, not answered", id(command), command["status"]))
        .collect()
}

async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < SETTLED, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn command(number: usize) -> Call {
    let path = format!("/api/v1/clusters/{}/kubernetes/commands", cluster(number));
    post(path, &json!({ "operation": "inventory.report", "arguments": {} }))
}

fn post(path: String, body: &Value) -> Call {
    Call { method: Method::POST, path, body: body.to_string() }
}

fn cluster(number: usize) -> String {
    format!("c-{number}")
}

fn id(command: &Value) -> &str {
    command["command_id"].as_str().expect("a command_id")
}

fn count_u64(number: usize) -> u64 {
    u64::try_from(number).expect("a small number")
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("a small number"))
}
