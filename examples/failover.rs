//! How long a cluster is without a leader, measured on the real thing: an API server, managers and agents.
//!
//! `cargo run --release --example failover [-- --lease 15 --lease 3 --runs 10]`: as many namespaces side by
//! side as there are runs. Each kills its leader (SIGKILL), ends the next one (SIGTERM) and stops one for
//! longer than its lease (SIGSTOP, SIGCONT). Exit 1 where a bound of CONTRACT section 6 is broken.

use jiff::Timestamp;
use navin_test_support::{Agent, World, until};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything that is not measured against a bound of its own.
const BOUND: Duration = Duration::from_mins(2);
/// From SIGTERM to the next leader's first act.
const HANDOVER: Duration = Duration::from_secs(3);
/// What a takeover may take beyond the lease's duration.
const BEYOND: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let Some((leases, runs)) = arguments() else {
        eprintln!("usage: cargo run --release --example failover [-- --lease SECONDS]... [--runs NUMBER]");
        return ExitCode::from(64);
    };
    let mut held = true;
    for lease in leases {
        println!("lease {lease} s, {runs} runs side by side");
        let lanes: Vec<Run> = thread::scope(|scope| {
            let lanes: Vec<_> =
                (0..runs).map(|number| scope.spawn(move || Lane::start(lease).run(number, runs))).collect();
            lanes.into_iter().map(|lane| lane.join().expect("a run that ends")).collect()
        });
        held &= report(Duration::from_secs(lease), &lanes);
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The leases' durations in seconds, and the number of runs; 15 s, 3 s and ten by default.
fn arguments() -> Option<(Vec<u64>, u32)> {
    let (mut leases, mut runs) = (vec![], 10);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value: u32 = arguments.next()?.parse().ok()?;
        match option.as_str() {
            "--lease" if (3..=300).contains(&value) => leases.push(value.into()),
            "--runs" if (1..=50).contains(&value) => runs = value,
            _ => return None,
        }
    }
    Some((if leases.is_empty() { vec![15, 3] } else { leases }, runs))
}

/// What one run measured.
struct Run {
    /// From SIGKILL to the next leader's first write of the state, and to its first command's receipt.
    killed: [Duration; 2],
    /// From the dead leader's last renewal to the sending of the take, by the times in the Lease.
    expiry: Duration,
    /// The same from SIGTERM.
    ended: [Duration; 2],
    /// From SIGTERM to the end of the process.
    exit: Duration,
    /// From SIGSTOP, with a command under way, to the command's receipt.
    stopped: Duration,
}

