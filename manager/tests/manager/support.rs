//! Starts managers and speaks to them. What is started is killed, on failure too.

use crate::calls::client;
pub(crate) use crate::calls::{Agent, Answer, Rest, without_certificate};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The longest that anything here may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(45);

/// A folder of one test.
pub(crate) struct Folder {
    path: PathBuf,
    /// `--database`, where it is not the file in the folder.
    database: Option<String>,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, crate::database(name))
    }

    /// With a database of one's own.
    #[allow(dead_code, reason = "only where there are databases of several kinds")]
    pub(crate) fn on(name: &str, database: String) -> Self {
        Self::with(name, Some(database))
    }

    fn with(name: &str, database: Option<String>) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(&path).unwrap();
        Self { path, database }
    }

    #[allow(dead_code, reason = "only where there are databases of several kinds")]
    /// Where the database is, unless it is the file in the folder.
    pub(crate) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The certificate of the authority.
    pub(crate) fn ca(&self) -> String {
        fs::read_to_string(self.join("data/tls/ca.crt")).unwrap()
    }

    /// Runs a command of the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The same, where so many files may be open.
    pub(crate) fn run_with_open_files(&self, most: u32, arguments: &[&str]) -> Output {
        let run = self.command(arguments);
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n $0; exec \"$@\"", &most.to_string()]);
        command.arg(run.get_program()).args(run.get_args()).output().unwrap()
    }

    /// A token for a tenant.
    pub(crate) fn token(&self, tenant: &str) -> String {
        let output = self.run(&["token", "--create", "--tenant", tenant]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_navin-manager"));
        command.args(arguments).arg("--data").arg(self.join("data"));
        if let Some(database) = &self.database {
            command.env("NAVIN_DATABASE", database);
        }
        command
    }

    /// Starts both ports.
    pub(crate) fn serve(&self) -> Manager {
        self.start(&["serve", "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0"])
    }

    #[allow(dead_code, reason = "only where limits are tried")]
    /// Starts both ports, with more options.
    pub(crate) fn serve_with(&self, options: &[&str]) -> Manager {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0"];
        self.start(&[&arguments[..], options].concat())
    }

    #[allow(dead_code, reason = "only where the database is a file")]
    /// Starts both ports, in a process whose files cannot grow beyond a size: a full disk, for it.
    pub(crate) fn serve_with_files_below(&self, bytes: u64) -> Manager {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0"];
        let served = self.command(&arguments);
        let mut command = Command::new("sh");
        // The signal ignored, a write fails instead; ulimit counts in blocks of 512 bytes.
        command.args(["-c", "trap '' XFSZ; ulimit -S -f $0; exec \"$@\"", &(bytes / 512).to_string()]);
        command.arg(served.get_program()).args(served.get_args());
        self.launch(command)
    }

    /// Starts both ports, with all that can be logged in `log`.
    pub(crate) fn serve_tracing(&self) -> Manager {
        let mut command =
            self.command(&["serve", "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0"]);
        command.env("NAVIN_LOG", "trace").stderr(fs::File::create(self.join("log")).unwrap());
        self.launch(command)
    }

    /// Starts the gateway alone.
    pub(crate) fn agent_gateway(&self) -> Manager {
        self.start(&["agent-gateway", "--host", "127.0.0.1", "--port", "0"])
    }

    /// Starts the gateway alone, with its keys elsewhere.
    #[allow(dead_code, reason = "only where keys are tried")]
    pub(crate) fn agent_gateway_with(&self, tls: &Path) -> Manager {
        let tls = tls.to_str().unwrap();
        self.start(&["agent-gateway", "--host", "127.0.0.1", "--port", "0", "--tls-dir", tls])
    }

    fn start(&self, arguments: &[&str]) -> Manager {
        self.launch(self.command(arguments))
    }

    fn launch(&self, mut command: Command) -> Manager {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let process = Process(child);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).unwrap();
            sender.send(line).ok()
        });
        let line = receiver.recv_timeout(LIMIT).expect("the manager says where it listens");
        let addresses: Value = serde_json::from_str(&line).expect("one line of JSON");
        let url = |name: &str| addresses[name].as_str().unwrap_or("").to_owned();
        let rest = Rest { url: url("rest"), client: client(&self.ca(), None) };
        Manager { rest, gateway: url("gateway"), process }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !thread::panicking() {
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A running manager.
pub(crate) struct Manager {
    pub(crate) rest: Rest,
    pub(crate) gateway: String,
    process: Process,
}

impl Manager {
    /// Ends it as a failing machine would.
    pub(crate) fn kill(mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }

    #[allow(dead_code, reason = "only where limits are tried")]
    /// Whether it still has its end of a connection, by the number of that among the system's sockets.
    pub(crate) fn has_socket(&self, number: u64) -> bool {
        let files = fs::read_dir(format!("/proc/{}/fd", self.process.0.id())).unwrap();
        let wanted = Path::new(&format!("socket:[{number}]")).to_owned();
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == wanted))
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let pid = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    #[allow(dead_code, reason = "only where the database is a file")]
    /// Lets its files grow again: the disk has room.
    pub(crate) fn let_files_grow(&self) {
        let pid = self.process.0.id().to_string();
        let allowed = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
        assert!(allowed.unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        until("the manager ends", || self.process.0.try_wait().unwrap())
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
        let path = format!("/api/v1/clusters/{cluster_id}/kubernetes/commands");
        let body = json!({ "operation": "inventory.report", "arguments": {} });
        self.post(token, &path, &body).expect(201)
    }

    /// A command as it is shown.
    pub(crate) fn command(&self, token: &str, cluster_id: &str, command: &Value) -> Value {
        let command_id = command["command_id"].as_str().unwrap();
        self.get(token, &format!("/api/v1/clusters/{cluster_id}/kubernetes/commands/{command_id}"))
            .expect(200)
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

/// Waits for a condition, looking often, for a bounded time.
pub(crate) fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
