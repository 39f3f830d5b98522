//! The processes: one manager on a file, or a manager and a gateway on one PostgreSQL.

use navin_test_support::{Launch, Postgres, Process, Reading, RunFolder, cargo_binary};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// From the start of a process to its open ports.
const STARTED: Duration = Duration::from_secs(30);
/// From SIGTERM to the end of a process.
const ENDED: Duration = Duration::from_secs(15);
/// Ticks of the processor time in `/proc` in one second: Linux has had no other for users since 2.6.
const TICKS: f64 = 100.0;

/// A process that agents can poll at.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    arguments: Vec<OsString>,
    process: Process,
    /// When each of its lives ended.
    ends: Mutex<Vec<Instant>>,
}

/// All that runs.
pub(crate) struct Site {
    pub(crate) rest: SocketAddr,
    pub(crate) ca: String,
    pub(crate) token: String,
    pub(crate) gateways: Vec<Gateway>,
    /// Ends after the managers.
    _server: Option<Postgres>,
    _folder: RunFolder,
}

impl Site {
    /// One manager on a file.
    pub(crate) fn one(agents: usize) -> Self {
        Self::start(agents, None)
    }

    /// A manager and a gateway beside it, on a PostgreSQL of their own.
    pub(crate) fn two(agents: usize) -> Self {
        Self::start(agents, Some(Postgres::start("load")))
    }

    fn start(agents: usize, server: Option<Postgres>) -> Self {
        let folder = RunFolder::new("load");
        let data = folder.path().join("data");
        let database = server.as_ref().map(|server| server.database("load"));
        let envs: Vec<(String, String)> =
            database.iter().map(|url| ("NAVIN_DATABASE".to_owned(), url.clone())).collect();
        let launch = |name: &str, command: &[&str]| {
            let mut args: Vec<OsString> = command.iter().map(OsString::from).collect();
            args.extend(["--data".into(), data.clone().into()]);
            args.extend(["--max-agents".into(), (agents + 100).to_string().into()]);
            Launch {
                name: name.to_owned(),
                program: program(),
                args,
                envs: envs.clone(),
                folder: folder.path().to_owned(),
            }
        };
        // The one operator here makes the calls of thousands.
        let serve =
            ["serve", "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0", "--token-rate", "0"];
        let (serve, said) = Gateway::start(launch("serve", &serve));
        let rest = address(&said, "rest");
        let mut gateways = vec![serve.listening(&said, Some(rest))];
        if server.is_some() {
            let (gateway, said) =
                Gateway::start(launch("gateway", &["agent-gateway", "--host", "127.0.0.1", "--port", "0"]));
            gateways.push(gateway.listening(&said, None));
        }
        let mut token = Command::new(program());
        token.args(["token", "--tenant", "load", "--data"]).arg(&data).envs(envs.iter().cloned());
        let token = token.output().expect("a token");
        assert!(token.status.success(), "{token:?}");
        let token = String::from_utf8(token.stdout).expect("a token").trim().to_owned();
        let ca = fs::read_to_string(data.join("tls/ca.crt")).expect("the manager's authority");
        Self { rest, ca, token, gateways, _server: server, _folder: folder }
    }
}

/// The manager: built from the sources as they are, or the program that `NAVIN_MANAGER` names.
fn program() -> PathBuf {
    std::env::var_os("NAVIN_MANAGER").map_or_else(|| cargo_binary("navin-manager"), PathBuf::from)
}

impl Gateway {
    fn start(launch: Launch) -> (Self, Value) {
        let (arguments, process) = (launch.args.clone(), Process::start(launch));
        let said = process.announces(1, STARTED);
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        (Self { address, arguments, process, ends: Mutex::default() }, said)
    }

    /// From now on started again on the same ports.
    fn listening(mut self, said: &Value, rest: Option<SocketAddr>) -> Self {
        self.address = address(said, "gateway");
        for (option, value) in [
            ("--gateway-listen", self.address.to_string()),
            ("--port", self.address.port().to_string()),
            ("--listen", rest.map(|rest| rest.to_string()).unwrap_or_default()),
        ] {
            if let Some(at) = self.arguments.iter().position(|argument| argument == option) {
                self.arguments[at + 1] = value.into();
            }
        }
        self
    }

    /// SIGKILL.
    pub(crate) fn kill(&self) {
        self.ended();
        self.process.kill9();
    }

    /// SIGTERM, and waits for its end.
    pub(crate) fn terminate(&self) {
        self.ended();
        self.process.terminate();
        assert_eq!(self.process.wait_exit(ENDED), Some(0), "{}", self.process.stderr_tail());
    }

    /// Starts it again, once it has ended.
    pub(crate) fn start_again(&self) {
        let before = self.process.announced().len();
        self.process.start_again_with(self.arguments.clone());
        self.process.announces(before + 1, STARTED);
    }

    fn ended(&self) {
        self.ends.lock().expect("the ends").push(Instant::now());
    }

    /// How many lives it has had.
    pub(crate) fn life(&self) -> usize {
        self.ends.lock().expect("the ends").len()
    }

    /// Whether it had ended its `life`th life at a time.
    pub(crate) fn had_ended(&self, life: usize, at: Instant) -> bool {
        self.ends.lock().expect("the ends").get(life).is_some_and(|end| *end <= at)
    }

    /// Its resident memory, in KiB.
    pub(crate) fn memory_kb(&self) -> f64 {
        u32::try_from(Reading::of(self.process.pid()).rss_kib).map_or(f64::INFINITY, f64::from)
    }

    /// The processor time that it has taken, in seconds.
    pub(crate) fn processor_s(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.pid())).expect("a process");
        let after_name = stat.rsplit(')').next().expect("the fields after the name");
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        fields[11..13].iter().map(|field| field.parse::<f64>().expect("ticks")).sum::<f64>() / TICKS
    }
}

fn address(said: &Value, name: &str) -> SocketAddr {
    let url = said[name].as_str().expect("an address");
    url.trim_start_matches("https://").parse().expect("an address")
}
