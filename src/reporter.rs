//! Reports to the manager (CONTRACT section 5), and the reading of the inventory, which may take long and
//! must not hold up the leader.

use crate::clock::Clock;
use crate::event::Event;
use crate::gateway::{Contact, Gateway};
use crate::identity::Identity;
use crate::kube::{Kube, components, inventory};
use crate::rules::backoff::Backoff;
use crate::rules::component;
use crate::rules::json::canonical;
use crate::rules::link::Link;
use crate::rules::messages::{Reason, Receipt, Status};
use crate::rules::names::format_time;
use crate::rules::state::State;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Largest `status` of a component in a report, in bytes.
const STATUS_BYTES: usize = 16 * 1024;
/// Longest sleep.
const IDLE: Duration = Duration::from_hours(1);

/// What the leader shows to the reporter, and asks of it.
#[derive(Default)]
pub struct Board {
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Clone, Default)]
struct Shown {
    reign: Option<(Timestamp, Duration, Arc<State>)>,
    asked: bool,
    /// Something is new since the reporter looked.
    news: bool,
    full: bool,
    executed: u64,
    refused: BTreeMap<&'static str, u64>,
    offline_periods: u64,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This replica leads since `wall` and `since` (monotonic), with this state.
    pub fn lead(&self, wall: Timestamp, since: Duration, state: Arc<State>) {
        let mut shown = self.lock();
        shown.reign = Some((wall, since, state));
        shown.news = true;
        self.changed.notify_all();
    }

    /// This replica does not lead any more.
    pub fn stepped_down(&self) {
        let mut shown = self.lock();
        shown.reign = None;
        shown.asked = false;
    }

    /// The state as it was last written.
    pub fn publish(&self, state: Arc<State>) {
        if let Some((_, _, shown)) = &mut self.lock().reign {
            *shown = state;
        }
    }

    /// Whether the state takes no more commands.
    pub fn full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Counts an outcome.
    pub fn count(&self, receipt: &Receipt) {
        match (receipt.status, receipt.reason) {
            (Status::Refused, Some(reason)) => self.count_unreadable(reason),
            (Status::Succeeded | Status::Failed | Status::Refused, _) => {
                let mut shown = self.lock();
                shown.executed = shown.executed.saturating_add(1);
            }
        }
    }

    /// Counts a refusal that nobody can be told of.
    pub fn count_unreadable(&self, reason: Reason) {
        let mut shown = self.lock();
        let count = shown.refused.entry(reason.as_str()).or_default();
        *count = count.saturating_add(1);
    }

    /// Counts a period without the manager, at its beginning.
    pub fn count_offline(&self) {
        let mut shown = self.lock();
        shown.offline_periods = shown.offline_periods.saturating_add(1);
    }

    /// Asks for an inventory; it comes as [`Event::Inventory`].
    pub fn ask_inventory(&self) {
        let mut shown = self.lock();
        shown.asked = true;
        shown.news = true;
        self.changed.notify_all();
    }

    fn wait(&self, limit: Duration) {
        drop(self.changed.wait_timeout_while(self.lock(), limit, |shown| !shown.news));
    }

    fn take(&self) -> Shown {
        let mut shown = self.lock();
        let copy = shown.clone();
        shown.asked = false;
        shown.news = false;
        copy
    }
}

/// The reporting side.
pub struct Reporter {
    /// The API server, with connections of the reporter's own.
    pub kube: Kube,
    /// The manager.
    pub gateway: Gateway,
    /// What is known of it.
    pub contact: Arc<Contact>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What the leader shows.
    pub board: Arc<Board>,
    /// Where an inventory that was asked for goes.
    pub leader: SyncSender<Event>,
    /// Who we are.
    pub identity: Arc<Identity>,
    /// Our pod's name.
    pub replica: String,
    /// What was sent, and when the next report is due.
    pub progress: Progress,
}

/// What the reporter remembers between two steps.
#[derive(Default)]
pub struct Progress {
    due: Duration,
    backoff: Backoff,
    /// The tenure that was reported last began then.
    tenure_since: Option<Duration>,
    /// The inventory as last read, its revision, and when it is read anew.
    inventory: Option<(Value, String, Duration)>,
    /// The revision of the inventory that the manager has.
    kept: Option<String>,
    cluster_uid: Option<String>,
}

impl Reporter {
    /// The thread: reports for ever.
    pub fn run(mut self) {
        loop {
            let pause = self.step();
            self.board.wait(pause);
        }
    }

    /// Reports if it is time to, or an inventory was asked for; how long until the next.
    pub fn step(&mut self) -> Duration {
        let shown = self.board.take();
        let now = self.clock.monotonic();
        let Some((wall, since, state)) = shown.reign.clone() else {
            return IDLE;
        };
        if self.progress.tenure_since.replace(since) != Some(since) {
            self.progress.due = Duration::ZERO;
        }
        if now < self.progress.due && !shown.asked {
            return self.progress.due.saturating_sub(now);
        }
        let (inventory, revision) = self.inventory(shown.asked, now);
        if shown.asked {
            let result = json!({ "revision": revision, "counts": inventory::counts(&inventory) });
            let whole = Arc::new(inventory.clone());
            if self.leader.send(Event::Inventory { result, whole }).is_err() {
                log::debug!("the leader thread has ended");
            }
        }
        let mut report = self.report(&shown, wall, since, &state);
        set(&mut report, "inventory_revision", json!(revision));
        if self.progress.kept.as_deref() != Some(&revision) {
            set(&mut report, "inventory", inventory);
        }
        let pause = self.send(&report, &revision);
        self.progress.due = self.clock.monotonic().saturating_add(pause);
        pause
    }

