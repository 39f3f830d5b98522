//! Watches every call and every change of the store, and knows what must hold.
//!
//! What is kept here is history: who wrote what, under which accepted command, in which tenure. The invariants
//! themselves are in `invariants/`.

use crate::api::{Effect, Kind, Schema};
use crate::faults::Trouble;
use crate::history::{Known, Sender, Story, Violation};
use crate::host::true_time;
use crate::identity::SETTINGS;
use crate::manager::Manager;
use crate::replica::{LEADER, Replica};
use crate::stats::Stats;
use crate::stored::Stored;
use crate::thread::Peer;
use jiff::Timestamp;
use navin_cluster_agent::http::Request;
use navin_cluster_agent::kube::state;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The name of the ConfigMap with the state.
pub const STATE: &str = state::NAME;

/// The history of a run, and what must hold in it.
#[expect(clippy::struct_excessive_bools, reason = "facts of a run that do not depend on each other")]
pub struct Checker {
    /// The first invariant that was broken.
    pub violation: Option<Violation>,
    pub(crate) schema: Schema,
    pub(crate) equal_rates: bool,
    pub(crate) settings: usize,
    pub(crate) stories: BTreeMap<String, Story>,
    pub(crate) known: BTreeMap<u64, Known>,
    /// The state as the store holds it.
    pub(crate) stored: Option<Arc<Stored>>,
    pub(crate) tenures: Vec<(String, u64, String)>,
    /// `acquireTime` of the last.
    pub(crate) acquired: String,
    pub(crate) state_tenure: usize,
    /// The last write of the state was the first of its tenure.
    pub(crate) state_taken: bool,
    pub(crate) component_tenure: BTreeMap<String, usize>,
    /// Components that somebody made by hand and no command has written since.
    pub(crate) foreign: BTreeSet<String>,
    /// Components that exist and are not being deleted.
    pub(crate) stands: BTreeSet<String>,
    pub(crate) state_lost: bool,
    pub(crate) lease_touched: bool,
    /// A wall clock was changed.
    pub(crate) clocks_turned: bool,
    /// Changes of the inbox are hinted.
    pub(crate) hinted: bool,
    /// The repairs of each reign of a process, by name.
    pub(crate) repairs: BTreeMap<(u64, u64, String), Vec<Duration>>,
    /// Since when a component was changed by hand.
    pub(crate) drifted: BTreeMap<String, Timestamp>,
    /// Until when the last pause of a process lasts, and what follows from it.
    pub(crate) paused_until: Timestamp,
    /// True time.
    pub(crate) now: Timestamp,
}

impl Checker {
    /// A history that has not begun.
    #[must_use]
    pub fn new(schema: Schema, equal_rates: bool, settings: usize, hinted: bool) -> Self {
        Self {
            violation: None,
            schema,
            equal_rates,
            settings,
            stories: BTreeMap::new(),
            known: BTreeMap::new(),
            stored: None,
            tenures: vec![(String::new(), 0, String::new())],
            acquired: String::new(),
            state_tenure: 0,
            state_taken: false,
            component_tenure: BTreeMap::new(),
            foreign: BTreeSet::new(),
            stands: BTreeSet::new(),
            state_lost: false,
            lease_touched: false,
            clocks_turned: false,
            hinted,
            repairs: BTreeMap::new(),
            drifted: BTreeMap::new(),
            paused_until: true_time(0),
            now: true_time(0),
        }
    }

    /// An invariant is broken; the first one counts.
    pub fn broken(&mut self, invariant: &'static str, what: String) {
        self.violation.get_or_insert(Violation { invariant, what });
    }

