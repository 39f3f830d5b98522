//! One world in which rows are tried one after another: two replicas, with proxies between them and both peers.

use crate::certs::Authority;
use navin_test_support::{
    Agent, Cluster, Fate, Gate, Process, Proxy, Reading, RunFolder, Server, Wire, World, until,
};
use serde_json::{Value, json};
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Short, so that leadership is lost soon.
const LEASE_S: u64 = 3;
/// Short, so that a poll that is answered by nobody is over soon: 15 s later.
const POLL_WAIT_S: u64 = 5;
/// The least that there is, so that reports go on all the while.
const REPORT_INTERVAL_S: u64 = 10;
/// Longest wait for a world that is well.
pub(crate) const BOUND: Duration = Duration::from_mins(1);
/// By which names the agents know their peers.
const NAMES: [(Server, &str); 2] = [(Server::Api, "kube.test"), (Server::Gateway, "gateway.test")];

/// The components of a lane: for the command before the fault, and for the one in it.
pub(crate) const FIRST: &str = "first";
pub(crate) const SECOND: &str = "second";
/// How many there are for the hand: one that is repaired more than five times in ten minutes is let be.
const DRIFTS: u64 = 20;

/// A replica and its way to the API server. The agent ends before that does.
pub(crate) struct Replica {
    pub(crate) agent: Agent,
    pub(crate) api: Proxy,
}

/// The world. What is declared first ends first.
pub(crate) struct Lane {
    pub(crate) replicas: [Replica; 2],
    pub(crate) gateway: Proxy,
    pub(crate) world: World,
    pub(crate) wire: Wire,
    /// Who signs what the API server's proxies show, and the gateway's.
    pub(crate) authorities: [Authority; 2],
    /// Files that take the place of `/etc/hosts` and `/etc/resolv.conf`.
    hosts: PathBuf,
    resolver: PathBuf,
    /// How many rows were tried, and how much was changed by hand.
    pub(crate) number: u64,
    drifts: AtomicU64,
}

