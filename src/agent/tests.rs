//! The end of the process when a thread ends that should not. The real threads run in a process of their own: this
//! program again, with the one test that is otherwise ignored.

use super::*;
use crate::cli::start_logging;
use crate::clock::HandClock;
use crate::rules::vectors::{configuration, test_pem};
use jiff::Timestamp;
use navin_test_support::{Launch, Process, RunFolder, until};
use rcgen::{CertificateParams, KeyPair};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

/// What the process of its own is told: its folder, and the thread that shall panic.
const FOLDER: &str = "NAVIN_TEST_FOLDER";
const THREAD: &str = "NAVIN_TEST_PANICKING_THREAD";
/// What the panic says.
const TEXT: &str = "made to panic";
/// Every thread that works; `signals` has nothing but its wait.
const WORKERS: [&str; 10] =
    ["leader", "lease", "watch", "poll", "outbox", "reporter", "identity", "events", "inbox", "heartbeat"];

/// OpenAEV-Platform/agent#159: work is dead for good after a panic in its thread, and the agent seems alive.
#[test]
fn a_thread_that_panics_or_returns_ends_the_process_with_code_70_and_its_name() {
    let lock: Arc<Mutex<()>> = Arc::default();
    let held = Arc::clone(&lock);
    let panics = move || {
        let held = held.lock();
        assert!(held.is_err(), "a panic while it holds a lock");
    };
    for (name, body) in [("poll", Box::new(panics) as Box<dyn FnOnce() + Send>), ("watch", Box::new(|| ()))] {
        let (wake, woken) = sync_channel(8);
        guarded(name, wake.clone(), body).unwrap();
        let (events, _received) = sync_channel(1);
        let fatal = await_end(&woken, &Permit::default(), &events).err().unwrap();
        assert_eq!(fatal.exit, Exit::Software);
        assert_eq!(fatal.message, format!("thread {name} ended unexpectedly"));
    }
}

/// The system's clock, but one thread panics when it looks at it.
struct Panicking {
    clock: SystemClock,
    thread: String,
}

impl Panicking {
    fn look(&self) {
        let name = thread::current().name().map(str::to_owned);
        assert!(name.as_deref() != Some(&self.thread), "{TEXT}");
    }
}

impl Clock for Panicking {
    fn wall(&self) -> Timestamp {
        self.look();
        self.clock.wall()
    }

    fn monotonic(&self) -> Duration {
        self.look();
        self.clock.monotonic()
    }

    fn sleep(&self, pause: Duration) {
        self.clock.sleep(pause);
    }

    fn random(&self) -> u64 {
        self.clock.random()
    }
}

/// An identity, and all else that `run` wants; what of it is secret.
fn prepare(folder: &Path) -> Vec<String> {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem();
    let token = "CaNaRy7x".repeat(8);
    for (name, text) in [
        ("manager.pem", test_pem()),
        ("config.json", configuration("https://127.0.0.1:1").to_string()),
        ("ca.crt", certificate.clone()),
        ("tls.crt", certificate),
        ("tls.key", key.serialize_pem()),
        ("token", token.clone()),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    let pem = key.serialize_pem();
    let lines = pem.lines().filter(|line| !line.starts_with('-')).map(|line| line[..16].to_owned());
    lines.chain([token[..8].to_owned()]).collect()
}

/// What `run` is given in the folder: an API server and a manager that nobody is.
fn options(folder: &Path) -> Options {
    Options {
        identity_dir: folder.to_owned(),
        kube: KubeAccess {
            url: "https://127.0.0.1:1".to_owned(),
            token: folder.join("token"),
            ca: folder.join("ca.crt"),
        },
        pod_name: Some("agent-a".to_owned()),
        pod_uid: None,
        pod_namespace: None,
        inbox: Some(folder.to_owned()),
        run_dir: None,
    }
}

#[test]
fn two_replicas_of_one_name_without_a_uid_are_two_holders_however_little_pauses_are_spread() {
    let folder = RunFolder::new("holders");
    prepare(folder.path());
    let options = options(folder.path());
    let holder = || {
        // Its random numbers are zeros, as where there are no random bits.
        let clock = Arc::new(HandClock::default());
        let parts = Parts::new(clock, &options, sync_channel(1).0).ok().expect("an identity");
        parts.elector().ok().expect("a lease thread").holder().to_owned()
    };
    assert_ne!(holder(), holder());
}

/// Not a test by itself: the process of its own.
#[test]
#[ignore = "is run by the test of the panics, in a process of its own"]
fn a_process_whose_thread_panics() {
    let (Ok(folder), Ok(thread)) = (std::env::var(FOLDER), std::env::var(THREAD)) else { return };
    start_logging();
    let clock = Panicking { clock: SystemClock::default(), thread };
    let fatal = run_by(Arc::new(clock), &options(Path::new(&folder))).expect_err("it does not end in order");
    eprintln!("{}", fatal.message);
    std::process::exit(fatal.exit as i32);
}

/// OpenAEV-Platform/agent#159, marin-community/marin#8773.
#[test]
fn a_panic_in_any_worker_ends_the_process_within_five_seconds_and_tells_no_secret() {
    let folder = RunFolder::new("panics");
    let start = |name: &&'static str| {
        let own = folder.path().join(name);
        fs::create_dir(&own).unwrap();
        let secrets = prepare(&own);
        let args = ["--exact", "agent::tests::a_process_whose_thread_panics", "--ignored", "--nocapture"];
        let envs = [
            (FOLDER, own.to_str().unwrap()),
            (THREAD, name),
            ("RUST_LOG", "trace"),
            ("RUST_BACKTRACE", "full"),
        ];
        let process = Process::start(Launch {
            name: (*name).to_owned(),
            program: std::env::current_exe().unwrap(),
            args: args.map(Into::into).to_vec(),
            envs: envs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            folder: folder.path().to_owned(),
        });
        (*name, secrets, process)
    };
    let started: Vec<_> = WORKERS.iter().map(start).collect();
    for (name, secrets, process) in started {
        until(&format!("the panic in {name}"), Duration::from_secs(20), || {
            process.stderr_text().contains(TEXT).then_some(())
        });
        assert_eq!(process.wait_exit(Duration::from_secs(5)), Some(70), "{name}");
        let text = process.stderr_text() + &process.stdout_text();
        assert!(text.contains(&format!("thread {name} ended unexpectedly")), "{text}");
        for secret in &secrets {
            assert!(!text.contains(secret), "{name}: {secret}");
        }
    }
}
