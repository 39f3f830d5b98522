//! One API server with an audit log, the programs that are measured, and where they are.

use crate::audit::Audit;
use crate::peers::{self, Peer, Replica};
use navin_test_support::{
    Agent, AgentOptions, Api, Cluster, RunFolder, World, other_agent, say, target_dir, until, without_cargo,
    workspace_dir,
};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The longest wait for anything that is not measured.
pub(crate) const BOUND: Duration = Duration::from_mins(2);

/// Where the peers run unless a row says otherwise.
pub(crate) const DEFAULT: &str = "default";

/// All that the rows share.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) cluster: &'static Cluster,
    pub(crate) audit: Audit,
    pub(crate) peers: [Peer; 2],
    /// The agent as it is released: static and stripped.
    pub(crate) agent: PathBuf,
    /// For the peers: the cluster's admin.
    pub(crate) kubeconfig: PathBuf,
    pub(crate) folder: RunFolder,
}

impl Lab {
    /// Builds everything and starts the API server.
    pub(crate) fn start() -> Self {
        Self::start_with(peers::build())
    }

    /// The same without the peers.
    pub(crate) fn start_alone() -> Self {
        Self::start_with(peers::all())
    }

    fn start_with(peers: [Peer; 2]) -> Self {
        let agent = build_agent();
        let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start_audited()));
        let folder = RunFolder::new("bench");
        let kubeconfig = folder.path().join("kubeconfig");
        cluster.kubeconfig(&kubeconfig);
        let lab = Self { cluster, audit: Audit::new(cluster.audit_log()), peers, agent, kubeconfig, folder };
        lab.install_things();
        lab
    }

    /// The custom resource that the peers keep.
    fn install_things(&self) {
        let text = fs::read_to_string(workspace_dir().join("benches/peers/things.yaml")).expect("the CRD");
        self.admin().apply_yaml(&text);
        until("the API of things", BOUND, || (self.admin().get(&things(DEFAULT)).0 == 200).then_some(()));
    }

    pub(crate) fn admin(&self) -> Api {
        self.cluster.admin()
    }

    /// The API server's version.
    pub(crate) fn version(&self) -> Value {
        self.admin().get("/version").1["gitVersion"].take()
    }

    /// A namespace, a manager and an identity for ours.
    pub(crate) fn world(&self, name: &str, overrides: &Value) -> World {
        World::start_in(self.cluster, name, overrides)
    }

    /// A replica of ours, as released.
    pub(crate) fn ours(&self, world: &World, pod: &str) -> Agent {
        world.agent_with(self.options(world, pod))
    }

    /// The same, for a row that wants something else in it.
    pub(crate) fn options(&self, world: &World, pod: &str) -> AgentOptions {
        AgentOptions { program: Some(self.agent.clone()), ..world.agent_options(pod) }
    }

    /// A replica of a peer's that keeps so many things in [`DEFAULT`], elected by the Lease of this name.
    pub(crate) fn theirs(&self, peer: &Peer, id: &str, lease: &str, things: u32) -> Replica {
        self.theirs_in(DEFAULT, peer, id, lease, things)
    }

    /// The same in another namespace.
    pub(crate) fn theirs_in(
        &self,
        namespace: &str,
        peer: &Peer,
        id: &str,
        lease: &str,
        things: u32,
    ) -> Replica {
        let options = [("namespace", namespace), ("id", id), ("lease", lease), ("n", &things.to_string())];
        peer.start(&self.kubeconfig, &self.folder, id, options)
    }

    /// Deletes a Lease of the peers', so that the next one is a first start.
    pub(crate) fn forget_lease(&self, lease: &str) {
        self.admin().delete(&format!("/apis/coordination.k8s.io/v1/namespaces/{DEFAULT}/leases/{lease}"));
    }
}

/// Where the peers' things of a namespace are.
pub(crate) fn things(namespace: &str) -> String {
    format!("/apis/perf.example.com/v1/namespaces/{namespace}/things")
}

/// How the audit log names a replica of ours: by the id of its token.
pub(crate) fn who(agent: &Agent) -> String {
    who_has(&fs::read_to_string(agent.token_file()).expect("the agent's token"))
}

/// The same of whoever has this token.
pub(crate) fn who_has(token: &str) -> String {
    use base64::Engine as _;
    let claims = token.split('.').nth(1).expect("the claims of a token");
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).expect("base64");
    let claims: Value = serde_json::from_slice(&claims).expect("claims");
    format!("JTI={}", claims["jti"].as_str().expect("the id of a token"))
}

/// Commands one component of ours, and waits for the outcome.
pub(crate) fn apply(world: &World, name: &str, number: u32) {
    let outcome = world.apply(name, &spec(number), BOUND);
    assert_eq!(outcome["status"], "succeeded", "{outcome}");
}

/// What both ours and theirs keep, of the same size.
pub(crate) fn spec(number: u32) -> Value {
    json!({ "size": number, "color": "blue", "replicas": 3,
        "data": { "a": "x".repeat(100), "b": "y".repeat(100), "c": number.to_string() } })
}

/// A component as the agent writes it.
pub(crate) fn component(namespace: &str, name: &str, number: u32, version: &str) -> String {
    let mut object = json!({
        "apiVersion": "platform.navin.ai/v1",
        "kind": "ManagedComponent",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": { "app.kubernetes.io/managed-by": "navin-cluster-agent" },
            "annotations": {
                "platform.navin.ai/command-id": "00000000-0000-4000-8000-000000000000",
                "platform.navin.ai/sequence": "1",
                "platform.navin.ai/created": "1",
            },
        },
        "spec": spec(number),
    });
    if !version.is_empty() {
        object["metadata"]["resourceVersion"] = version.into();
    }
    object.to_string()
}

fn build_agent() -> PathBuf {
    if let Some(other) = other_agent() {
        return other;
    }
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    say("building the agent as it is released (scripts/build-static)");
    let output = without_cargo(&mut Command::new(workspace_dir().join("scripts/build-static")))
        .arg(&triple)
        .env("CARGO_TARGET_DIR", target_dir())
        .output()
        .expect("scripts/build-static");
    assert!(output.status.success(), "scripts/build-static: {}", String::from_utf8_lossy(&output.stderr));
    target_dir().join(triple).join("release/navin-cluster-agent")
}
