//! The real manager as a process, and its REST API as an operator of one tenant calls it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::binaries::cargo_binary;
use crate::identity::Identity;
use crate::process::{Launch, Process};
use crate::wait::until;

/// From the start to both ports open, on a loaded machine.
const STARTED: Duration = Duration::from_secs(20);

/// A running manager with an operator's token.
#[derive(Debug)]
pub struct Manager {
    process: Process,
    folder: PathBuf,
    rest_url: String,
    gateway_url: String,
    api: Api,
}

impl Manager {
    /// Starts it on free loopback ports with its data in `folder/data`, and makes a token for `tenant`.
    pub fn start(folder: &Path, tenant: &str) -> Self {
        Self::start_with(folder, tenant, vec![])
    }

    /// The same with more environment.
    pub fn start_with(folder: &Path, tenant: &str, envs: Vec<(String, String)>) -> Self {
        let process = Process::start(Launch {
            name: "manager".into(),
            program: cargo_binary("navin-manager"),
            args: serve(folder, "127.0.0.1:0", "127.0.0.1:0"),
            envs,
            folder: folder.to_owned(),
        });
        let addresses = process.announces(1, STARTED);
        let url =
            |of: &str| addresses[of].as_str().unwrap_or_else(|| panic!("no {of} in {addresses}")).to_owned();
        let (rest_url, gateway_url) = (url("rest"), url("gateway"));
        let ca_pem = fs::read_to_string(folder.join("data/tls/ca.crt")).expect("the manager's CA");
        let api = Api::new(&rest_url, &ca_pem, None);
        let mut manager = Self { process, folder: folder.to_owned(), rest_url, gateway_url, api };
        manager.api = manager.operator(tenant);
        manager
    }

    /// Kills it, and starts it again on the same ports with the same data.
    pub fn restart(&self) {
        let before = self.process.announced().len();
        let address = |url: &str| url.trim_start_matches("https://").to_owned();
        let args = serve(&self.folder, &address(&self.rest_url), &address(&self.gateway_url));
        self.process.start_again_with(args);
        self.process.announces(before + 1, STARTED);
    }

    /// Its process, to be paused or killed.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// `https://127.0.0.1:<port>` of the REST API.
    pub fn rest_url(&self) -> &str {
        &self.rest_url
    }

    /// `https://127.0.0.1:<port>` of the agents' gateway.
    pub fn gateway_url(&self) -> &str {
        &self.gateway_url
    }

    /// The folder that `--data` names.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The REST API as the operator whose tenant the manager was started for.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The REST API as a new operator of any tenant.
    pub fn operator(&self, tenant: &str) -> Api {
        let token = self.run(&["token", "--data", "data", "--tenant", tenant]);
        self.api.with_bearer(Some(token.trim()))
    }

    /// Runs another subcommand to its end, in the manager's folder; returns what it printed.
    pub fn run(&self, args: &[&str]) -> String {
        let process = Process::start(Launch {
            name: format!("manager-{}-{}", args[0], crate::credentials::random_token()),
            program: cargo_binary("navin-manager"),
            args: args.iter().map(OsString::from).collect(),
            envs: vec![],
            folder: self.folder.clone(),
        });
        let exit = process.wait_exit(Duration::from_secs(30));
        assert_eq!(exit, Some(0), "navin-manager {args:?}: {}", process.stderr_tail());
        process.stdout_text()
    }

    /// Registers a cluster; with a kubeconfig where the manager shall look at it itself.
    #[track_caller]
    pub fn register(&self, cluster_id: &str, namespace: &str, kubeconfig: Option<&str>) -> Value {
        let mut body = json!({ "cluster_id": cluster_id, "namespace": namespace });
        if let Some(kubeconfig) = kubeconfig {
            body["kubeconfig"] = kubeconfig.into();
        }
        self.post("/api/v1/clusters", &body)
    }

    /// The cluster as the manager shows it.
    #[track_caller]
    pub fn cluster(&self, cluster_id: &str) -> Value {
        self.get(&format!("/api/v1/clusters/{cluster_id}"))
    }