    /// Somebody is about to delete or overwrite state or Lease.
    pub fn will_lose(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::StateDeleted | Trouble::StateEdited => self.state_lost = true,
            _ => self.lease_touched = true,
        }
    }

    /// A wall clock is about to be changed.
    pub fn turns_clock(&mut self) {
        self.clocks_turned = true;
    }

    pub(crate) fn nobody_was_paused(&self) -> bool {
        self.now > self.paused_until
    }

    /// Whether this run is counted apart.
    #[must_use]
    pub fn lossy(&self) -> bool {
        self.state_lost || self.lease_touched
    }

    pub(crate) fn offline_after(&self) -> Duration {
        Duration::from_secs(SETTINGS[self.settings].offline_s)
    }

    /// The story of a command of the manager's.
    pub(crate) fn story(&mut self, id: &str, manager: &Manager) -> &mut Story {
        self.stories.entry(id.to_owned()).or_insert_with(|| {
            manager.command(id).map_or_else(Story::default, |command| Story {
                name: command.name.clone(),
                operation: command.operation.clone(),
                sequence: command.sequence,
                ..Story::default()
            })
        })
    }

    /// A call leaves.
    pub fn sent(
        &mut self,
        replica: &Replica,
        process: u64,
        thread: usize,
        request: &Request,
        manager: &Manager,
    ) -> Sender {
        let tenure = replica.tenure();
        let tenure_place = tenure.as_ref().map_or(0, |tenure| {
            let key = (tenure.holder.clone(), u64::from(tenure.transitions), tenure.lease_uid.clone());
            self.tenures.iter().rposition(|known| *known == key).unwrap_or(0)
        });
        let mut sender = Sender {
            process,
            thread,
            tenure: tenure_place,
            sent: replica.life.monotonic(),
            ..Sender::default()
        };
        let Some(body) = &request.body else { return sender };
        if request.path == "/v1/cluster-agent/receipts" {
            self.receipt_leaves(body, manager);
        } else if request.path == "/v1/cluster-agent/report" {
            self.report_leaves(process, body, sender.sent);
        }
        if thread != LEADER {
            return sender;
        }
        if tenure.is_none() {
            self.broken("a write is sent only with the permission to act", request.path.clone());
        }
        if request.path.contains("/configmaps") {
            let object: Value = serde_json::from_slice(body).unwrap_or_default();
            sender.writes = Stored::read(&object).map(Arc::new);
            if let Some(next) = sender.writes.clone() {
                self.known.entry(process).or_default().ended = None;
                self.accepting(&replica.life, process, &next, manager, tenure.map(|t| t.since));
            }
        } else if request.path.contains("/managedcomponents") {
            self.writing(process, request, body, &mut sender);
        }
        sender
    }

    /// A call of the leader thread has landed: what its answer will show.
    pub fn seen(&mut self, sender: &mut Sender, path: &str) {
        if sender.thread == LEADER && path.contains("/configmaps") {
            sender.view = Some(self.stored.clone());
        }
    }

    /// An answer has arrived whole, at `now` (monotonic).
    pub fn answered(&mut self, sender: &Sender, peer: Peer, status: u16, now: Duration) {
        if !(200..300).contains(&status) {
            return;
        }
        if let Some(name) = &sender.repaired {
            self.repaired(sender, name, now);
        }
        let known = self.known.entry(sender.process).or_default();
        match peer {
            Peer::Gateway => known.answered = known.answered.max(Some(sender.sent)),
            Peer::Kube => {
                if let Some(view) = &sender.view {
                    known.view.clone_from(view);
                    // Read anew, it goes on from what the cluster holds.
                    known.ended = None;
                    if sender.writes.is_none() {
                        known.reign += 1;
                    }
                }
            }
        }
    }

    /// The leader thread has read the Lease or a component; the answer came at `now` (monotonic).
    pub fn read(&mut self, sender: &Sender, path: &str, status: u16, now: Duration) {
        if sender.thread != LEADER {
            return;
        }
        let known = self.known.entry(sender.process).or_default();
        let name = path.rsplit('/').next().unwrap_or("").to_owned();
        if path.contains("/leases/") && status == 200 {
            known.lease_read = Some(sender.sent);
        } else if path.contains("/managedcomponents/") && matches!(status, 200 | 404) {
            known.component_read.insert(name, now);
        }
    }

    /// A write that ends its command was answered at `now` (monotonic).
    pub fn ended(&mut self, sender: &Sender, status: u16, now: Duration) {
        if sender.ends && (200..300).contains(&status) {
            self.known.entry(sender.process).or_default().ended.get_or_insert(now);
        }
    }

    /// The store has changed.
    pub fn effect(&mut self, effect: &Effect, sender: Option<&Sender>, manager: &Manager, stats: &mut Stats) {
        match effect.kind {
            Kind::Lease => self.lease_changed(effect, stats),
            Kind::ConfigMap if effect.name == STATE => self.state_changed(effect, sender, manager, stats),
            Kind::ConfigMap => {}
            Kind::Component => self.component_changed(effect, sender, manager, stats),
        }
    }

    /// A receipt has landed at the manager, which answered with `status`.
    pub fn receipt_landed(&mut self, body: &[u8], status: u16) {
        let receipt: Value = serde_json::from_slice(body).unwrap_or_default();
        let has_it =
            status == 200 && (receipt["recorded"] == true || receipt["original"]["recorded"] == true);
        let never = status == 404 || status == 403;
        if let Some(story) = receipt["command_id"].as_str().and_then(|id| self.stories.get_mut(id)) {
            story.acknowledged |= has_it || never;
        }
    }
}
