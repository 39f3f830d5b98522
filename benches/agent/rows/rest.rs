//! What a leader and a standby take while nothing happens: memory, processor time, calls.

use crate::Plan;
use crate::lab::{BOUND, DEFAULT, Lab, apply, things, who};
use crate::measure::cpu_ms;
use crate::table::{Goal, Row, Sample};
use crate::units::{bytes, figure, megabytes};
use jiff::Timestamp;
use navin_test_support::{Agent, Process, Reading, World, until};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// What each keeps.
const COMPONENTS: u32 = 20;
/// From the start of the last program to the first measurement.
const SETTLE: Duration = Duration::from_secs(20);
/// One measurement.
const WINDOW: Duration = Duration::from_mins(1);
/// The most that a leader and a standby may ask of the API server in a minute, watches not counted.
pub(crate) const MOST_CALLS: [f64; 2] = [13.0, 30.0];

pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let pairs = [Pair::of_ours(lab), Pair::of_peer(lab, 0), Pair::of_peer(lab, 1)];
    sleep(SETTLE);
    let windows: Vec<Vec<[Used; 2]>> = (0..plan.times(3)).map(|_| window(lab, &pairs)).collect();
    let row = |what: &str, role: usize, figure: fn(&Used) -> f64, goal: Option<f64>, published| {
        let sample = |pair: usize| Sample::of(windows.iter().map(|window| figure(&window[pair][role])));
        Row {
            what: format!("{}: {what}", ["leader", "standby"][role]),
            ours: sample(0),
            peers: vec![(lab.peers[0].name, sample(1)), (lab.peers[1].name, sample(2))],
            goals: goal.map(Goal::AtMost).into_iter().collect(),
            published,
            ..Row::default()
        }
    };
    let memory = "kured 38.2, Karmada 65.3, Fleet 68.1, argocd-agent 70.5, OCM registration 87.5, OCM work 90.9, Sveltos 105";
    let processor =
        "kured 0.6, Fleet 22, Sveltos 31, argocd-agent 45, OCM work 90, OCM registration 93, Karmada 93";
    let calls = "kured 0, Fleet 6, OCM registration 6, OCM work 60, Karmada 60";
    vec![
        row("memory at rest, RSS: MB", 0, |used| used.rss, Some(5.0), memory),
        row("memory at rest, PSS: MB", 0, |used| used.pss, Some(5.0), ""),
        row("memory at rest, RSS: MB", 1, |used| used.rss, None, ""),
        row("processor at rest: ms a minute", 0, |used| used.cpu, Some(3.0), processor),
        row("processor at rest: ms a minute", 1, |used| used.cpu, Some(2.0), ""),
        row("API calls at rest, a minute", 0, |used| used.calls, Some(MOST_CALLS[0]), calls),
        row("API calls at rest, a minute", 1, |used| used.calls, Some(MOST_CALLS[1]), ""),
    ]
}

/// The calls of a leader and of a standby of ours in one minute, and what they were.
pub(crate) fn calls_of_ours(lab: &Lab) -> [(f64, String); 2] {
    let pair = Pair::of_ours(lab);
    sleep(SETTLE);
    let since = Timestamp::now();
    sleep(WINDOW);
    [0, 1].map(|role| {
        let mut kinds = std::collections::BTreeMap::<String, u32>::new();
        for call in lab.audit.of(&pair.who[role], since).iter().filter(|call| call.verb != "watch") {
            *kinds.entry(format!("{} {}", call.verb, call.resource)).or_default() += 1;
        }
        let mut text = String::new();
        for (kind, count) in &kinds {
            write!(text, "{count} {kind}; ").expect("a String");
        }
        (f64::from(kinds.values().sum::<u32>()), text)
    })
}

/// In one window.
struct Used {
    rss: f64,
    pss: f64,
    cpu: f64,
    calls: f64,
}

fn window(lab: &Lab, pairs: &[Pair]) -> Vec<[Used; 2]> {
    let cpu = |pair: &Pair| [0, 1].map(|role| cpu_ms(pair.process(role).pid()));
    let (since, before): (_, Vec<_>) = (Timestamp::now(), pairs.iter().map(cpu).collect());
    sleep(WINDOW);
    let used = |(pair, before): (&Pair, [f64; 2])| {
        [0, 1].map(|role| {
            let pid = pair.process(role).pid();
            let memory = Reading::of(pid);
            let calls = lab.audit.of(&pair.who[role], since);
            let calls = calls.iter().filter(|call| call.verb != "watch").count();
            Used {
                rss: megabytes(bytes(figure(memory.rss_kib))),
                pss: megabytes(bytes(figure(memory.pss_kib))),
                cpu: cpu_ms(pid) - before[role],
                calls: figure(calls),
            }
        })
    };
    pairs.iter().zip(before).map(used).collect()
}

/// A folder in memory, as the heartbeat's is where the agent is deployed.
struct InMemory(PathBuf);

impl InMemory {
    fn new(name: &str) -> Self {
        let path = Path::new("/dev/shm").join(format!("navin-bench-{}-{name}", std::process::id()));
        fs::create_dir(&path).expect("a folder in memory");
        Self(path)
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A leader and a standby that keep the same number of objects.
struct Pair {
    running: Running,
    who: [String; 2],
}

enum Running {
    #[expect(dead_code, reason = "the manager, the namespace and the folders live as long as the agents")]
    Ours([Agent; 2], Box<World>, [InMemory; 2]),
    Theirs([crate::peers::Replica; 2]),
}

impl Pair {
    /// With a watch, a poll at the gateway and an inbox.
    fn of_ours(lab: &Lab) -> Self {
        let world = lab.world("rest", &json!({}));
        let run_dirs = ["leader", "standby"].map(InMemory::new);
        let replica = |pod: &str, run_dir: &InMemory| {
            let mut options = lab.options(&world, pod);
            options.inbox = Some(world.folder().join(format!("{pod}-inbox")));
            options.args = vec!["--run-dir".into(), run_dir.0.clone().into()];
            world.agent_with(options)
        };
        let leader = replica("leader", &run_dirs[0]);
        leader.wait_leads(&world.namespace, BOUND);
        let standby = replica("standby", &run_dirs[1]);
        for number in 0..COMPONENTS {
            apply(&world, &format!("want-{number:04}"), number);
        }
        let who = [who(&leader), who(&standby)];
        Self { running: Running::Ours([leader, standby], Box::new(world), run_dirs), who }
    }

    fn of_peer(lab: &Lab, number: usize) -> Self {
        let peer = &lab.peers[number];
        let lease = format!("bench-rest-{}", peer.name);
        let leader = lab.theirs(peer, "leader", &lease, COMPONENTS);
        leader.wait("synced", BOUND);
        let standby = lab.theirs(peer, "standby", &lease, COMPONENTS);
        standby.wait("start", BOUND);
        until("the things", BOUND, || {
            (lab.admin().list(&things(DEFAULT)).len() >= COMPONENTS as usize).then_some(())
        });
        let who = [leader.who.clone(), standby.who.clone()];
        Self { running: Running::Theirs([leader, standby]), who }
    }

    fn process(&self, role: usize) -> &Process {
        match &self.running {
            Running::Ours(agents, ..) => agents[role].process(),
            Running::Theirs(replicas) => &replicas[role].process,
        }
    }
}
