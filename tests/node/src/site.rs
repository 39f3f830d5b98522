//! The cluster, the manager, and the agent's pods, as the checks reach them.

use navin_test_support::{Api, Launch, Process, until, workspace_dir};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

/// Where the manager and the API server are: the bridge that the nodes hang on.
pub(crate) const HOST: &str = "172.31.250.1";
/// Where the agent is installed.
pub(crate) const NAMESPACE: &str = "navin-platform";
/// Longest wait for what the cluster does by itself.
pub(crate) const SOON: Duration = Duration::from_mins(2);

const PODS: &str =
    "/api/v1/namespaces/navin-platform/pods?labelSelector=app.kubernetes.io%2Fname%3Dnavin-cluster-agent";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/navin-platform/leases/navin-cluster-agent";
const COMPONENTS: &str = "/apis/platform.navin.ai/v1/namespaces/navin-platform/managedcomponents";

/// All that a check needs.
pub(crate) struct Site {
    /// What `tests/node/run` wrote, and where the manager's data and the logs are.
    pub(crate) folder: PathBuf,
    pub(crate) nodes: usize,
    /// The API server, as its admin.
    pub(crate) api: Api,
    /// The REST API of the manager, as the tenant's operator.
    pub(crate) manager: Api,
    pub(crate) process: Process,
    check: Cell<&'static str>,
}

impl Site {
    /// The cluster of the environment; starts the manager as the README says.
    pub(crate) fn found() -> Self {
        let folder = PathBuf::from(env::var("NODE_DIR").expect("NODE_DIR, which tests/node/run sets"));
        let nodes = env::var("NODES").ok().and_then(|number| number.parse().ok()).expect("NODES");
        let api_ca = fs::read_to_string(folder.join("keys/ca.crt")).expect("the cluster's CA");
        let tokens = fs::read_to_string(folder.join("keys/tokens.csv")).expect("the cluster's users");
        let admin = tokens.lines().find(|line| line.contains(",admin,")).expect("an admin");
        let token = admin.split(',').next().unwrap_or_default();
        let api = Api::new(&format!("https://{HOST}:6443"), &api_ca, Some(token));

        let [_, make_token, serve, _]: [String; 4] =
            crate::docs::commands(1).try_into().expect("four commands in the README");
        let made = run(&localised(&make_token, &folder).replace("> token", "> $NODE_DIR/token"));
        assert!(made.status.success(), "{make_token}: {}", String::from_utf8_lossy(&made.stderr));
        let process = Process::start(Launch {
            name: "manager".into(),
            program: "bash".into(),
            args: vec![
                "-c".into(),
                format!("exec {}", localised(serve.trim_end_matches(" &"), &folder)).into(),
            ],
            envs: vec![],
            folder: folder.join("log"),
        });
        let ca = folder.join("manager/tls/ca.crt");
        until("the manager to listen", SOON, || process.stdout_text().contains("gateway").then_some(()));
        let token = fs::read_to_string(folder.join("token")).expect("the operator's token");
        let ca_pem = fs::read_to_string(ca).expect("the manager's CA");
        let manager = Api::new("https://127.0.0.1:8461", &ca_pem, Some(token.trim()));
        Self { folder, nodes, api, manager, process, check: Cell::new("") }
    }

    /// From now on, a panic is of this check.
    pub(crate) fn begin(&self, check: &'static str) {
        self.check.set(check);
    }

    /// No check is under way any more.
    pub(crate) fn ended(&self) {
        self.check.set("");
    }

