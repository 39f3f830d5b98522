//! Starts managers and speaks to them.

use super::calls::client;
pub(crate) use super::calls::{Agent, Answer, Rest, without_certificate};
use navin_test_support::{Launch, Process, RunFolder};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that anything here may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(45);

/// Serves both ports, each on a free one.
pub(crate) const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0"];

/// Serves the gateway alone, on a free port.
pub(crate) const AGENT_GATEWAY: [&str; 5] = ["agent-gateway", "--host", "127.0.0.1", "--port", "0"];

/// The commands of the cluster that most tests have.
pub(crate) const COMMANDS: &str = "/api/v1/clusters/prod/kubernetes/commands";

/// A running manager, and a token of the tenant `acme`.
pub(crate) fn served(name: &str) -> (Folder, String, Manager) {
    let folder = Folder::new(name);
    let token = folder.token("acme");
    let manager = folder.serve();
    (folder, token, manager)
}

/// A folder of one test.
pub(crate) struct Folder {
    run: RunFolder,
    /// `--database`, where it is not the file in the folder.
    pub(crate) database: Option<String>,
    started: AtomicU32,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        Self::on(name, crate::database(name))
    }

    /// With a database of one's own.
    pub(crate) fn on(name: &str, database: Option<String>) -> Self {
        Self { run: RunFolder::new(name), database, started: AtomicU32::new(0) }
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.run.path().join(name)
    }

    /// The certificate of the authority.
    pub(crate) fn ca(&self) -> String {
        fs::read_to_string(self.join("data/tls/ca.crt")).unwrap()
    }

    /// Runs a command of the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.output(&self.command(arguments))
    }

    /// Runs any command to its end, which it reaches in time.
    pub(crate) fn output(&self, command: &Command) -> Output {
        let process = self.start(command);
        let code = process.wait_exit(LIMIT).unwrap_or_else(|| panic!("{command:?} goes on"));
        let [stdout, stderr] = [process.stdout_text(), process.stderr_text()].map(String::into_bytes);
        Output { status: ExitStatus::from_raw(code << 8), stdout, stderr }
    }

    /// The same, where so many files may be open.
    pub(crate) fn run_with_open_files(&self, most: u32, arguments: &[&str]) -> Output {
        let run = self.command(arguments);
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n $0; exec \"$@\"", &most.to_string()]);
        self.output(command.arg(run.get_program()).args(run.get_args()))
    }

    /// A token for a tenant.
    pub(crate) fn token(&self, tenant: &str) -> String {
        let output = self.run(&["token", "--create", "--tenant", tenant]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A command of the program.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_navin-manager"));
        command.args(arguments).arg("--data").arg(self.join("data"));
        if let Some(database) = &self.database {
            command.env("NAVIN_DATABASE", database);
        }
        command
    }

    /// The command that serves both ports.
    pub(crate) fn serving(&self) -> Command {
        self.command(&SERVE)
    }

    /// Starts both ports.
    pub(crate) fn serve(&self) -> Manager {
        self.launch(&self.serving())
    }

    /// Starts both ports, with more options.
    pub(crate) fn serve_with(&self, options: &[&str]) -> Manager {
        self.launch(self.serving().args(options))
    }

    /// Starts the gateway alone.
    pub(crate) fn agent_gateway(&self) -> Manager {
        self.launch(&self.command(&AGENT_GATEWAY))
    }

    fn start(&self, command: &Command) -> Process {
        let envs = command.get_envs().map(|(name, value)| (name, value.expect("a value")));
        let text = |text: &OsStr| text.to_str().unwrap().to_owned();
        Process::start(Launch {
            name: format!("manager-{}", self.started.fetch_add(1, Ordering::Relaxed)),
            program: command.get_program().into(),
            args: command.get_args().map(Into::into).collect(),
            envs: envs.map(|(name, value)| (text(name), text(value))).collect(),
            folder: self.run.path().to_owned(),
        })
    }

    /// Starts a command that says where it listens.
    pub(crate) fn launch(&self, command: &Command) -> Manager {
        let process = self.start(command);
        let addresses = process.announces(1, LIMIT);
        let url = |name: &str| addresses[name].as_str().unwrap_or("").to_owned();
        let rest = Rest { url: url("rest"), client: client(&self.ca(), None) };
        Manager { rest, gateway: url("gateway"), process }
    }
}

/// A running manager.
pub(crate) struct Manager {
    pub(crate) rest: Rest,
    pub(crate) gateway: String,
    pub(crate) process: Process,
}

