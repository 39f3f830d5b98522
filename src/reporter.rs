//! Reports to the manager (CONTRACT section 5), and the reading of the inventory, which may take long and
//! must not hold up the leader.

use crate::board::{Board, Shown};
use crate::clock::Clock;
use crate::event::Event;
use crate::gateway::{Contact, Gateway, GatewayError};
use crate::identity::Current;
use crate::kube::{Kube, inventory};
use crate::notices::{About, Notices};
use crate::rules::backoff::Backoff;
use crate::rules::certificate::is_expiring;
use crate::rules::link::{Link, apart, is_apart};
use crate::rules::names::{format_time, hex};
use crate::rules::report::{Carrier, Inventory, LIMIT as REPORT_LIMIT, REPORT_TYPE};
use crate::rules::said::Said;
use crate::rules::state::State;
use crate::say::say;
use crate::threads::LONGEST_WAIT;
use jiff::Timestamp;
use ring::digest::{Context, SHA256};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Least time between two reports for a change of a component's status.
const LEAST: Duration = Duration::from_secs(5);

/// Until the report with the inventory, where the manager has lost the one that it had.
const AGAIN: Duration = Duration::from_secs(1);

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
    /// What people are told.
    pub notices: Arc<Notices>,
    /// Who we are.
    pub identity: Arc<Current>,
    /// Our pod's name.
    pub replica: String,
    /// What was sent, and when the next report is due.
    pub progress: Progress,
}

/// What the reporter remembers between two steps.
#[derive(Default)]
pub struct Progress {
    due: Duration,
    /// The manager is to be left alone until then: it said so.
    not_before: Duration,
    /// When the last report was sent.
    sent: Option<Duration>,
    backoff: Backoff,
    /// The inventories that were asked for are answered up to this one.
    answered: u64,
    /// The tenure that was reported last began then.
    tenure_since: Option<Duration>,
    /// The inventory as last read, its revision, and when it is read anew.
    inventory: Option<(Inventory, String, Duration)>,
    /// The revision of the inventory that the manager has.
    kept: Option<String>,
    cluster_uid: Option<String>,
    /// When the log said last that the certificate ends.
    warned: Option<Duration>,
    /// What was said of refusals.
    said: Said,
}

impl Reporter {
    /// The thread: reports for ever. The simulation's is in `tests/sim/src/loops.rs`.
    pub fn run(mut self) {
        loop {
            let pause = self.step();
            self.board.shown.wait(pause);
        }
    }

    /// Reports if it is time to, a status has changed, or an inventory was asked for; how long until the next.
    pub fn step(&mut self) -> Duration {
        let shown = self.board.take();
        let now = self.clock.monotonic();
        let (Some((wall, since)), Some(state)) = (shown.reign, shown.state.clone()) else {
            return LONGEST_WAIT;
        };
        if self.progress.tenure_since.replace(since) != Some(since) {
            self.progress.due = Duration::ZERO;
        }
        if shown.status_changed && self.progress.backoff.failures() == 0 {
            let soon = self.progress.sent.map_or(now, |sent| sent.saturating_add(LEAST));
            self.progress.due = self.progress.due.min(soon).max(self.progress.not_before);
        }
        let asked = shown.asked != self.progress.answered;
        if now < self.progress.due && !asked {
            return self.progress.due.saturating_sub(now);
        }
        let (inventory, revision) = self.inventory(asked, now);
        if asked {
            self.progress.answered = shown.asked;
            let result = json!({ "revision": revision, "counts": inventory.counts() });
            let whole = inventory.clone();
            if self.leader.send(Event::Inventory { result, asked: shown.asked, whole }).is_err() {
                log::debug!("the leader thread has ended");
            }
        }
        if now < self.progress.not_before {
            return self.progress.not_before.saturating_sub(now);
        }
        let inventory = (self.progress.kept.as_deref() != Some(&revision)).then_some(inventory);
        let mut report = Carrier::new(self.report(&shown, wall, since, &state, &revision), inventory);
        report.fit(REPORT_LIMIT);
        self.progress.sent = Some(self.clock.monotonic());
        let pause = self.send(&report, &revision);
        self.progress.due = self.clock.monotonic().saturating_add(pause);
        pause
    }

