//! `run`: builds the parts, starts the threads, and waits for a signal.
//!
//! Threads and what they speak to: lease (the Lease, over a connection of its own), leader (state and
//! components), poll and outbox (the gateway), reporter (lists, and the gateway), inbox (its folder), signals.
//! They are joined
//! by one bounded channel of [`Event`] into the leader, and by the [`Permit`]. A thread that ends takes the
//! process with it.

use crate::clock::{Clock, SystemClock};
use crate::elector::Elector;
use crate::event::Event;
use crate::exit::{Exit, Fatal};
use crate::files::{self, MAX_FILE_BYTES};
use crate::folder::DirFolder;
use crate::gateway::{Contact, Gateway};
use crate::http::{HttpsClient, TlsFiles};
use crate::identity::Identity;
use crate::inbox::{Desk, Inbox};
use crate::kube::Kube;
use crate::leader::{Leader, World};
use crate::leadership::Permit;
use crate::outbox::{Outbox, Queue};
use crate::poll::Poller;
use crate::reporter::{Board, Progress, Reporter};
use crate::rules::backoff::Backoff;
use crate::threads::spawn;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Events that wait for the leader thread; a producer blocks when it is full.
const EVENTS: usize = 64;
/// How long the ending may take before the process ends anyway.
const STOP_LIMIT: Duration = Duration::from_millis(4_500);

/// Where the API server is.
pub(crate) struct KubeAccess {
    /// `https://host:port`
    pub(crate) url: String,
    /// The bearer token's file.
    pub(crate) token: PathBuf,
    /// PEM of the issuers trusted for it.
    pub(crate) ca: PathBuf,
}

/// What `run` was started with.
pub(crate) struct Options {
    pub(crate) identity_dir: PathBuf,
    pub(crate) kube: KubeAccess,
    pub(crate) pod_name: Option<String>,
    pub(crate) pod_uid: Option<String>,
    pub(crate) pod_namespace: Option<String>,
    /// The break-glass folder.
    pub(crate) inbox: Option<PathBuf>,
}