impl Manager {
    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.process.stderr_text()
    }

    /// Ends it as a failing machine would.
    pub(crate) fn kill(self) {
        self.process.kill9();
    }

    /// Waits for its end.
    pub(crate) fn wait(&self) -> i32 {
        self.process.wait_exit(LIMIT).expect("the manager ends")
    }

    /// Where the REST API is.
    pub(crate) fn url(&self) -> String {
        self.rest.url.clone()
    }

    pub(crate) fn get(&self, token: &str, path: &str) -> Answer {
        self.send("GET", token, path, None)
    }

    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send("POST", token, path, Some(body.to_string().into_bytes()))
    }

    pub(crate) fn send(&self, method: &str, token: &str, path: &str, body: Option<Vec<u8>>) -> Answer {
        self.rest.send(method, token, path, body.unwrap_or_default()).unwrap()
    }

    /// Registers a cluster and issues its identity.
    pub(crate) fn cluster(&self, token: &str, cluster_id: &str) -> Agent {
        let body = json!({ "cluster_id": cluster_id, "namespace": "navin" });
        self.post(token, "/api/v1/clusters", &body).expect(201);
        self.identity(token, cluster_id)
    }

    /// Issues an identity.
    pub(crate) fn identity(&self, token: &str, cluster_id: &str) -> Agent {
        Agent::new(&self.issue(token, cluster_id), &self.gateway)
    }

    /// Issues an identity: what the API answers.
    pub(crate) fn issue(&self, token: &str, cluster_id: &str) -> Value {
        let path = format!("/api/v1/clusters/{cluster_id}/kubernetes/agent");
        self.post(token, &path, &json!({ "gateway_url": self.gateway })).expect(201)
    }

    /// Queues the least command that there is.
    pub(crate) fn queue(&self, token: &str, cluster_id: &str) -> Value {
        self.rest.queue(token, cluster_id).unwrap().expect(201)
    }

    /// A command as it is shown.
    pub(crate) fn command(&self, token: &str, cluster_id: &str, command: &Value) -> Value {
        let command_id = id(command);
        self.get(token, &format!("/api/v1/clusters/{cluster_id}/kubernetes/commands/{command_id}"))
            .expect(200)
    }

    /// Waits until a cluster's agent was heard: until its poll is there, where it did nothing before.
    pub(crate) fn until_online(&self, token: &str, cluster_id: &str) {
        until("the agent is heard", || {
            let shown = self.get(token, &format!("/api/v1/clusters/{cluster_id}")).expect(200);
            shown["agent"]["online"].as_bool().filter(|online| *online)
        });
    }

    /// The audit, newest first, as `action outcome subject detail`.
    pub(crate) fn audit(&self, token: &str) -> Vec<String> {
        let audit = self.get(token, "/api/v1/audit").expect(200);
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
        audit["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| ["action", "outcome", "subject", "detail"].map(|name| text(entry, name)).join(" "))
            .collect()
    }
}

/// The identifier of a command as it is shown.
pub(crate) fn id(command: &Value) -> String {
    command["command_id"].as_str().unwrap().to_owned()
}

/// How long it takes from a command that is queued at one manager to the end of an open poll at another. The command is
/// answered then, as it would be delivered again.
pub(crate) fn woken_after(agent: &Agent, here: &Manager, there: &Manager, token: &str) -> Duration {
    let waiting = agent.at(there);
    let poll = thread::spawn(move || (waiting.polled(30), Instant::now()));
    // The poll has set out by the time that these are answered.
    for _ in 0..5 {
        there.get(token, "/api/v1/clusters/prod").expect(200);
    }
    let queued = here.queue(token, "prod");
    let since = Instant::now();
    let (polled, at) = poll.join().unwrap();
    assert_eq!(polled, [id(&queued)]);
    agent.receipt(&receipt(&queued, "succeeded", true)).expect(200);
    at.saturating_duration_since(since)
}

/// A receipt for a command.
pub(crate) fn receipt(command: &Value, status: &str, recorded: bool) -> Value {
    let payload = &command["envelope"]["payload"];
    json!({
        "type": "navin.receipt/v1",
        "command_id": payload["command_id"],
        "nonce": payload["nonce"],
        "tenant_id": payload["tenant_id"],
        "cluster_id": payload["target"]["id"],
        "status": status,
        "recorded": recorded,
        "executed_at": "2026-11-30T12:00:00Z",
        "replica": "navin-cluster-agent-0",
        "source": "gateway",
    })
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn until<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    navin_test_support::until(what, LIMIT, condition)
}