/// A row of the table: what, how it is read from a run, and its bounds, the later one where there is one.
type Row = (&'static str, fn(&Run) -> Duration, Duration, Option<Duration>);

fn report(lease: Duration, runs: &[Run]) -> bool {
    let takeover = Some(lease + BEYOND);
    let rows: [Row; 7] = [
        ("SIGKILL to the first write of the state", |run| run.killed[0], Duration::ZERO, takeover),
        ("SIGKILL to the first command's receipt", |run| run.killed[1], Duration::ZERO, takeover),
        ("last renewal to the taking of the Lease", |run| run.expiry, lease, takeover),
        ("SIGTERM to the first write of the state", |run| run.ended[0], Duration::ZERO, Some(HANDOVER)),
        ("SIGTERM to the first command's receipt", |run| run.ended[1], Duration::ZERO, Some(HANDOVER)),
        ("SIGTERM to the end of the process", |run| run.exit, Duration::ZERO, Some(Duration::from_secs(5))),
        ("SIGSTOP to the outcome of what was under way", |run| run.stopped, Duration::ZERO, None),
    ];
    let mut held = true;
    println!("{:<46} {:>8} {:>8} {:>8}   bounds", "seconds", "median", "min", "max");
    for (what, of, least, most) in rows {
        let mut times: Vec<Duration> = runs.iter().map(of).collect();
        times.sort_unstable();
        let (min, max) = (times[0], times[times.len() - 1]);
        let median = times[times.len() / 2];
        let ok = min >= least && most.is_none_or(|most| max <= most);
        held &= ok;
        let bounds = match most {
            Some(most) => format!("{} to {}", least.as_secs(), most.as_secs()),
            None => "one outcome".to_owned(),
        };
        let [median, min, max] = [median, min, max].map(|time| time.as_secs_f64());
        let broken = if ok { "" } else { "  BROKEN" };
        println!("{what:<46} {median:>8.3} {min:>8.3} {max:>8.3}   {bounds}{broken}");
    }
    held
}

/// A namespace with two replicas. The agents end before the world does.
struct Lane {
    agents: [Agent; 2],
    world: World,
    lease: Duration,
    components: u32,
}

impl Lane {
    fn start(lease: u64) -> Self {
        let world = World::start("failover", &json!({ "lease_duration_s": lease }));
        let agents = ["agent-0", "agent-1"].map(|pod| {
            let mut options = world.agent_options(pod);
            // It says what it reads, so that one can wait for a follower to follow.
            options.envs.push(("RUST_LOG".to_owned(), "debug".to_owned()));
            world.agent_with(options)
        });
        let mut lane = Self { agents, world, lease: Duration::from_secs(lease), components: 0 };
        until("the first leader's first write", BOUND, || lane.state()?["term"].as_u64());
        let follower = 1 - lane.leader();
        lane.wait_following(follower, 0);
        let first = lane.command();
        lane.outcome(&first);
        lane
    }

    fn run(mut self, number: u32, runs: u32) -> Run {
        let (killed, expiry) = self.kill(number, runs);
        let (ended, exit) = self.end();
        let stopped = self.stop(number);
        Run { killed, expiry, ended, exit, stopped }
    }

    /// Kills the leader at a moment of its own between two renewals.
    fn kill(&mut self, number: u32, runs: u32) -> ([Duration; 2], Duration) {
        let leader = self.leader();
        let renewed = self.lease_time("renewTime");
        until("a renewal", BOUND, || (self.lease_time("renewTime") != renewed).then_some(()));
        let between = self.lease / 3;
        thread::sleep(between * number / runs);
        let started = Instant::now();
        self.agents[leader].process().kill9();
        let renewed = self.lease_time("renewTime");
        // The manager is given time to see that nobody asks for commands any more.
        thread::sleep(Duration::from_millis(300));
        let command = self.command();
        let wrote = self.wait_rule(1 - leader, started);
        let taken = self.lease_time("acquireTime");
        self.outcome(&command);
        let executed = started.elapsed();
        self.follow_again(leader);
        let expiry = taken.duration_since(renewed);
        ([wrote, executed], Duration::try_from(expiry).expect("the Lease is taken after its renewal"))
    }

    /// Ends the leader in order.
    fn end(&mut self) -> ([Duration; 2], Duration) {
        let leader = self.leader();
        let started = Instant::now();
        self.agents[leader].process().terminate();
        let code = self.agents[leader].process().wait_exit(BOUND);
        let exit = started.elapsed();
        assert_eq!(code, Some(0), "{}", self.agents[leader].process().stderr_tail());
        let command = self.command();
        let wrote = self.wait_rule(1 - leader, started);
        self.outcome(&command);
        let executed = started.elapsed();
        self.follow_again(leader);
        ([wrote, executed], exit)
    }

    /// Stops the leader somewhere in a command, and lets it go on when another has taken over.
    fn stop(&mut self, number: u32) -> Duration {
        let leader = self.leader();
        let command = self.command();
        thread::sleep(Duration::from_millis(4) * number);
        let started = Instant::now();
        self.agents[leader].process().pause();
        self.wait_rule(1 - leader, started);
        let outcome = self.outcome(&command);
        let stopped = started.elapsed();
        let name = format!("c{}", self.components);
        let written = self.world.namespace.component(&name);
        let looked = self.looks(leader);
        self.agents[leader].process().resume();
        self.wait_following(leader, looked);
        // Whatever it still had to say, it has said when it follows and another command has run.
        let next = self.command();
        self.outcome(&next);

        let shown = self.world.manager.command_status(self.world.cluster_id(), &command);
        let receipts = shown["receipts"].as_array().expect("receipts");
        for kept in receipts.iter().filter(|kept| kept["receipt"]["recorded"] == true) {
            assert_eq!(kept["receipt"], outcome["receipt"], "one outcome");
        }
        let live = self.world.namespace.component(&name);
        assert_eq!(live, written, "nothing was written after the outcome");
        assert_eq!(live.expect("the component")["metadata"]["generation"], 1, "written once");
        stopped
    }

    /// Which of the two holds the Lease.
    fn leader(&self) -> usize {
        until("a leader", BOUND, || self.agents.iter().position(|agent| agent.leads(&self.world.namespace)))
    }

    fn state(&self) -> Option<Value> {
        self.world.namespace.state()
    }

    /// Waits for the first write of the state by a new leader; how long after `started` it was there.
    fn wait_rule(&self, next: usize, started: Instant) -> Duration {
        let holder = self.agents[next].holder();
        until("the next leader's first write", BOUND, || (self.state()?["holder"] == holder).then_some(()));
        started.elapsed()
    }

    fn lease_time(&self, member: &str) -> Timestamp {
        let lease = self.world.namespace.lease().expect("a Lease");
        lease["spec"][member].as_str().and_then(|text| text.parse().ok()).expect("a time")
    }

    /// Queues an apply of a new component.
    fn command(&mut self) -> String {
        self.components += 1;
        let arguments = json!({ "name": format!("c{}", self.components), "spec": { "replicas": 2 } });
        self.world.manager.command(self.world.cluster_id(), "managedcomponent.apply", &arguments)
    }

    fn outcome(&self, command_id: &str) -> Value {
        let outcome = self.world.manager.wait_command(self.world.cluster_id(), command_id, BOUND);
        assert_eq!(outcome["status"], "succeeded", "{outcome}");
        outcome
    }

    /// How often a replica has read or written the Lease, by its log.
    fn looks(&self, agent: usize) -> usize {
        let log = self.agents[agent].process().stderr_text();
        log.matches("/leases/navin-cluster-agent status=200").count()
    }

    fn wait_following(&self, agent: usize, looks: usize) {
        until("the follower to follow", BOUND, || (self.looks(agent) > looks).then_some(()));
    }

    fn follow_again(&self, agent: usize) {
        let looks = self.looks(agent);
        self.agents[agent].process().start_again();
        self.wait_following(agent, looks);
    }
}