    /// The inventory and its revision: read anew when it is asked for, and once an interval; a report that
    /// is only tried again takes the last one.
    fn inventory(&mut self, asked: bool, now: Duration) -> (Value, String) {
        match &self.progress.inventory {
            Some((inventory, revision, until)) if !asked && now < *until => {
                (inventory.clone(), revision.clone())
            }
            Some(_) | None => {
                let inventory = inventory::read(&self.kube);
                let revision = revision(&inventory);
                let until = now.saturating_add(self.identity.config.report_interval());
                self.progress.inventory = Some((inventory.clone(), revision.clone(), until));
                (inventory, revision)
            }
        }
    }

    fn send(&mut self, report: &Value, revision: &str) -> Duration {
        match self.gateway.report(report) {
            Ok(needed) => {
                self.progress.backoff = Backoff::default();
                let again = needed && self.progress.kept.is_some();
                self.progress.kept = (!needed).then(|| revision.to_owned());
                let interval = self.identity.config.report_interval();
                if again { Duration::from_secs(1) } else { interval }
            }
            Err(error) => {
                log::debug!("report kept error={error}");
                let told = error.retry_after(self.clock.wall());
                let random = self.clock.random();
                told.unwrap_or_else(|| self.progress.backoff.next(random))
            }
        }
    }

    fn report(&mut self, shown: &Shown, wall: Timestamp, since: Duration, state: &State) -> Value {
        let config = &self.identity.config;
        if self.progress.cluster_uid.is_none() {
            self.progress.cluster_uid = inventory::cluster_uid(&self.kube);
        }
        let link =
            Link::judge(self.clock.monotonic(), since, self.contact.answered(), config.offline_after());
        let counts = state.counts();
        json!({
            "type": "navin.report/v1",
            "tenant_id": config.tenant_id,
            "cluster_id": config.cluster_id,
            "replica": self.replica,
            "agent_version": env!("CARGO_PKG_VERSION"),
            "cluster_uid": self.progress.cluster_uid,
            "observed_at": format_time(self.clock.wall()),
            "leader_since": format_time(wall),
            "link": link.as_str(),
            "clock_offset_ms": self.contact.clock_offset_ms().unwrap_or(0),
            "certificate_not_after": self.identity.certificate_not_after.map(format_time),
            "state": {
                "bytes": state.bytes(),
                "records": counts.records,
                "receipts_waiting": counts.receipts_waiting,
                "full": shown.full,
                "highest_sequence": state.highest_sequence,
                "lost_at": state.lost_at.map(format_time),
            },
            "counters": {
                "executed": shown.executed,
                "refused": shown.refused,
                "drift_repaired": 0,
                "offline_periods": shown.offline_periods,
            },
            "components": self.components(state),
        })
    }

    /// The components that commands asked for, as they stand; null where they could not be read.
    fn components(&self, state: &State) -> Value {
        let live = match components::list(&self.kube) {
            Ok(live) => live,
            Err(error) => {
                log::info!("components unreadable error={:?}", error.to_string());
                return Value::Null;
            }
        };
        let row = |(name, component): (&_, &crate::rules::state::Component)| {
            let desired = component.desired.as_ref()?;
            let name: &crate::rules::names::ComponentName = name;
            let object = live.iter().find(|object| object.name() == Some(name.as_str()));
            let spec = desired.envelope.pointer("/payload/arguments/spec").and_then(Value::as_object);
            let in_sync = match (object, spec) {
                (Some(object), Some(spec)) => {
                    let as_written = object.uid() == Some(desired.uid.as_str())
                        && object.generation() == desired.generation;
                    as_written || component::same_spec(object, spec)
                }
                (Some(_) | None, _) => false,
            };
            let mut row = json!({ "name": name, "sequence": desired.sequence, "in_sync": in_sync });
            if object.is_none() {
                set(&mut row, "reason", json!("absent"));
            }
            if let Some(object) = object {
                set(&mut row, "generation", json!(object.generation()));
                match object.0.get("status") {
                    Some(status) if status.to_string().len() <= STATUS_BYTES => {
                        set(&mut row, "status", status.clone());
                    }
                    Some(_) => set(&mut row, "reason", json!("status_too_large")),
                    None => {}
                }
            }
            Some(row)
        };
        Value::Array(state.components().filter_map(row).collect())
    }
}

fn set(object: &mut Value, member: &str, value: Value) {
    if let Value::Object(object) = object {
        object.insert(member.to_owned(), value);
    }
}

/// A name for what the inventory holds: SHA-256 of its canonical form, hex.
fn revision(inventory: &Value) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, canonical(inventory).as_bytes());
    digest.as_ref().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
