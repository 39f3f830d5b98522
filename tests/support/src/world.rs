//! All that one scenario needs, set up: a namespace in the shared cluster, a manager, an identity.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::{Agent, AgentOptions};
use crate::cluster::Cluster;
use crate::folder::RunFolder;
use crate::identity::Identity;
use crate::manager::Manager;
use crate::namespace::Namespace;

/// The tenant of every scenario.
const TENANT: &str = "acme";

/// One scenario's world. No agent runs in it until the test starts one: [`World::agent`].
#[derive(Debug)]
pub struct World {
    /// The control plane: shared, or the scenario's own.
    pub cluster: &'static Cluster,
    /// The managed namespace.
    pub namespace: Namespace,
    /// The manager, which knows the cluster by [`World::cluster_id`].
    pub manager: Manager,
    /// The identity folder, which the replicas share.
    pub identity_dir: PathBuf,
    // Last: the manager ends before its files go.
    folder: RunFolder,
}

impl World {
    /// Sets it up in the cluster that this process's tests share.
    ///
    /// `name` is an RFC 1123 label of some twenty characters; `overrides` are what the identity's
    /// configuration shall have besides its defaults, such as `{"lease_duration_s": 3}`.
    pub fn start(name: &str, overrides: &Value) -> Self {
        Self::start_in(Cluster::shared(), name, overrides)
    }

    /// Sets it up in a cluster of its own, which the test may stop. The cluster lives as long as the
    /// process does.
    pub fn start_alone(name: &str, overrides: &Value) -> Self {
        Self::start_in(Box::leak(Box::new(Cluster::start())), name, overrides)
    }

    /// Sets it up in a cluster that some scenarios share and others must not see, since they change what
    /// is cluster-wide in it.
    pub fn start_in(cluster: &'static Cluster, name: &str, overrides: &Value) -> Self {
        Self::start_with(cluster, name, overrides, vec![])
    }

    /// The same with a manager that says all that it can be asked to say.
    pub fn start_loud(name: &str, overrides: &Value) -> Self {
        let envs = vec![("NAVIN_LOG".to_owned(), "trace".to_owned())];
        Self::start_with(Cluster::shared(), name, overrides, envs)
    }

    fn start_with(
        cluster: &'static Cluster,
        name: &str,
        overrides: &Value,
        envs: Vec<(String, String)>,
    ) -> Self {
        let folder = RunFolder::new(name);
        let namespace = cluster.namespace(name);
        let manager = Manager::start_with(folder.path(), TENANT, envs);
        let identity_dir = folder.path().join("identity");
        let world = Self { cluster, namespace, manager, identity_dir, folder };
        world.manager.register(world.cluster_id(), &world.namespace.name, None);
        world.reissue_identity(overrides);
        world
    }

    /// The name by which the manager knows the cluster: that of the namespace.
    pub fn cluster_id(&self) -> &str {
        &self.namespace.name
    }

    /// The tenant that the manager's operator and the cluster belong to.
    pub fn tenant_id(&self) -> &'static str {
        TENANT
    }

    /// Where the scenario's files and logs are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a replica, as a pod of this name. Declare it after the world, so that it ends before.
    pub fn agent(&self, pod: &str) -> Agent {
        Agent::start(self.cluster, &self.namespace, self.agent_options(pod))
    }

    /// What [`World::agent`] starts a replica with, for a test that wants something else in it.
    pub fn agent_options(&self, pod: &str) -> AgentOptions {
        AgentOptions {
            pod: pod.to_owned(),
            program: None,
            identity_dir: self.identity_dir.clone(),
            inbox: None,
            kube_api: None,
            kube_ca: None,
            wrapper: vec![],
            args: vec![],
            envs: vec![],
            folder: self.folder.path().to_owned(),
        }
    }

    /// Starts a replica with other options than [`World::agent`].
    pub fn agent_with(&self, options: AgentOptions) -> Agent {
        Agent::start(self.cluster, &self.namespace, options)
    }

    /// Issues a new identity, which revokes the one before, and puts it into the identity folder.
    pub fn reissue_identity(&self, overrides: &Value) -> Identity {
        let identity = self.manager.issue_identity(self.cluster_id(), overrides);
        identity.write(&self.identity_dir);
        identity
    }

    /// Commands a component's spec and waits for the outcome.
    #[track_caller]
    pub fn apply(&self, name: &str, spec: &Value, bound: Duration) -> Value {
        let arguments = json!({ "name": name, "spec": spec });
        self.manager.execute(self.cluster_id(), "managedcomponent.apply", &arguments, bound)
    }

    /// Commands a component's deletion and waits for the outcome.
    #[track_caller]
    pub fn delete(&self, name: &str, bound: Duration) -> Value {
        let arguments = json!({ "name": name });
        self.manager.execute(self.cluster_id(), "managedcomponent.delete", &arguments, bound)
    }
}
