//! Starts managers and speaks to them. What is started is killed, on failure too.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use ureq::Agent as Client;
use ureq::http::Request;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// The longest that anything here may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(45);

/// A folder of one test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs a command of the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A token for a tenant.
    pub(crate) fn token(&self, tenant: &str) -> String {
        let output = self.run(&["token", "--tenant", tenant]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_navin-manager"));
        command.args(arguments).arg("--data").arg(self.join("data"));
        command
    }

    /// Starts both ports.
    pub(crate) fn serve(&self) -> Manager {
        self.start(&["serve", "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0"])
    }

    /// Starts the gateway alone.
    pub(crate) fn agent_gateway(&self) -> Manager {
        self.start(&["agent-gateway", "--host", "127.0.0.1", "--port", "0"])
    }

    fn start(&self, arguments: &[&str]) -> Manager {
        let mut child = self.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
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
        let ca = fs::read_to_string(self.join("data/tls/ca.crt")).unwrap();
        let rest = Rest { url: url("rest"), client: client(&ca, None) };
        Manager { rest, gateway: url("gateway"), process }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !thread::panicking() {
            fs::remove_dir_all(&self.0).ok();
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

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let pid = self.process.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
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
        let path = format!("/api/v1/clusters/{cluster_id}/kubernetes/agent");
        let issued = self.post(token, &path, &json!({ "gateway_url": self.gateway })).expect(201);
        Agent::new(&issued, &self.gateway)
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

/// The REST API, as it outlives the manager.
#[derive(Clone)]
pub(crate) struct Rest {
    url: String,
    client: Client,
}

impl Rest {
    pub(crate) fn send(
        &self,
        method: &str,
        token: &str,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        run(&self.client, request.body(body).unwrap())
    }
}

/// What an agent has: its identity.
#[derive(Clone)]
pub(crate) struct Agent {
    client: Client,
    gateway: String,
    pub(crate) config: Value,
}

impl Agent {
    pub(crate) fn new(issued: &Value, gateway: &str) -> Self {
        let text = |name: &str| issued[name].as_str().unwrap();
        let client = client(text("ca_crt"), Some((text("tls_crt"), text("tls_key"))));
        Self { client, gateway: gateway.to_owned(), config: issued["config"].clone() }
    }

    /// The same agent at another gateway.
    pub(crate) fn at(&self, manager: &Manager) -> Self {
        Self { gateway: manager.gateway.clone(), ..self.clone() }
    }

    pub(crate) fn poll(&self, wait_s: u64) -> Answer {
        self.try_poll(wait_s).unwrap()
    }

    pub(crate) fn try_poll(&self, wait_s: u64) -> Result<Answer, ureq::Error> {
        let uri = format!("{}/v1/cluster-agent/commands?wait_s={wait_s}", self.gateway);
        run(&self.client, Request::builder().uri(uri).body(Vec::new()).unwrap())
    }

    /// The identifiers of the commands that a poll brings.
    pub(crate) fn polled(&self, wait_s: u64) -> Vec<String> {
        let answer = self.poll(wait_s).expect(200);
        let id = |envelope: &Value| envelope["payload"]["command_id"].as_str().unwrap().to_owned();
        answer["commands"].as_array().unwrap().iter().map(id).collect()
    }

    pub(crate) fn receipt(&self, receipt: &Value) -> Answer {
        self.send("POST", "receipts", receipt.to_string().into_bytes())
    }

    pub(crate) fn report(&self, report: &Value) -> Answer {
        self.send("POST", "report", report.to_string().into_bytes())
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: Vec<u8>) -> Answer {
        let uri = format!("{}/v1/cluster-agent/{path}", self.gateway);
        let request = Request::builder().method(method).uri(uri).body(body).unwrap();
        run(&self.client, request).unwrap()
    }
}

/// An answer of either port.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) date: Option<String>,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// The body, where the status is this one.
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.body
    }
}

/// Sends a request with no certificate of its own.
pub(crate) fn without_certificate(ca: &str, url: &str) -> Result<Answer, ureq::Error> {
    run(&client(ca, None), Request::builder().uri(url).body(Vec::new()).unwrap())
}

fn run(client: &Client, request: Request<Vec<u8>>) -> Result<Answer, ureq::Error> {
    let mut response = client.run(request)?;
    let header = |name: &str| Some(response.headers().get(name)?.to_str().unwrap().to_owned());
    let content_type = header("content-type").unwrap_or_default();
    let (date, retry_after) = (header("date"), header("retry-after"));
    let text = response.body_mut().read_to_string()?;
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(Answer { status: response.status().as_u16(), content_type, date, retry_after, body })
}

fn client(ca: &str, identity: Option<(&str, &str)>) -> Client {
    let roots = RootCerts::new_with_certs(&[Certificate::from_pem(ca.as_bytes()).unwrap()]);
    let certificate = identity.map(|(certificate, key)| {
        let certificate = Certificate::from_pem(certificate.as_bytes()).unwrap();
        ClientCert::new_with_certs(&[certificate], PrivateKey::from_pem(key.as_bytes()).unwrap())
    });
    let tls = TlsConfig::builder()
        .root_certs(roots)
        .client_cert(certificate)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Client::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(LIMIT))
        .build()
        .new_agent()
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