    /// Runs a line as an operator types it, to its end; returns what it printed. Anything but exit 0 is a panic.
    #[track_caller]
    pub(crate) fn sh(&self, line: &str) -> String {
        let line = localised(line, &self.folder);
        let output = run(&line);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{line}\n{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// As [`Site::sh`], where it may fail.
    pub(crate) fn try_sh(&self, line: &str) -> Output {
        run(&localised(line, &self.folder))
    }

    /// `localhost/navin-cluster-agent@sha256:…` of an image that was made beforehand.
    pub(crate) fn image(&self, name: &str) -> String {
        let digest = fs::read_to_string(self.folder.join(format!("images/{name}.digest"))).expect("a digest");
        format!("localhost/navin-cluster-agent@{}", digest.trim())
    }

    /// The agent's pods that are not being deleted.
    #[track_caller]
    pub(crate) fn pods(&self) -> Vec<Value> {
        let pods = self.api.list(PODS).into_iter();
        pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect()
    }

    /// Waits for two ready replicas of exactly one version, and returns them.
    #[track_caller]
    pub(crate) fn two_ready(&self) -> Vec<Value> {
        until("two ready replicas", SOON, || {
            let pods = self.pods();
            (pods.len() == 2 && pods.iter().all(is_ready)).then_some(pods)
        })
    }

    /// The Lease's holder: the pod's name; nobody where it is free.
    #[track_caller]
    pub(crate) fn leader(&self) -> Option<String> {
        let (_, lease) = self.api.get(LEASE);
        let holder = lease["spec"]["holderIdentity"].as_str()?;
        holder.split_once('_').map(|(pod, _)| pod.to_owned())
    }

    /// Waits for a leader other than this one.
    #[track_caller]
    pub(crate) fn next_leader(&self, old: &str) -> String {
        until("another leader", SOON, || self.leader().filter(|leader| leader != old))
    }

    /// A pod's log of its present container.
    pub(crate) fn log(&self, pod: &str) -> String {
        let (_, log) = self.api.get(&format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}/log"));
        log.as_str().unwrap_or_default().to_owned()
    }

    /// Queues a command; returns its identifier.
    #[track_caller]
    pub(crate) fn command(&self, operation: &str, arguments: &Value) -> String {
        let request = json!({ "operation": operation, "arguments": arguments });
        let (status, answer) = self.manager.post("/api/v1/clusters/prod/kubernetes/commands", &request);
        assert_eq!(status, 201, "{answer}");
        answer["command_id"].as_str().expect("a command_id").to_owned()
    }

    /// Queues an apply of `{"value": value}`; returns its identifier.
    #[track_caller]
    pub(crate) fn apply(&self, name: &str, value: usize) -> String {
        self.command("managedcomponent.apply", &json!({ "name": name, "spec": { "value": value } }))
    }

    /// Waits until a command has an outcome, which must be success.
    #[track_caller]
    pub(crate) fn succeeded(&self, command_id: &str) -> Value {
        let command = self.outcome(command_id);
        assert_eq!(command["status"], "succeeded", "{command}");
        command
    }

    /// Waits until a command has an outcome, which must be the only one recorded.
    #[track_caller]
    pub(crate) fn outcome(&self, command_id: &str) -> Value {
        let path = format!("/api/v1/clusters/prod/kubernetes/commands/{command_id}");
        let command = until("the outcome of a command", SOON, || {
            let (_, command) = self.manager.get(&path);
            (command["receipt_recorded"] == true).then_some(command)
        });
        // It may come twice, by a leader that ends and the next one: the same one.
        let receipts = command["receipts"].as_array().into_iter().flatten();
        let recorded = receipts.filter(|receipt| receipt["receipt"]["recorded"] == true);
        let outcomes: BTreeSet<String> = recorded.map(|receipt| receipt["receipt"].to_string()).collect();
        assert_eq!(outcomes.len(), 1, "recorded outcomes: {command}");
        command
    }

    /// A component as the API server holds it.
    #[track_caller]
    pub(crate) fn component(&self, name: &str) -> Value {
        let (status, component) = self.api.get(&format!("{COMPONENTS}/{name}"));
        assert_eq!(status, 200, "{component}");
        component
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let check = self.check.get();
        if check.is_empty() {
            return;
        }
        println!("  FAILED    {check}");
        // What one wants next, beside the logs of the cluster's own parts.
        for (file, line) in [
            ("pods.yaml", "kubectl get pods -n navin-platform -o yaml"),
            ("events", "kubectl get events -A"),
            (
                "agents.log",
                "kubectl logs -n navin-platform -l app.kubernetes.io/name=navin-cluster-agent --tail=-1 --prefix",
            ),
            ("audit", "navin-manager audit --limit 500"),
        ] {
            let output = self.try_sh(line);
            fs::write(self.folder.join("log").join(file), [output.stdout, output.stderr].concat())
                .unwrap_or_default();
        }
    }
}

/// Whether the kubelet calls a pod ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// What the docs write, as it is here.
fn localised(line: &str, folder: &std::path::Path) -> String {
    line.replace("manager.example", HOST)
        .replace("/var/lib/navin --", &format!("{}/manager --", folder.display()))
}

/// At most two minutes; `navin-manager` and `kubectl` know where to go from the environment.
fn run(line: &str) -> Output {
    let folder = env::var("NODE_DIR").expect("NODE_DIR");
    Command::new("timeout")
        .args(["120", "bash", "-euo", "pipefail", "-c", line])
        .current_dir(workspace_dir())
        .env("NAVIN_SERVER", "https://127.0.0.1:8461")
        .env("NAVIN_CA", format!("{folder}/manager/tls/ca.crt"))
        .env("NAVIN_TOKEN", fs::read_to_string(format!("{folder}/token")).unwrap_or_default().trim())
        .env("NAVIN_CLUSTER", "prod")
        .output()
        .expect("bash, and timeout of coreutils")
}