    /// The inventory and its revision: read anew when it is asked for, and once an interval; a report that
    /// is only tried again takes the last one.
    fn inventory(&mut self, asked: bool, now: Duration) -> (Inventory, String) {
        match &self.progress.inventory {
            Some((inventory, revision, until)) if !asked && now < *until => {
                (inventory.clone(), revision.clone())
            }
            Some(_) | None => {
                // Before the new one is read: there is room for one.
                self.progress.inventory = None;
                let inventory = inventory::read(&self.kube, &*self.clock);
                let revision = revision(&inventory);
                let until = now.saturating_add(self.identity.get().config.report_interval());
                self.progress.inventory = Some((inventory.clone(), revision.clone(), until));
                (inventory, revision)
            }
        }
    }

    fn send(&mut self, report: &Carrier, revision: &str) -> Duration {
        match self.gateway.report(report) {
            Ok(needed) => {
                self.progress.backoff.reset();
                self.progress.said.over();
                let again = needed && self.progress.kept.is_some();
                self.progress.kept = (!needed).then(|| revision.to_owned());
                let interval = self.identity.get().config.report_interval();
                if again { AGAIN } else { interval }
            }
            Err(error) => {
                let text = error.to_string();
                if is_refused(&error) {
                    let line = format!("report refused error={text:?}: tried again");
                    say(&mut self.progress.said, self.clock.monotonic(), log::Level::Warn, &text, &line);
                } else {
                    log::debug!("report kept error={text:?}");
                }
                let told = error.retry_after(self.clock.wall());
                // Counted also where the manager says itself how long: a change of a status is no reason then.
                let own = self.progress.backoff.next(self.clock.random());
                if let Some(told) = told {
                    self.progress.not_before = self.clock.monotonic().saturating_add(told);
                }
                told.unwrap_or(own)
            }
        }
    }

    fn report(
        &mut self,
        shown: &Shown,
        wall: Timestamp,
        since: Duration,
        state: &State,
        revision: &str,
    ) -> Value {
        let identity = self.identity.get();
        let config = &identity.config;
        if self.progress.cluster_uid.is_none() {
            self.progress.cluster_uid = inventory::cluster_uid(&self.kube);
        }
        let link =
            Link::judge(self.clock.monotonic(), since, self.contact.answered(), config.offline_after());
        let counts = state.counts();
        self.warn_of_time();
        json!({
            "type": REPORT_TYPE,
            "tenant_id": config.tenant_id,
            "cluster_id": config.cluster_id,
            "replica": self.replica,
            "agent_version": env!("CARGO_PKG_VERSION"),
            "cluster_uid": self.progress.cluster_uid,
            "observed_at": format_time(self.clock.wall()),
            "leader_since": format_time(wall),
            "link": link.as_str(),
            "clock_offset_ms": self.contact.clock_offset_ms(),
            "certificate_not_after": identity.certificate_not_after.map(format_time),
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
                "drift_repaired": shown.repaired,
                "offline_periods": shown.offline_periods,
            },
            "components": self.board.components(shown, state),
            "inventory_revision": revision,
        })
    }
}

/// How often the log says again that the certificate ends.
const DAILY: Duration = Duration::from_hours(24);

impl Reporter {
    /// Tells people of what will stop the agent if nobody acts.
    fn warn_of_time(&mut self) {
        let skew = self.contact.clock_offset_ms().filter(|offset| is_apart(*offset));
        if let Some(offset) = skew {
            let message = format!(
                "the manager's clock is {}: set both by NTP; commands may be refused not_yet_valid or expired",
                apart(offset)
            );
            self.notices.warning("ClockSkew", About::Pod, &message);
        }
        let Some(end) = self.identity.get().certificate_not_after else { return };
        if !is_expiring(end, self.clock.wall()) {
            self.progress.warned = None;
            return;
        }
        let message = format!(
            "the certificate towards the manager ends {}: have the manager issue a new identity, and apply its Secret",
            format_time(end)
        );
        self.notices.warning("CertificateExpiring", About::Pod, &message);
        let now = self.clock.monotonic();
        if self.progress.warned.is_none_or(|warned| now.saturating_sub(warned) >= DAILY) {
            self.progress.warned = Some(now);
            log::warn!("{message}");
        }
    }
}

/// Whether it is this report that is refused; what is said to every call, a poll's failure tells.
fn is_refused(error: &GatewayError) -> bool {
    matches!(error, GatewayError::Status { status: 400 | 403 | 413 | 422, code, .. } if code != "identity_revoked")
}

/// A name for what the inventory holds: SHA-256 of its text, hex.
fn revision(inventory: &Inventory) -> String {
    let mut digest = Digest(Context::new(&SHA256));
    // It takes everything, and nothing in an inventory can fail to be written.
    serde_json::to_writer(&mut digest, inventory).unwrap_or_default();
    hex(digest.0.finish().as_ref())
}

struct Digest(Context);

impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
