//! The inventory of a large cluster: five lists, page by page. What is timed is from the first list's arrival
//! at the API server to the last one's answer, for ours, the peers and the bare pages alike.

use crate::Plan;
use crate::audit::Call;
use crate::big_cluster::BigCluster;
use crate::lab::{BOUND, Lab, who};
use crate::measure::{cpu_ms, thread_cpu_ms};
use crate::peers::Peer;
use crate::table::{Goal, Row, Sample};
use crate::units::{bytes, figure, mebibytes, milliseconds};
use jiff::Timestamp;
use navin_test_support::{Agent, Reading, World, until};
use serde_json::json;
use std::process::Command;

/// The nodes of the large cluster.
pub(crate) const NODES: u32 = 5_000;
/// Peak memory of the process that takes their inventory, in MiB.
pub(crate) const MOST_MIB: f64 = 16.0;
/// As the agent asks for them, and the peers too.
const PAGE: usize = 500;
const LISTS: [&str; 5] = [
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/networking.k8s.io/v1/ingressclasses",
];

/// What one inventory took.
#[derive(Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) ms: f64,
    /// Of the whole process, its start included.
    pub(crate) cpu_ms: f64,
    /// Of the whole process.
    pub(crate) peak_mib: f64,
}

pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let big = BigCluster::start(NODES);
    let [go, kube_rs] = &lab.peers;
    let peers: [(&'static str, &Peer, [&str; 2]); 4] = [
        ("client-go page by page", go, ["--how=typed-protobuf", "--hold=false"]),
        ("client-go kept", go, ["--how=typed-protobuf", "--hold=true"]),
        ("kube-rs page by page", kube_rs, ["--how=typed", "--hold=false"]),
        ("kube-rs kept", kube_rs, ["--how=typed", "--hold=true"]),
    ];
    let (mut own, mut theirs, mut bare) = (vec![], vec![vec![]; peers.len()], vec![]);
    // The first of each warms the API server up.
    for k in 0..=plan.times(5) {
        let ours = ours(lab, &big);
        let others: Vec<Taken> = peers.iter().map(|(_, peer, how)| peer_list(&big, peer, *how)).collect();
        let raw = raw(&big);
        if k > 0 {
            own.push(ours);
            bare.push(raw);
            theirs.iter_mut().zip(others).for_each(|(all, one)| all.push(one));
        }
    }
    let row = |what: &str, of: fn(&Taken) -> f64, limit: bool, goal: Option<Goal>| Row {
        what: format!("inventory of {NODES} nodes: {what}"),
        ours: Sample::of(own.iter().map(of)),
        peers: peers
            .iter()
            .zip(&theirs)
            .map(|((name, ..), all)| (*name, Sample::of(all.iter().map(of))))
            .collect(),
        limit: limit.then(|| ("raw pages, not decoded", Sample::of(bare.iter().map(of)))),
        goals: goal.into_iter().collect(),
        ..Row::default()
    };
    vec![
        row("ms", |taken| taken.ms, true, Some(Goal::TimesLimit(1.3))),
        row("CPU ms of the process", |taken| taken.cpu_ms, true, None),
        row("peak of the process, MiB", |taken| taken.peak_mib, false, Some(Goal::WorstAtMost(MOST_MIB))),
    ]
}

/// A fresh agent takes the inventory that its first report has, and another that it is asked for.
pub(crate) fn ours(lab: &Lab, big: &BigCluster) -> Taken {
    let world = World::start_in(big.cluster, "inventory", &json!({}));
    let since = Timestamp::now();
    let agent = lab.ours(&world, "agent-0");
    let pid = agent.process().pid();
    until("the first inventory at the manager", BOUND, || world.manager.inventory(world.cluster_id()));
    let cpu = cpu_ms(pid);
    let ms = lists_ms(&big.audit.of(&who(&agent), since));
    asked(&world);
    let taken = Taken { ms, cpu_ms: cpu, peak_mib: peak_mib(&agent) };
    agent.process().terminate();
    taken
}

fn asked(world: &World) {
    let outcome = world.manager.execute(world.cluster_id(), "inventory.report", &json!({}), BOUND);
    assert_eq!(outcome["status"], "succeeded", "{outcome}");
}

fn peak_mib(agent: &Agent) -> f64 {
    mebibytes(bytes(figure(Reading::of(agent.process().pid()).peak_kib)))
}

fn peer_list(big: &BigCluster, peer: &Peer, how: [&str; 2]) -> Taken {
    let since = Timestamp::now();
    let kubeconfig = format!("--kubeconfig={}", big.kubeconfig.display());
    let output = Command::new(&peer.binary).args(["list", "--id=list", &kubeconfig]).args(how).output();
    let output = output.expect("a peer");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {}", peer.name, String::from_utf8_lossy(&output.stderr));
    let said = |name: &str| {
        let mut words = text.split_whitespace().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        words.next().and_then(|word| word.parse::<f64>().ok()).expect("a figure")
    };
    let ms = lists_ms(&big.audit.of(&peer.who("list"), since));
    Taken { ms, cpu_ms: said("cpu_ms"), peak_mib: mebibytes(bytes(said("vmhwm_kb"))) }
}

fn raw(big: &BigCluster) -> Taken {
    const CONTINUE: &[u8] = br#""continue":""#;
    let since = Timestamp::now();
    let before = thread_cpu_ms();
    let mut raw = big.raw();
    for list in LISTS {
        let mut token = String::new();
        loop {
            let (status, body) = raw.call("GET", &format!("{list}?limit={PAGE}{token}"), "", b"");
            assert_eq!(status, 200, "GET {list}");
            // In the list's own metadata, before its items.
            let head = &body[..body.len().min(2_048)];
            let Some(at) = head.windows(CONTINUE.len()).position(|window| window == CONTINUE) else { break };
            let rest = &head[at + CONTINUE.len()..];
            let end = rest.iter().position(|byte| *byte == b'"').expect("the end of a token");
            token = format!("&continue={}", String::from_utf8_lossy(&rest[..end]));
        }
    }
    let cpu = thread_cpu_ms() - before;
    Taken { ms: lists_ms(&big.audit.of("raw", since)), cpu_ms: cpu, peak_mib: f64::NAN }
}

/// From the first list's arrival to the last one's answer.
fn lists_ms(calls: &[Call]) -> f64 {
    let is_list = |call: &&Call| {
        let of = |list: &str| list.ends_with(&format!("/{}", call.resource));
        call.verb == "list" && LISTS.iter().any(|list| of(list))
    };
    let lists: Vec<&Call> = calls.iter().filter(is_list).collect();
    assert!(lists.iter().all(|call| call.status == 200), "{lists:?}");
    let first = lists.iter().map(|call| call.received).min().expect("a list");
    let last = lists.iter().map(|call| call.answered).max().expect("a list");
    milliseconds(last.duration_since(first).unsigned_abs())
}
