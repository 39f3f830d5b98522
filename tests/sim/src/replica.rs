//! A replica: the agent's own parts, wired as `agent.rs` wires them, each thread's loop around its `step`.

use crate::chance;
use crate::folder::{Pile, Volume};
use crate::host::{Host, Life};
use crate::identity::NAMESPACE;
use crate::loops::{Shared, cry_on, elect, file_on, lead_on, poll_on, report_on, send_on, watch_on};
use crate::thread::{Line, Peer, Port, Thread};
use navin_cluster_agent::board::Board;
use navin_cluster_agent::clock::Clock;
use navin_cluster_agent::elector::Elector;
use navin_cluster_agent::gateway::{Contact, Gateway};
use navin_cluster_agent::http::Http;
use navin_cluster_agent::identity::{Current, Identity};
use navin_cluster_agent::inbox::{Desk, Inbox};
use navin_cluster_agent::kube::Kube;
use navin_cluster_agent::leader::{Leader, World};
use navin_cluster_agent::leadership::Permit;
use navin_cluster_agent::notices::{Crier, Notices};
use navin_cluster_agent::outbox::{Outbox, Queue};
use navin_cluster_agent::poll::{self, Poller};
use navin_cluster_agent::reporter::{self, Reporter};
use navin_cluster_agent::rules::election::Tenure;
use navin_cluster_agent::watch::{self, Watcher};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Events that wait for the leader thread. More than the agent's 64: a full channel would block the one
/// thread that all coroutines run on.
const EVENTS: usize = 4_096;

/// The threads of a replica, in the order of [`Replica::threads`].
pub const ROLES: [&str; 8] = ["lease", "leader", "poll", "outbox", "reporter", "watch", "events", "inbox"];
/// The index of the leader thread.
pub const LEADER: usize = 1;
/// The index of the inbox's thread.
pub const INBOX: usize = 7;

/// The machine and the volume of a pod.
pub struct Place<'a> {
    /// The machine.
    pub host: &'a Arc<Host>,
    /// The inbox.
    pub pile: &'a Arc<Pile>,
    /// Whether changes of the inbox are hinted; else it is found by scans alone.
    pub hinted: bool,
}

/// One process of the agent.
pub struct Replica {
    /// The pod's name.
    pub pod: String,
    /// `holderIdentity`
    pub holder: String,
    /// Clocks and death.
    pub life: Arc<Life>,
    /// The permission to act, as its threads see it.
    pub permit: Arc<Permit>,
    /// Its coroutines.
    pub threads: Vec<Thread>,
}

impl Replica {
    /// Starts a process at `place` as the pod `pod` with the uid `uid`.
    #[must_use]
    pub fn start(place: &Place<'_>, identity: &Arc<Identity>, pod: &str, uid: &str, seed: u64) -> Self {
        let life = Arc::new(Life::new(Arc::clone(place.host)));
        let ports: Vec<Arc<Port>> =
            (0..ROLES.len()).map(|n| Port::new(Arc::clone(&life), chance::mix(seed, n as u64))).collect();
        let [lease, lead, poll, out, report, look, cry, files] =
            std::array::from_fn(|n: usize| Arc::clone(&ports[n]));
        let config = &identity.config;
        let current = Arc::new(Current::new(Arc::clone(identity)));
        let term = config.lease_duration();
        let kube = |port: &Arc<Port>| Kube::new(line(port, Peer::Kube), NAMESPACE, term / 3);
        let (permit, contact) = (Arc::new(Permit::default()), Arc::new(Contact::default()));
        let (queue, board) = (Arc::new(Queue::default()), Arc::new(Board::default()));
        let (notices, desk) = (Arc::new(Notices::default()), Arc::new(Desk::default()));
        if place.hinted {
            place.pile.watch(&desk);
        }
        let volume = Box::new(Volume { pile: Arc::clone(place.pile), port: Arc::clone(&files) });
        let gateway =
            |port: &Arc<Port>| Gateway::new(line(port, Peer::Gateway), clock(port), Arc::clone(&contact));
        let (events, inbox) = sync_channel(EVENTS);
        let holder = format!("{pod}_{uid}");
        let elector = Elector::new(
            kube(&lease),
            clock(&lease),
            Arc::clone(&permit),
            events.clone(),
            holder.clone(),
            term,
        );
        let leader = Leader::new(World {
            kube: kube(&lead),
            clock: clock(&lead),
            permit: Arc::clone(&permit),
            contact: Arc::clone(&contact),
            outbox: Arc::clone(&queue),
            board: Arc::clone(&board),
            notices: Arc::clone(&notices),
            desk: Arc::clone(&desk),
            trust: identity.trust(),
            replica: pod.to_owned(),
            pace: Cell::default(),
        });
        let poller = Poller {
            gateway: gateway(&poll),
            clock: clock(&poll),
            permit: Arc::clone(&permit),
            leader: events.clone(),
            identity: Arc::clone(&current),
            progress: poll::Progress::default(),
        };
        let outbox = Outbox::new(Arc::clone(&queue), gateway(&out), clock(&out), events.clone());
        let reporter = Reporter {
            kube: kube(&report),
            gateway: gateway(&report),
            contact: Arc::clone(&contact),
            clock: clock(&report),
            board: Arc::clone(&board),
            leader: events.clone(),
            notices: Arc::clone(&notices),
            identity: Arc::clone(&current),
            replica: pod.to_owned(),
            progress: reporter::Progress::default(),
        };
        let shown = Arc::clone(&board);
        let watcher = Watcher {
            kube: kube(&look),
            clock: clock(&look),
            leader: events.clone(),
            board: Arc::clone(&board),
            progress: watch::Progress::default(),
        };
        let drop_box = Inbox::new(volume, &clock(&files), &permit, Arc::clone(&desk), events, pod);
        let (talk, id) = (Arc::clone(&notices), Some(uid.to_owned()));
        let crier = Crier::new(kube(&cry), clock(&cry), talk, pod.to_owned(), id);
        let shared = |port: &Arc<Port>| -> Shared { (Arc::clone(port), Arc::clone(&permit)) };
        let threads = vec![
            Thread::new(Arc::clone(&lease), elect(elector, shared(&lease))),
            Thread::new(Arc::clone(&lead), lead_on(leader, inbox, shared(&lead))),
            Thread::new(Arc::clone(&poll), poll_on(poller, contact, shared(&poll))),
            Thread::new(Arc::clone(&out), send_on(outbox, queue, shared(&out))),
            Thread::new(Arc::clone(&report), report_on(reporter, board, shared(&report))),
            Thread::new(Arc::clone(&look), watch_on(watcher, shown, shared(&look))),
            Thread::new(Arc::clone(&cry), cry_on(crier, notices, shared(&cry))),
            Thread::new(Arc::clone(&files), file_on(drop_box, desk, shared(&files))),
        ];
        Self { pod: pod.to_owned(), holder, life, permit, threads }
    }

    /// The tenure under which it believes that it may act now.
    #[must_use]
    pub fn tenure(&self) -> Option<Arc<Tenure>> {
        if self.life.dead() {
            return None;
        }
        self.permit.tenure(self.life.monotonic())
    }
}

fn line(port: &Arc<Port>, peer: Peer) -> Arc<dyn Http> {
    Arc::new(Line { port: Arc::clone(port), peer })
}

fn clock(port: &Arc<Port>) -> Arc<dyn Clock> {
    Arc::clone(port) as Arc<dyn Clock>
}

/// The uid of a pod, by its number.
#[must_use]
pub fn pod_uid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}