/// What the main thread waits for.
enum Wake {
    Signal(i32),
    Ended(&'static str),
}

/// Runs the agent until a signal ends it.
pub(crate) fn run(options: &Options) -> Result<Exit, Fatal> {
    let system =
        |what: &'static str| move |e: std::io::Error| Fatal::new(Exit::System, format!("{what}: {e}"));
    let config_error = |e: String| Fatal::new(Exit::Config, e);
    let identity = Arc::new(Identity::load(&options.identity_dir).map_err(|e| Fatal::new(Exit::Config, e))?);
    check_namespace(options, &identity)?;
    let config = &identity.config;
    let ca = files::read(&options.kube.ca, MAX_FILE_BYTES)
        .map_err(|e| Fatal::new(Exit::Config, format!("{}: not readable: {e}", options.kube.ca.display())))?;
    let lease_duration = config.lease_duration();
    let kube = || -> Result<Kube, Fatal> {
        let tls = TlsFiles { ca: &ca, client: None };
        let client = HttpsClient::new(&options.kube.url, &tls, Some(options.kube.token.clone()))
            .map_err(|e| Fatal::new(Exit::Config, format!("{}: {e}", options.kube.ca.display())))?;
        Ok(Kube::new(Arc::new(client), config.namespace.as_str(), lease_duration / 3))
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let replica = options.pod_name.clone().unwrap_or_else(|| "navin-cluster-agent".to_owned());
    let uid = options.pod_uid.clone().unwrap_or_else(|| format!("{:016x}", clock.random()));
    let (permit, contact) = (Arc::new(Permit::default()), Arc::new(Contact::default()));
    let (queue, board) = (Arc::new(Queue::default()), Arc::new(Board::default()));
    let gateway = || -> Result<Gateway, Fatal> {
        let client = identity.gateway_client().map_err(config_error)?;
        Ok(Gateway::new(Arc::new(client), Arc::clone(&clock), Arc::clone(&contact)))
    };
    let desk = Arc::new(Desk::default());
    let (events, leaders_events) = sync_channel(EVENTS);
    let elector = Elector::new(
        kube()?,
        Arc::clone(&clock),
        Arc::clone(&permit),
        events.clone(),
        format!("{replica}_{uid}"),
        lease_duration,
    );
    let leader = Leader::new(World {
        kube: kube()?,
        clock: Arc::clone(&clock),
        permit: Arc::clone(&permit),
        contact: Arc::clone(&contact),
        outbox: Arc::clone(&queue),
        board: Arc::clone(&board),
        desk: Arc::clone(&desk),
        trust: identity.trust(),
        replica: replica.clone(),
    });
    let poller = Poller {
        gateway: gateway()?,
        clock: Arc::clone(&clock),
        permit: Arc::clone(&permit),
        leader: events.clone(),
        wait_s: config.poll_wait().as_secs(),
        backoff: Backoff::default(),
    };
    let outbox = Outbox::new(queue, gateway()?, Arc::clone(&clock), events.clone());
    let inbox = options.inbox.as_deref().map(|path| {
        Inbox::new(Box::new(DirFolder::new(path)), &clock, &permit, desk, events.clone(), &replica)
    });
    let reporter = Reporter {
        kube: kube()?,
        gateway: gateway()?,
        contact,
        clock,
        board,
        leader: events.clone(),
        identity: Arc::clone(&identity),
        replica,
        progress: Progress::default(),
    };

    // Before anything is said: whoever reads the first line may send a signal.
    let signals = Signals::new([SIGTERM, SIGINT]).map_err(system("signal handler"))?;
    say_hello(&identity, elector.holder());
    let (wake, woken) = sync_channel(8);
    let start = |name: &'static str, body: Box<dyn FnOnce() + Send>| {
        let ended = Ended { name, wake: wake.clone() };
        let guarded = move || {
            let _ended = ended;
            body();
        };
        spawn(name, guarded).map(drop).map_err(system("thread"))
    };
    start("signals", {
        let wake = wake.clone();
        Box::new(move || forward(signals, &wake))
    })?;
    start("leader", {
        let permit = Arc::clone(&permit);
        Box::new(move || lead(leader, &leaders_events, &permit))
    })?;
    start("lease", Box::new(move || elector.run()))?;
    start("poll", Box::new(move || poller.run()))?;
    start("outbox", Box::new(move || outbox.run()))?;
    start("reporter", Box::new(move || reporter.run()))?;
    if let Some(inbox) = inbox {
        start("inbox", Box::new(move || inbox.run()))?;
    }
    await_end(&woken, &permit, &events)
}

fn say_hello(identity: &Identity, holder: &str) {
    let config = &identity.config;
    log::info!(
        "starting version={} tenant={} cluster={} identity={} holder={holder}",
        env!("CARGO_PKG_VERSION"),
        config.tenant_id,
        config.cluster_id,
        config.identity_id
    );
}

/// The leader thread: takes events one by one, then does what is due.
fn lead(mut leader: Leader, events: &Receiver<Event>, permit: &Permit) {
    let mut pause = Duration::ZERO;
    while !permit.closing() {
        match events.recv_timeout(pause) {
            Ok(event) => {
                leader.handle(event);
                for event in events.try_iter() {
                    leader.handle(event);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        pause = leader.work();
    }
}

fn forward(mut signals: Signals, wake: &SyncSender<Wake>) {
    for signal in &mut signals {
        if wake.send(Wake::Signal(signal)).is_err() {
            return;
        }
    }
}

/// Tells the main thread that a thread has ended, by a panic too.
struct Ended {
    name: &'static str,
    wake: SyncSender<Wake>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        // A full channel means that the process is ending already.
        drop(self.wake.try_send(Wake::Ended(self.name)));
    }
}

/// Waits for a signal; then the leader thread stops, the lease thread releases, and the process ends.
fn await_end(woken: &Receiver<Wake>, permit: &Permit, events: &SyncSender<Event>) -> Result<Exit, Fatal> {
    match woken.recv() {
        Ok(Wake::Signal(signal)) => log::info!("stopping signal={signal}"),
        Ok(Wake::Ended(name)) => {
            return Err(Fatal::new(Exit::Software, format!("thread {name} ended unexpectedly")));
        }
        Err(error) => return Err(Fatal::new(Exit::Software, error)),
    }
    permit.close();
    // Wakes the leader thread; where the channel is full it is awake.
    drop(events.try_send(Event::Leadership));
    let clock = SystemClock::new();
    loop {
        match woken.recv_timeout(STOP_LIMIT.saturating_sub(clock.monotonic())) {
            Ok(Wake::Ended("leader")) => permit.leader_has_stopped(),
            Ok(Wake::Ended("lease")) => break,
            Ok(Wake::Ended(_) | Wake::Signal(_)) => {}
            Err(_) => {
                log::warn!("stopping without an orderly release: a call did not return in time");
                break;
            }
        }
    }
    log::info!("stopped");
    Ok(Exit::Success)
}

fn check_namespace(options: &Options, identity: &Identity) -> Result<(), Fatal> {
    let expected = identity.config.namespace.as_str();
    match &options.pod_namespace {
        Some(found) if found != expected => Err(Fatal::new(
            Exit::Config,
            format!(
                "{}: payload.namespace: expected the pod's own namespace {found:?}, found {expected:?}",
                options.identity_dir.join("config.json").display()
            ),
        )),
        Some(_) | None => Ok(()),
    }
}
