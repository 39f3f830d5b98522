//! A world whose replicas reach API server and manager over proxies of their own, so that a scenario sees
//! each call of each replica and decides what becomes of it.

use crate::signer::Signer;
use navin_test_support::{Agent, AgentOptions, Exchange, Proxy, Server, Wire, World};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A short Lease, in seconds, for what waits for its end.
pub(crate) const LEASE_S: u64 = 3;
/// The same as a time.
pub(crate) const TERM: Duration = Duration::from_secs(LEASE_S);
/// What a loaded machine may add to it.
pub(crate) const SLACK: Duration = Duration::from_secs(2);

/// The world and its wire; no agent runs until [`Wired::replica`].
pub(crate) struct Wired {
    pub(crate) world: World,
    pub(crate) wire: Wire,
    pub(crate) signer: Signer,
}

/// A replica with its proxies. The agent ends before they do.
pub(crate) struct Replica {
    pub(crate) agent: Agent,
    api: Proxy,
    _gateway: Proxy,
}

impl Replica {
    /// Breaks its connections to the API server; it may connect anew.
    pub(crate) fn reset_api(&self) {
        self.api.reset();
    }
}

impl Wired {
    /// Sets it up; `overrides` as for [`World::start`].
    pub(crate) fn start(name: &str, overrides: &Value) -> Self {
        Self::over(World::start(name, overrides))
    }

    /// The same with a Lease of [`LEASE_S`].
    pub(crate) fn short_lease(name: &str) -> Self {
        Self::start(name, &json!({ "lease_duration_s": LEASE_S }))
    }

    /// The same over a world that was set up otherwise.
    pub(crate) fn over(world: World) -> Self {
        let signer = Signer::of_manager(&world);
        Self { world, wire: Wire::new(), signer }
    }

    /// Starts a replica.
    pub(crate) fn replica(&self, pod: &str) -> Replica {
        self.replica_with(pod, &[])
    }

    /// Starts a replica with more environment.
    pub(crate) fn replica_with(&self, pod: &str, envs: &[(&str, &str)]) -> Replica {
        let envs = envs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.replica_as(pod, |mut options| {
            options.envs.extend(envs);
            options
        })
    }

    /// Starts a replica with other options.
    pub(crate) fn replica_as(&self, pod: &str, change: impl FnOnce(AgentOptions) -> AgentOptions) -> Replica {
        let api = Proxy::of_api_server(self.world.cluster, pod, &self.wire);
        let gateway = Proxy::of_gateway(&self.world.manager, &self.world.identity_dir, pod, &self.wire);
        let mut options = self.world.agent_options(pod);
        options.identity_dir = self.world.folder().join(format!("identity-{pod}"));
        self.copy_identity(&options.identity_dir, &gateway.url());
        options.kube_api = Some(api.url());
        Replica { agent: self.world.agent_with(change(options)), api, _gateway: gateway }
    }

    /// The same identity with another way to the gateway, signed as the manager would.
    fn copy_identity(&self, folder: &Path, gateway_url: &str) {
        fs::create_dir_all(folder).expect("an identity folder");
        for name in ["manager.pem", "ca.crt", "tls.crt", "tls.key"] {
            fs::copy(self.world.identity_dir.join(name), folder.join(name)).expect("a file of the identity");
        }
        let config = fs::read(self.world.identity_dir.join("config.json")).expect("config.json");
        let mut config: Value = serde_json::from_slice(&config).expect("JSON");
        config["payload"]["gateway_url"] = gateway_url.into();
        let config = self.signer.sign(&config["payload"]);
        fs::write(folder.join("config.json"), config.to_string()).expect("config.json");
    }

    /// Waits until a call of this replica took effect, from number `from` on.
    #[track_caller]
    pub(crate) fn wait_effect(
        &self,
        from: usize,
        bound: Duration,
        pod: &str,
        method: &str,
        resource_end: &str,
    ) -> Exchange {
        let what = format!("{method} {resource_end} of {pod}");
        self.wire.wait(&what, from, bound, |exchange| {
            exchange.call.agent == pod && exchange.call.is(method, resource_end) && exchange.took_effect()
        })
    }
}

/// Where the Lease, the state and the components end.
pub(crate) const LEASE: &str = "/leases/navin-cluster-agent";
pub(crate) const LEASES: &str = "/leases";
pub(crate) const STATE: &str = "/configmaps/navin-cluster-agent-state";
pub(crate) const STATES: &str = "/configmaps";
pub(crate) const COMPONENTS: &str = "/managedcomponents";
pub(crate) const RECEIPTS: &str = "/v1/cluster-agent/receipts";
pub(crate) const REPORT: &str = "/v1/cluster-agent/report";
pub(crate) const COMMANDS: &str = "/v1/cluster-agent/commands";

/// Whether it writes the Lease.
pub(crate) fn writes_lease(exchange: &Exchange) -> bool {
    exchange.call.is("PUT", LEASE) || exchange.call.is("POST", LEASES)
}

/// Whether it writes the state.
pub(crate) fn writes_state(exchange: &Exchange) -> bool {
    exchange.call.is("PUT", STATE) || exchange.call.is("POST", STATES)
}

/// Whether it writes a component.
pub(crate) fn writes_component(exchange: &Exchange) -> bool {
    exchange.call.server == Server::Api
        && exchange.call.method != "GET"
        && exchange.call.resource().contains(COMPONENTS)
}

/// The state that a call wrote or tried to write.
pub(crate) fn state_in(exchange: &Exchange) -> Option<Value> {
    let object = exchange.call.json();
    serde_json::from_str(object["data"]["state.json"].as_str()?).ok()
}

/// The holder that a write of the Lease names; empty for a release.
pub(crate) fn holder_in(exchange: &Exchange) -> String {
    exchange.call.json()["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}
