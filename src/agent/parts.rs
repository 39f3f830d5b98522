//! What `run` is made of: the identity, the clients, and one builder for each thread's part.

use super::{KubeAccess, Options};
use crate::board::Board;
use crate::clock::{Clock, unpredictable};
use crate::elector::Elector;
use crate::event::Event;
use crate::exit::{Exit, Fatal};
use crate::files::{self, MAX_FILE_BYTES};
use crate::folder::DirFolder;
use crate::gateway::{Contact, Gateway};
use crate::heartbeat::{Heart, Pulse};
use crate::http::{HttpsClient, Switch, TlsFiles};
use crate::identity::{Current, Identity, fingerprint};
use crate::inbox::{Desk, Inbox};
use crate::kube::{self, Kube};
use crate::leader::{Leader, World};
use crate::leadership::Permit;
use crate::notices::{Crier, Notices};
use crate::outbox::{Outbox, Queue};
use crate::poll::{self, Poller};
use crate::reporter::{self, Reporter};
use crate::rotation::Rotation;
use crate::rules::election::third;
use crate::watch::{self, Watcher};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// What the threads are made of; what is in an `Arc` they share.
pub(super) struct Parts<'a> {
    options: &'a Options,
    identity: Arc<Identity>,
    current: Arc<Current>,
    /// The identity's files as they were read.
    seen: [u8; 32],
    /// The clients of the gateway that were made.
    clients: RefCell<Vec<Arc<Switch>>>,
    /// PEM of the issuers trusted for the API server.
    ca: Vec<u8>,
    replica: String,
    clock: Arc<dyn Clock>,
    /// The leader thread's.
    pub(super) pulse: Arc<Pulse>,
    /// Those of the other threads that were made.
    pulses: RefCell<Vec<Arc<Pulse>>>,
    pub(super) permit: Arc<Permit>,
    contact: Arc<Contact>,
    queue: Arc<Queue>,
    board: Arc<Board>,
    notices: Arc<Notices>,
    desk: Arc<Desk>,
    pub(super) events: SyncSender<Event>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        options: &'a Options,
        events: SyncSender<Event>,
    ) -> Result<Self, Fatal> {
        // Before it is read: what changes meanwhile is looked at again.
        let seen = fingerprint(&options.identity_dir);
        let identity = Identity::load(&options.identity_dir).map_err(|e| Fatal::new(Exit::Config, e))?;
        check_namespace(options, &identity)?;
        let identity = Arc::new(identity);
        let unreadable = |e| format!("{}: not readable: {e}", options.kube.ca.display());
        let ca = files::read(&options.kube.ca, MAX_FILE_BYTES)
            .map_err(|e| Fatal::new(Exit::Config, unreadable(e)))?;
        Ok(Self {
            options,
            pulse: Pulse::new("leader", longest_call(&identity), Arc::clone(&clock)),
            pulses: RefCell::default(),
            current: Arc::new(Current::new(Arc::clone(&identity))),
            identity,
            seen,
            clients: RefCell::default(),
            ca,
            replica: options.pod_name.clone().unwrap_or_else(|| "navin-cluster-agent".to_owned()),
            clock,
            permit: Arc::default(),
            contact: Arc::default(),
            queue: Arc::default(),
            board: Arc::default(),
            notices: Arc::default(),
            desk: Arc::default(),
            events,
        })
    }

    /// The clock of a thread whose longest call that blocks takes `longest`, or as long as it waits for something
    /// to do.
    fn pulse(&self, name: &'static str, longest: Duration) -> Arc<Pulse> {
        let pulse = Pulse::new(name, longest, Arc::clone(&self.clock));
        self.pulses.borrow_mut().push(Arc::clone(&pulse));
        pulse
    }

    /// A client of the API server with connections of its own.
    fn kube(&self, pulse: &Arc<Pulse>) -> Result<Kube, Fatal> {
        let KubeAccess { url, token, ca } = &self.options.kube;
        let tls = TlsFiles { ca: &self.ca, client: None };
        let client = HttpsClient::new(url, &tls, Some(token.clone()))
            .map_err(|e| Fatal::new(Exit::Config, format!("{}: {e}", ca.display())))?;
        let config = &self.identity.config;
        Ok(Kube::new(pulse.over(Arc::new(client)), config.namespace.as_str(), third(config.lease_duration())))
    }

    /// A client of the gateway with connections of its own.
    fn gateway(&self, pulse: &Arc<Pulse>) -> Result<Gateway, Fatal> {
        let client = self.identity.gateway_client().map_err(|e| Fatal::new(Exit::Config, e))?;
        let client = Arc::new(Switch::new(Arc::new(client)));
        self.clients.borrow_mut().push(Arc::clone(&client));
        let clock = Arc::<Pulse>::clone(pulse);
        Ok(Gateway::new(pulse.over(client), clock, Arc::clone(&self.contact)))
    }

    /// What takes a re-issued identity into use: to be made last, when all clients are.
    pub(super) fn rotation(&self) -> Rotation {
        Rotation {
            dir: self.options.identity_dir.clone(),
            current: Arc::clone(&self.current),
            clients: self.clients.borrow().clone(),
            permit: Arc::clone(&self.permit),
            notices: Arc::clone(&self.notices),
            leader: self.events.clone(),
            pulse: self.pulse("identity", Duration::ZERO),
            seen: self.seen,
        }
    }

    /// What writes that all threads go round, where there is a folder for it: to be made last, when all are.
    pub(super) fn heart(&self) -> Option<Heart> {
        let dir = self.options.run_dir.as_ref().or(self.options.inbox.as_ref())?;
        Some(Heart {
            dir: dir.clone(),
            clock: Arc::clone(&self.clock),
            permit: Arc::clone(&self.permit),
            leader: Arc::clone(&self.pulse),
            others: self.pulses.borrow().clone(),
        })
    }

    pub(super) fn elector(&self) -> Result<Elector, Fatal> {
        // Two replicas of one name must not take each other for themselves.
        let uid = self.options.pod_uid.clone().map_or_else(unpredictable, Ok);
        let uid = uid.map_err(|e| Fatal::new(Exit::System, e))?;
        let pulse = self.pulse("lease", longest_call(&self.identity));
        Ok(Elector::new(
            self.kube(&pulse)?,
            pulse,
            Arc::clone(&self.permit),
            self.events.clone(),
            format!("{}_{uid}", self.replica),
            self.identity.config.lease_duration(),
        ))
    }

    pub(super) fn leader(&self) -> Result<Leader, Fatal> {
        Ok(Leader::new(World {
            kube: self.kube(&self.pulse)?,
            clock: Arc::<Pulse>::clone(&self.pulse),
            permit: Arc::clone(&self.permit),
            contact: Arc::clone(&self.contact),
            outbox: Arc::clone(&self.queue),
            board: Arc::clone(&self.board),
            notices: Arc::clone(&self.notices),
            desk: Arc::clone(&self.desk),
            trust: self.identity.trust(),
            replica: self.replica.clone(),
            pace: Cell::default(),
        }))
    }

    pub(super) fn watcher(&self) -> Result<Watcher, Fatal> {
        let pulse = self.pulse("watch", watch::LONGEST);
        Ok(Watcher {
            kube: self.kube(&pulse)?,
            clock: pulse,
            leader: self.events.clone(),
            board: Arc::clone(&self.board),
            progress: watch::Progress::default(),
        })
    }

    pub(super) fn poller(&self) -> Result<Poller, Fatal> {
        let pulse = self.pulse("poll", Duration::ZERO);
        Ok(Poller {
            gateway: self.gateway(&pulse)?,
            clock: pulse,
            permit: Arc::clone(&self.permit),
            leader: self.events.clone(),
            identity: Arc::clone(&self.current),
            progress: poll::Progress::default(),
        })
    }

    pub(super) fn outbox(&self) -> Result<Outbox, Fatal> {
        let pulse = self.pulse("outbox", Duration::ZERO);
        let gateway = self.gateway(&pulse)?;
        Ok(Outbox::new(Arc::clone(&self.queue), gateway, pulse, self.events.clone()))
    }

    pub(super) fn reporter(&self) -> Result<Reporter, Fatal> {
        let pulse = self.pulse("reporter", Duration::ZERO);
        Ok(Reporter {
            kube: self.kube(&pulse)?,
            gateway: self.gateway(&pulse)?,
            contact: Arc::clone(&self.contact),
            clock: pulse,
            board: Arc::clone(&self.board),
            leader: self.events.clone(),
            notices: Arc::clone(&self.notices),
            identity: Arc::clone(&self.current),
            replica: self.replica.clone(),
            progress: reporter::Progress::default(),
        })
    }

    pub(super) fn crier(&self) -> Result<Crier, Fatal> {
        let (pulse, notices) =
            (self.pulse("events", longest_call(&self.identity)), Arc::clone(&self.notices));
        let (replica, uid) = (self.replica.clone(), self.options.pod_uid.clone());
        Ok(Crier::new(self.kube(&pulse)?, pulse, notices, replica, uid))
    }

    /// The inbox, where a folder for it was given.
    pub(super) fn inbox(&self) -> Option<Inbox> {
        let folder = DirFolder::new(self.options.inbox.as_deref()?);
        folder.sweep(self.clock.wall());
        let (desk, events) = (Arc::clone(&self.desk), self.events.clone());
        let clock: Arc<dyn Clock> = self.pulse("inbox", Duration::ZERO);
        Some(Inbox::new(Box::new(folder), &clock, &self.permit, desk, events, &self.replica))
    }

    pub(super) fn announce(&self, holder: &str) {
        let config = &self.identity.config;
        log::info!(
            "starting version={} tenant={} cluster={} identity={} holder={holder}",
            env!("CARGO_PKG_VERSION"),
            config.tenant_id,
            config.cluster_id,
            config.identity_id,
        );
    }
}

/// The longest call of a thread that reads and writes single objects, and the longest pause of the lease thread.
fn longest_call(identity: &Identity) -> Duration {
    kube::longest_call(third(identity.config.lease_duration()))
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
