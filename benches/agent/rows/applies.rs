//! Two hundred components, one applied after the other, as fast as they come.

use crate::Plan;
use crate::lab::{BOUND, Lab, component, spec, things, who, who_has};
use crate::measure::{children_cpu_ms, cpu_ms, thread_cpu_ms};
use crate::operator::Operator;
use crate::peers::Peer;
use crate::raw::Raw;
use crate::table::{Goal, Row, Sample};
use crate::units::milliseconds;
use jiff::Timestamp;
use navin_test_support::Namespace;
use serde_json::json;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const MANY: u32 = 200;
/// Longer than the agent's poll, which the gateway answers with nothing meanwhile.
const PAUSED: Duration = Duration::from_millis(1500);
/// From one look for the last receipt to the next.
const LOOK: Duration = Duration::from_millis(2);

/// One measurement.
#[derive(Clone, Copy, Default)]
struct Took {
    ms: f64,
    cpu_ms: f64,
    /// Of `ms`, what its calls were inside the API server.
    inside_ms: f64,
}

pub(crate) fn rows(lab: &Lab, plan: &Plan) -> Vec<Row> {
    let [go, kube_rs] = &lab.peers;
    let place = lab.cluster.namespace("applies");
    let namespace = place.name.as_str();
    let (mut ours, mut limit, mut unlimited, mut theirs) = (vec![], vec![], vec![], vec![]);
    for _ in 0..plan.times(7) {
        ours.push(ours_once(lab));
        limit.push(raw_once(lab, &place));
        unlimited.push(peer_once(lab, go, namespace, &["--qps=-1"]));
        theirs.push(peer_once(lab, kube_rs, namespace, &[]));
    }
    let default = (!plan.quick).then(|| peer_once(lab, go, namespace, &[]));
    let row = |what: &str, part: fn(&Took) -> f64, goals: Vec<Goal>| {
        let sample = |took: &[Took]| Sample::of(took.iter().map(part));
        let mut peers =
            vec![("client-go without its rate limit", sample(&unlimited)), (kube_rs.name, sample(&theirs))];
        peers.extend(default.map(|took| ("client-go as it comes", sample(&[took]))));
        Row {
            what: what.to_owned(),
            ours: sample(&ours),
            limit: Some(("POST after POST", sample(&limit))),
            peers,
            goals,
            ..Row::default()
        }
    };
    let from_end_to_end = "200 applies, from the poll to the last receipt at the manager, ms";
    vec![
        row(from_end_to_end, |took| took.ms, vec![Goal::TimesLimit(1.3)]),
        row("the same: processor time of the client, ms", |took| took.cpu_ms, vec![]),
        Row {
            peers: vec![],
            ..row("the same: inside the API server, by its log, ms", |took| took.inside_ms, vec![])
        },
    ]
}

fn name(number: u32) -> String {
    format!("many-{number:04}")
}

/// All queued while the agent is stopped; from its going on to the last receipt at the manager.
fn ours_once(lab: &Lab) -> Took {
    let world = lab.world("applies", &json!({ "poll_wait_s": 1 }));
    let agent = lab.ours(&world, "applies-0");
    agent.wait_leads(&world.namespace, BOUND);
    let (mut operator, who) = (Operator::of(&world), who(&agent));
    let first = operator.apply("first", &spec(0));
    operator.wait(&first, LOOK);
    agent.process().pause();
    thread::sleep(PAUSED);
    let ids: Vec<String> = (0..MANY).map(|number| operator.apply(&name(number), &spec(number))).collect();
    let before = cpu_ms(agent.process().pid());
    let (began, since) = (Instant::now(), Timestamp::now());
    agent.process().resume();
    operator.wait(ids.last().expect("many"), LOOK);
    let ms = milliseconds(began.elapsed());
    for id in &ids {
        operator.wait(id, LOOK);
    }
    Took { ms, cpu_ms: cpu_ms(agent.process().pid()) - before, inside_ms: lab.audit.inside(&who, since) }
}

/// The same objects, each answer waited for, and nothing else.
fn raw_once(lab: &Lab, place: &Namespace) -> Took {
    let (path, namespace) = (place.components_path(), place.name.as_str());
    let token = lab.cluster.service_account_token(namespace, "navin-cluster-agent");
    let mut raw = Raw::connect_to(lab.cluster.url(), lab.cluster.ca_pem(), &token);
    raw.call("GET", &format!("{path}/none"), "", b"");
    let write = format!("{path}?timeout=5s&fieldManager=limit");
    let before = thread_cpu_ms();
    let (began, since) = (Instant::now(), Timestamp::now());
    for number in 0..MANY {
        let body = component(namespace, &name(number), number, "");
        let (status, _) = raw.call("POST", &write, "application/json", body.as_bytes());
        assert_eq!(status, 201, "{path}");
    }
    let ms = milliseconds(began.elapsed());
    let cpu_ms = thread_cpu_ms() - before;
    let took = Took { ms, cpu_ms, inside_ms: lab.audit.inside(&who_has(&token), since) };
    lab.admin().delete(&path);
    took
}

/// A process of the peer's that does so and says how long that took, without its start.
fn peer_once(lab: &Lab, peer: &Peer, namespace: &str, more: &[&str]) -> Took {
    let before = children_cpu_ms();
    let output = Command::new(&peer.binary)
        .args(["apply", &format!("--kubeconfig={}", lab.kubeconfig.display()), &format!("--n={MANY}")])
        .arg(format!("--namespace={namespace}"))
        .args(more)
        .output()
        .expect("a peer");
    let cpu_ms = children_cpu_ms() - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let said = text.split_once("total_ms=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let ms =
        said.unwrap_or_else(|| panic!("{}: {text}{}", peer.name, String::from_utf8_lossy(&output.stderr)));
    lab.admin().delete(&things(namespace));
    Took { ms, cpu_ms, inside_ms: 0.0 }
}
