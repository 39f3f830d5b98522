//! A Kubernetes control plane on loopback: etcd and kube-apiserver, real ones, nothing else.
//!
//! There is no controller manager: nothing collects garbage, a namespace that is deleted stays
//! `Terminating`, and no Pod ever runs. What the agent rests on (resource versions, preconditions,
//! finalizers, RBAC, tokens, CRDs) is all in the API server.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Api;
use crate::cluster_binary::{Server, servers};
use crate::cluster_flags::{AUDIT_POLICY, api_server_flags, etcd_flags};
use crate::credentials::{random_token, signing_key};
use crate::folder::RunFolder;
use crate::namespace::{self, Namespace};
use crate::process::{Launch, Process};
use crate::wait::until;

/// It takes two to three seconds; a loaded machine may be ten times slower.
const READY: Duration = Duration::from_mins(1);

/// A running control plane; it ends, and its files go, with this value.
#[derive(Debug)]
pub struct Cluster {
    // Before the folder: what is declared first is dropped first.
    api_server: Process,
    etcd: Process,
    etcd_port: u16,
    url: String,
    ca_pem: String,
    admin: Api,
    admin_token: String,
    folder: RunFolder,
}

impl Cluster {
    /// Starts a control plane of one's own, for tests that stop or pause it.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with an audit log of every call, without bodies: [`Cluster::audit_log`].
    pub fn start_audited() -> Self {
        Self::start_with(&["--audit-policy-file=audit.yaml", "--audit-log-path=audit.log"])
    }

    fn start_with(flags: &[&str]) -> Self {
        // Another process may take a port between our looking and the server's binding: try others.
        let mut last = String::new();
        for _ in 0..5 {
            match Self::try_start(flags) {
                Ok(cluster) => {
                    cluster.install_cluster_wide();
                    return cluster;
                }
                Err(reason) => last = reason,
            }
        }
        panic!("no control plane after five attempts; the last: {last}");
    }

    /// Puts back what is ours cluster-wide, the CRD and the ClusterRole, until the CRD is served: a test that
    /// changes them and fails leaves nothing to the next.
    pub fn install_cluster_wide(&self) {
        namespace::install_cluster_wide(&self.admin);
    }

