//! A re-issued identity is taken from the mounted files without a restart (CONTRACT section 3): verified first,
//! then given to everybody at once. One that does not verify, or may not take the running one's place, is
//! reported, and the running one kept.
//!
//! The folder is looked at on a timer: the kubelet swaps a Secret's files by a link, which no watch of the files
//! survives, and takes up to a minute for it anyway. `lease_duration_s` alone counts from the next start: the
//! term of a Lease that is held, and of one that is waited for, must not change in the middle.

use crate::event::Event;
use crate::heartbeat::Pulse;
use crate::http::{Http, Switch};
use crate::identity::{Current, Identity, fingerprint};
use crate::leadership::Permit;
use crate::notices::{About, Notices};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Between two looks at the folder.
const EVERY: Duration = Duration::from_secs(10);

/// The looking side.
pub struct Rotation {
    /// The folder of the identity.
    pub dir: PathBuf,
    /// The identity in use.
    pub current: Arc<Current>,
    /// The clients of the gateway, one for each thread that speaks to it.
    pub clients: Vec<Arc<Switch>>,
    /// Whether the process is ending.
    pub permit: Arc<Permit>,
    /// What people are told.
    pub notices: Arc<Notices>,
    /// Who judges commands.
    pub leader: SyncSender<Event>,
    /// By which the thread is heard.
    pub pulse: Arc<Pulse>,
    /// The files as they were last looked at.
    pub seen: [u8; 32],
}

/// A verified identity, and a client of the gateway for each [`Rotation::clients`].
type Loaded = (Arc<Identity>, Vec<Arc<dyn Http>>);

impl Rotation {
    /// The thread: looks until the process ends.
    pub fn run(mut self) {
        while !self.permit.await_closing(EVERY) {
            self.pulse.beat();
            self.step();
        }
    }

    /// Looks once; takes a new identity into use if there is one.
    pub fn step(&mut self) {
        let found = fingerprint(&self.dir);
        if found == self.seen {
            return;
        }
        self.seen = found;
        match self.load() {
            Ok(identity) => self.take(identity),
            Err(why) => {
                let text = format!(
                    "identity rejected, the running one is kept: {why}: have the manager issue a new one, and apply \
                     its whole Secret"
                );
                log::warn!("{text}");
                self.notices.warning("IdentityRejected", About::Pod, &text);
            }
        }
    }

    fn load(&self) -> Result<Loaded, String> {
        let identity = Identity::load(&self.dir).map_err(|e| e.to_string())?;
        identity.succeeds(&self.current.get())?;
        let client = || Ok::<Arc<dyn Http>, String>(Arc::new(identity.gateway_client()?));
        let clients = self.clients.iter().map(|_| client()).collect::<Result<_, _>>()?;
        Ok((Arc::new(identity), clients))
    }

    fn take(&self, (identity, clients): Loaded) {
        let running = self.current.get();
        if identity.config.lease_duration() != running.config.lease_duration() {
            log::warn!("identity: lease_duration_s counts from the next start");
        }
        // Before anything can come from the new gateway: who judges it is to know its keys.
        if self.leader.send(Event::Trust(Box::new(identity.trust()))).is_err() {
            log::debug!("the leader thread has ended");
        }
        self.current.set(Arc::clone(&identity));
        for (switch, client) in self.clients.iter().zip(clients) {
            switch.set(client);
        }
        log::info!("identity taken identity={}", identity.config.identity_id);
    }
}