    /// Issues an identity, which revokes the one before. `overrides` are members of the request:
    /// `gateway_url`, which is otherwise this manager's, and the times, which have defaults.
    #[track_caller]
    pub fn issue_identity(&self, cluster_id: &str, overrides: &Value) -> Identity {
        let mut request = Map::from_iter([("gateway_url".to_owned(), self.gateway_url.clone().into())]);
        request.extend(overrides.as_object().cloned().unwrap_or_default());
        let path = format!("/api/v1/clusters/{cluster_id}/kubernetes/agent");
        Identity::new(self.post(&path, &Value::Object(request)))
    }

    /// Queues a command with the manager's own validity; its `command_id`.
    #[track_caller]
    pub fn command(&self, cluster_id: &str, operation: &str, arguments: &Value) -> String {
        self.queue(cluster_id, &json!({ "operation": operation, "arguments": arguments }))
    }

    /// Queues a command that ends some seconds from now; its `command_id`.
    #[track_caller]
    pub fn command_valid_for(
        &self,
        cluster_id: &str,
        operation: &str,
        arguments: &Value,
        seconds: u64,
    ) -> String {
        let request = json!({ "operation": operation, "arguments": arguments, "valid_for_s": seconds });
        self.queue(cluster_id, &request)
    }

    #[track_caller]
    fn queue(&self, cluster_id: &str, request: &Value) -> String {
        let queued = self.post(&format!("/api/v1/clusters/{cluster_id}/kubernetes/commands"), request);
        queued["command_id"].as_str().expect("a command_id").to_owned()
    }

    /// Registers and signs a command from the command line, for which the manager need not run; its envelope.
    #[track_caller]
    pub fn sign(&self, tenant_id: &str, cluster_id: &str, operation: &str, arguments: &Value) -> String {
        let (whose, arguments) = (["--tenant", tenant_id, "--cluster", cluster_id], arguments.to_string());
        let what = ["--operation", operation, "--arguments", &arguments];
        self.run(&[&["sign", "--data", "data"], &whose[..], &what].concat())
    }

    /// A command as the manager shows it: `status`, `receipt`, `receipts`, `envelope` and more.
    #[track_caller]
    pub fn command_status(&self, cluster_id: &str, command_id: &str) -> Value {
        self.get(&format!("/api/v1/clusters/{cluster_id}/kubernetes/commands/{command_id}"))
    }

    /// Waits for the command's outcome, its own `expired` included; returns the command as shown.
    #[track_caller]
    pub fn wait_command(&self, cluster_id: &str, command_id: &str, bound: Duration) -> Value {
        until(&format!("the outcome of command {command_id}"), bound, || {
            let command = self.command_status(cluster_id, command_id);
            let waiting = ["queued", "delivered"].iter().any(|status| command["status"] == *status);
            (!waiting).then_some(command)
        })
    }

    /// Queues a command and waits for its outcome.
    #[track_caller]
    pub fn execute(&self, cluster_id: &str, operation: &str, arguments: &Value, bound: Duration) -> Value {
        let command_id = self.command(cluster_id, operation, arguments);
        self.wait_command(cluster_id, &command_id, bound)
    }

    /// The last inventory, if there is one: `revision`, `received_at`, `inventory`.
    #[track_caller]
    pub fn inventory(&self, cluster_id: &str) -> Option<Value> {
        match self.api.get(&format!("/api/v1/clusters/{cluster_id}/kubernetes/inventory")) {
            (200, inventory) => Some(inventory),
            (404, _) => None,
            (status, answer) => panic!("inventory: {status} {answer}"),
        }
    }

    /// The audit of the tenant, the newest entries first.
    #[track_caller]
    pub fn audit(&self) -> Vec<Value> {
        match self.get("/api/v1/audit?limit=1000")["entries"].take() {
            Value::Array(entries) => entries,
            other => panic!("audit: entries is {other}"),
        }
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.api.get(path);
        assert_eq!(status, 200, "GET {path}: {answer}");
        answer
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.api.post(path, body);
        assert!(status == 200 || status == 201, "POST {path}: {status} {answer}");
        answer
    }
}

fn serve(folder: &Path, rest: &str, gateway: &str) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["serve".into(), "--data".into(), folder.join("data").into()];
    for (option, value) in [
        ("--listen", rest),
        ("--gateway-listen", gateway),
        ("--server-name", "localhost"),
        ("--server-name", "127.0.0.1"),
    ] {
        args.extend([option.into(), value.into()]);
    }
    args
}
