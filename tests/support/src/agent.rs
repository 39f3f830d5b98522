//! The real agent as a process: one replica, with the rights of its service account.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::binaries::cargo_binary;
use crate::cluster::Cluster;
use crate::credentials::random_token;
use crate::namespace::Namespace;
use crate::process::{Launch, Process};
use crate::wait::until;

/// How an agent is started.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// The name of its pod, which also names its log files.
    pub pod: String,
    /// Another build of the agent than the workspace's own.
    pub program: Option<PathBuf>,
    /// Its identity folder; replicas share one.
    pub identity_dir: PathBuf,
    /// A break-glass inbox, which is made.
    pub inbox: Option<PathBuf>,
    /// Instead of the API server's URL: a proxy that a test puts between.
    pub kube_api: Option<String>,
    /// Instead of the API server's issuer, in PEM: that of a proxy with certificates of its own.
    pub kube_ca: Option<String>,
    /// A program and arguments that start the agent, such as `unshare`; by default it is started itself.
    pub wrapper: Vec<OsString>,
    /// More arguments.
    pub args: Vec<OsString>,
    /// More environment.
    pub envs: Vec<(String, String)>,
    /// For its token, its CA file and its logs.
    pub folder: PathBuf,
}

/// A replica; it is killed when this is dropped.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    pod: String,
    uid: String,
    inbox: Option<PathBuf>,
    token: PathBuf,
}

impl Agent {
    /// Starts `navin-cluster-agent run`.
    pub fn start(cluster: &Cluster, namespace: &Namespace, options: AgentOptions) -> Self {
        let file = |end: &str| options.folder.join(format!("{}.{end}", options.pod));
        let (token, issuer) = (file("token"), file("ca.crt"));
        let account = cluster.service_account_token(&namespace.name, "navin-cluster-agent");
        fs::write(&token, account).expect("the agent's token");
        fs::write(&issuer, options.kube_ca.as_deref().unwrap_or(cluster.ca_pem()))
            .expect("the API server's CA");
        let url = options.kube_api.unwrap_or_else(|| cluster.url().to_owned());
        let mut args: Vec<OsString> = vec!["run".into()];
        args.extend(["--identity-dir".into(), options.identity_dir.into()]);
        args.extend(["--kube-api".into(), url.into()]);
        args.extend(["--kube-token-file".into(), token.clone().into()]);
        args.extend(["--kube-ca-file".into(), issuer.into()]);
        if let Some(inbox) = &options.inbox {
            fs::create_dir_all(inbox).expect("the inbox");
            args.extend(["--inbox".into(), inbox.into()]);
        }
        args.extend(options.args);
        let uid = pod_uid();
        let mut envs = vec![
            ("POD_NAME".to_owned(), options.pod.clone()),
            ("POD_UID".to_owned(), uid.clone()),
            ("POD_NAMESPACE".to_owned(), namespace.name.clone()),
        ];
        envs.extend(options.envs);
        let mut line = options.wrapper;
        line.push(options.program.unwrap_or_else(|| cargo_binary("navin-cluster-agent")).into());
        line.append(&mut args);
        let program = PathBuf::from(line.remove(0));
        let args = line;
        let process =
            Process::start(Launch { name: options.pod.clone(), program, args, envs, folder: options.folder });
        Self { process, pod: options.pod, uid, inbox: options.inbox, token }
    }

    /// Its process: to be killed, paused, started again as the container of the same pod.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The name of its pod.
    pub fn pod(&self) -> &str {
        &self.pod
    }

    /// How it signs the Lease: `<pod name>_<pod uid>`.
    pub fn holder(&self) -> String {
        format!("{}_{}", self.pod, self.uid)
    }

    /// Whether the Lease names it.
    pub fn leads(&self, namespace: &Namespace) -> bool {
        namespace.leader() == Some(self.holder())
    }

    /// Waits until the Lease names it.
    #[track_caller]
    pub fn wait_leads(&self, namespace: &Namespace, bound: Duration) {
        until(&format!("{} to lead", self.pod), bound, || {
            assert!(self.process.is_running(), "{} ended: {}", self.pod, self.process.stderr_tail());
            self.leads(namespace).then_some(())
        });
    }

    /// Whether the Lease names it, and the state that it has written.
    pub fn rules(&self, namespace: &Namespace) -> bool {
        let written = || namespace.state().is_some_and(|state| state["holder"] == self.holder());
        self.leads(namespace) && written()
    }

    /// Waits for a text in its log.
    #[track_caller]
    pub fn wait_log(&self, text: &str, bound: Duration) {
        until(text, bound, || self.process.stderr_text().contains(text).then_some(()));
    }

    /// How often a text is in its log.
    pub fn count_log(&self, text: &str) -> usize {
        self.process.stderr_text().matches(text).count()
    }

    /// The file with its token for the API server, read for every request.
    pub fn token_file(&self) -> &Path {
        &self.token
    }

    /// Its inbox.
    pub fn inbox(&self) -> &Path {
        self.inbox.as_deref().expect("an agent that was started with an inbox")
    }
}

/// As the API server would give one.
fn pod_uid() -> String {
    let random = random_token();
    let part = |from: usize, to: usize| &random[from..to];
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}