    /// The control plane that the tests of this process share, each in a namespace of its own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn try_start(more: &[&str]) -> Result<Self, String> {
        let [etcd, api_server] = servers();
        let folder = RunFolder::new("cluster");
        let [client_port, peer_port, secure_port] = free_ports();
        let admin_token = random_token();
        write_credentials(folder.path(), &admin_token);
        let launch = |name: &str, server: Server, flags: Vec<String>| {
            let args = server.args.into_iter().chain(flags.into_iter().map(Into::into)).collect();
            let folder = folder.path().to_owned();
            Process::start(Launch { name: name.into(), program: server.program, args, envs: vec![], folder })
        };
        let etcd = launch("etcd", etcd, etcd_flags(client_port, peer_port));
        let mut flags = api_server_flags(client_port, secure_port);
        flags.extend(more.iter().map(|&flag| flag.to_owned()));
        let api_server = launch("kube-apiserver", api_server, flags);
        let url = format!("https://127.0.0.1:{secure_port}");
        let (ca_pem, admin) = until_ready(&etcd, &api_server, || {
            let ca_pem = issuer(&folder.path().join("certificates/apiserver.crt"))?;
            let admin = Api::new(&url, &ca_pem, Some(&admin_token));
            is_ready(&admin).then_some((ca_pem, admin))
        })?;
        Ok(Self { api_server, etcd, etcd_port: client_port, url, ca_pem, admin, admin_token, folder })
    }

    /// Kills both servers; what they hold on disk stays.
    pub fn stop(&self) {
        self.api_server.kill9();
        self.etcd.kill9();
    }

    /// Starts both again, on the same ports, with the same data and certificates, and waits for them.
    pub fn restart(&self) {
        self.stop();
        self.etcd.start_again();
        self.api_server.start_again();
        self.wait_ready();
    }

    /// Lets etcd forget every version but the newest: whoever asks for an older one is told 410.
    pub fn compact(&self) {
        // "AA==" is the key of one zero byte, from which no key is earlier.
        let range = self.etcd_call("/v3/kv/range", r#"{"key":"AA=="}"#);
        let (_, after) = range.split_once("\"revision\":\"").expect("a revision of etcd's");
        let revision: String = after.chars().take_while(char::is_ascii_digit).collect();
        let order = format!(r#"{{"revision":"{revision}","physical":true}}"#);
        let answer = self.etcd_call("/v3/kv/compaction", &order);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// A call over etcd's JSON gateway: the answer as it came.
    fn etcd_call(&self, path: &str, body: &str) -> String {
        let mut etcd = TcpStream::connect(("127.0.0.1", self.etcd_port)).expect("etcd, which listens");
        etcd.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        let head = format!("POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n");
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        etcd.write_all(request.as_bytes()).expect("a request to etcd");
        let mut answer = String::new();
        etcd.read_to_string(&mut answer).expect("etcd's answer");
        answer
    }

    /// Waits until the API server says that it is ready.
    pub fn wait_ready(&self) {
        let ready = until_ready(&self.etcd, &self.api_server, || is_ready(&self.admin).then_some(()));
        ready.unwrap_or_else(|reason| panic!("the control plane did not come back: {reason}"));
    }

    /// The process of kube-apiserver, to be paused or killed.
    pub fn api_server(&self) -> &Process {
        &self.api_server
    }

    /// The process of etcd, to be paused or killed.
    pub fn etcd(&self) -> &Process {
        &self.etcd
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The issuer of the API server's certificate, which verifies it.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The API as `system:masters`.
    pub fn admin(&self) -> Api {
        self.admin.clone()
    }

    /// The API as whoever the token names.
    pub fn api_as(&self, token: &str) -> Api {
        self.admin.with_bearer(Some(token))
    }

    /// Makes a namespace `<prefix>-<number>` with all that `deploy/` gives the agent.
    pub fn namespace(&self, prefix: &str) -> Namespace {
        Namespace::make(self.admin(), prefix)
    }

    /// A token of a service account, good for a day (`TokenRequest`).
    pub fn service_account_token(&self, namespace: &str, account: &str) -> String {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = json!({ "spec": { "audiences": [], "expirationSeconds": 86_400 } });
        let (status, answer) = self.admin.post(&path, &request);
        assert_eq!(status, 201, "POST {path}: {answer}");
        answer["status"]["token"].as_str().expect("a token").to_owned()
    }

    /// A kubeconfig for whoever the token names.
    pub fn kubeconfig_for(&self, token: &str) -> String {
        use base64::Engine as _;
        let ca = base64::engine::general_purpose::STANDARD.encode(&self.ca_pem);
        let config: Value = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "test",
                "cluster": { "server": self.url, "certificate-authority-data": ca } }],
            "users": [{ "name": "user", "user": { "token": token } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "user" } }],
            "current-context": "test",
        });
        serde_yaml_ng::to_string(&config).expect("YAML of JSON")
    }

    /// Writes the admin's kubeconfig, for `kubectl`.
    pub fn kubeconfig(&self, path: &Path) {
        fs::write(path, self.kubeconfig_for(&self.admin_token)).expect("a kubeconfig");
    }

    /// The bearer token of the admin.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// One JSON object a line for every call that was answered, where it was started with that.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }

    /// Where its logs and data are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn write_credentials(folder: &Path, admin_token: &str) {
    let (private, public) = signing_key();
    let tokens = format!("{admin_token},admin,admin,\"system:masters\"\n");
    let audit = AUDIT_POLICY.to_owned();
    let files =
        [("accounts.key", private), ("accounts.pub", public), ("tokens.csv", tokens), ("audit.yaml", audit)];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file of the test cluster");
    }
}

/// Three at once, so that they differ.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("a bound address").port())
}

/// kube-apiserver, given no certificate, makes a CA and one certificate from it, forgets the CA's key,
/// and writes both certificates into one file, its own first.
fn issuer(certificates: &Path) -> Option<String> {
    let text = fs::read_to_string(certificates).ok()?;
    let end = "-----END CERTIFICATE-----";
    let last = text.trim_end().strip_suffix(end)?;
    let (_, body) = last.split_once(end)?;
    Some(format!("{}{end}\n", body.trim_start()))
}

fn is_ready(admin: &Api) -> bool {
    let found = |path| admin.call("GET", path, None).is_ok_and(|(status, _)| status == 200);
    // The namespaces of the system are made a moment after it calls itself ready.
    found("/readyz") && found("/api/v1/namespaces/kube-system") && found("/api/v1/namespaces/default")
}

fn until_ready<T>(
    etcd: &Process,
    api_server: &Process,
    mut ready: impl FnMut() -> Option<T>,
) -> Result<T, String> {
    let started = Instant::now();
    until("etcd and kube-apiserver, to be ready or to end", READY + Duration::from_secs(1), || {
        if let Some(ended) = [etcd, api_server].into_iter().find(|server| !server.is_running()) {
            return Some(Err(ended.stderr_tail()));
        }
        if started.elapsed() > READY {
            return Some(Err(format!("not ready after {READY:?}\n{}", api_server.stderr_tail())));
        }
        ready().map(Ok)
    })
}