impl Lane {
    /// Sets it up and waits until it is at rest.
    pub(crate) fn start(cluster: &'static Cluster) -> Self {
        let overrides = |gateway_url: Option<String>| {
            let mut overrides = json!({ "lease_duration_s": LEASE_S, "poll_wait_s": POLL_WAIT_S,
                "report_interval_s": REPORT_INTERVAL_S });
            if let Some(url) = gateway_url {
                overrides["gateway_url"] = url.into();
            }
            overrides
        };
        let world = World::start_in(cluster, "faults", &overrides(None));
        let wire = Wire::new();
        let gateway = Proxy::of_gateway(&world.manager, &world.identity_dir, "agents", &wire);
        world.reissue_identity(&overrides(Some(format!("https://{}:{}", NAMES[1].1, gateway.port()))));
        gateway.speak_as(&world.identity_dir);
        let authorities = [Authority::new("api"), Authority::of_manager(&world.manager.data().join("tls"))];
        let shown = authorities[1].certificate(None);
        gateway.show(&shown.chain, &shown.key);
        let (hosts, resolver) = (world.folder().join("hosts"), world.folder().join("resolv.conf"));
        fs::write(&hosts, hosts_but(None)).expect("a hosts file");
        fs::write(&resolver, nameserver(false)).expect("a resolver's file");
        let replicas = ["agent-0", "agent-1"].map(|pod| {
            let api = Proxy::of_api_server(cluster, pod, &wire);
            let shown = authorities[0].certificate(None);
            api.show(&shown.chain, &shown.key);
            let mut options = world.agent_options(pod);
            options.kube_api = Some(format!("https://{}:{}", NAMES[0].1, api.port()));
            options.kube_ca = Some(authorities[0].pem.clone());
            options.envs = vec![
                ("RUST_LOG".to_owned(), "debug".to_owned()),
                // As musl does, of which the shipped binary is made: what is large goes back to the system.
                ("MALLOC_MMAP_THRESHOLD_".to_owned(), "131072".to_owned()),
                // Whom a client with the roots of its machine would trust.
                ("SSL_CERT_FILE".to_owned(), public_authority().1.display().to_string()),
            ];
            let script = "mount --bind \"$0\" /etc/hosts && mount --bind \"$1\" /etc/resolv.conf && shift && exec \"$@\"";
            let wrapper = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script];
            options.wrapper = wrapper.map(Into::into).to_vec();
            options.wrapper.extend([hosts.clone().into(), resolver.clone().into()]);
            Replica { agent: world.agent_with(options), api }
        });
        let drifts = AtomicU64::new(0);
        let lane = Self { replicas, gateway, world, wire, authorities, hosts, resolver, number: 0, drifts };
        lane.rest();
        let drifts = (0..DRIFTS).map(|number| format!("drift-{number}"));
        let names = drifts.chain([FIRST.to_owned(), SECOND.to_owned()]);
        let commands: Vec<String> = names.map(|name| lane.queue(&name, &json!({ "row": 0 }))).collect();
        for command in commands {
            let shown = lane.world.manager.wait_command(lane.world.cluster_id(), &command, BOUND);
            assert_eq!(shown["status"], "succeeded", "{shown}");
        }
        lane
    }

    /// Waits until one replica leads and has written so; which.
    pub(crate) fn rest(&self) -> usize {
        until("a leader at rest", BOUND, || {
            for replica in &self.replicas {
                let process = replica.agent.process();
                assert!(process.is_running(), "{} ended: {}", replica.agent.pod(), process.stderr_tail());
            }
            self.leader()
        })
    }

    /// The replica that holds the Lease and has written the state.
    pub(crate) fn leader(&self) -> Option<usize> {
        self.replicas.iter().position(|replica| replica.agent.rules(&self.world.namespace))
    }

    /// Queues an apply; its `command_id`.
    pub(crate) fn queue(&self, name: &str, spec: &Value) -> String {
        let arguments = json!({ "name": name, "spec": spec });
        self.world.manager.command(self.world.cluster_id(), "managedcomponent.apply", &arguments)
    }

    /// Changes a component by hand: one after another.
    pub(crate) fn drift(&self) {
        let number = self.drifts.fetch_add(1, Ordering::Relaxed);
        let path = self.world.namespace.component_path(&format!("drift-{}", number % DRIFTS));
        let change = json!({ "spec": { "row": 0, "by": "hand", "number": number } });
        let (status, answer) = self.world.cluster.admin().patch(&path, &change);
        assert_eq!(status, 200, "{answer}");
    }

    /// Whether all of these are as they were commanded.
    pub(crate) fn drift_is_gone(&self) -> bool {
        let all = self.world.cluster.admin().list(&self.world.namespace.components_path());
        let drifted = |live: &Value| live["spec"]["by"] == "hand";
        !all.iter().any(drifted)
    }

    /// Holds the first command where it is about to get its answer from `peer`: its receipt before the gateway
    /// sees it, its write when the API server has done it.
    pub(crate) fn hold_first(&self, peer: Server, spec: &Value) -> (String, Gate) {
        let gate = Gate::new();
        let held = gate.clone();
        self.wire.rule(move |call, reply| {
            let here = match peer {
                Server::Gateway => reply.is_none() && call.is("POST", "/receipts"),
                Server::Api => reply.is_some() && call.is("PUT", &format!("/managedcomponents/{FIRST}")),
            };
            if call.server == peer && here { Fate::Hold(held.clone()) } else { Fate::Pass }
        });
        let command = self.queue(FIRST, spec);
        gate.wait_reached(BOUND);
        (command, gate)
    }

    /// The proxies in front of a peer, or of one replica alone.
    pub(crate) fn proxies(&self, peer: Server, alone: Option<usize>) -> Vec<&Proxy> {
        match (peer, alone) {
            (Server::Api, Some(replica)) => vec![&self.replicas[replica].api],
            (Server::Api, None) => self.replicas.iter().map(|replica| &replica.api).collect(),
            (Server::Gateway, _) => vec![&self.gateway],
        }
    }

    /// The peer's processes.
    pub(crate) fn server(&self, peer: Server) -> &Process {
        match peer {
            Server::Api => self.world.cluster.api_server(),
            Server::Gateway => self.world.manager.process(),
        }
    }

    pub(crate) fn readings(&self) -> [Reading; 2] {
        [0, 1].map(|number| Reading::of(self.replicas[number].agent.process().pid()))
    }

    /// How often the replicas' logs say this.
    pub(crate) fn count_log(&self, what: &str) -> usize {
        self.replicas.iter().map(|replica| replica.agent.count_log(what)).sum()
    }

    /// The name of this peer does not resolve any more: nobody answers, or somebody who is silent.
    pub(crate) fn forget_name(&self, peer: Server, silent: bool) {
        fs::write(&self.resolver, nameserver(silent)).expect("a resolver's file");
        fs::write(&self.hosts, hosts_but(Some(peer))).expect("a hosts file");
    }

    /// Every name resolves.
    pub(crate) fn resolve_names(&self) {
        fs::write(&self.hosts, hosts_but(None)).expect("a hosts file");
    }
}

fn hosts_but(peer: Option<Server>) -> String {
    let names = NAMES.iter().filter(|(of, _)| Some(*of) != peer).map(|(_, name)| *name);
    // Never without a line: a look-up finds the file, and not the name.
    format!("127.0.0.1 localhost {}\n", names.collect::<Vec<_>>().join(" "))
}

/// Where names are asked for: an address of this process's own, where nobody is, or somebody who never answers.
fn resolver_at(silent: bool) -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, if silent { 128 } else { 64 } + high % 64, middle, low)
}

fn nameserver(silent: bool) -> String {
    format!("nameserver {}\n", resolver_at(silent))
}

/// Takes in what is asked, and never answers; it needs the right to port 53.
pub(crate) fn silent_resolver() -> &'static UdpSocket {
    static SOCKET: OnceLock<UdpSocket> = OnceLock::new();
    SOCKET.get_or_init(|| UdpSocket::bind((resolver_at(true), 53)).expect("the resolver's port, as root"))
}

/// An authority that the machine would trust, and its file.
pub(crate) fn public_authority() -> &'static (Authority, PathBuf) {
    static AUTHORITY: OnceLock<(Authority, PathBuf)> = OnceLock::new();
    static FOLDER: OnceLock<RunFolder> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let authority = Authority::new("public");
        let file = FOLDER.get_or_init(|| RunFolder::new("public")).path().join("ca.crt");
        fs::write(&file, &authority.pem).expect("the public authority's file");
        (authority, file)
    })
}
