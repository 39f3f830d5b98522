//! What must hold of acceptances, receipts, the Lease and the state.

use super::{FENCED, KEPT, NONCE, ONE, SIZE, STATE_LIMIT, STATUS};
use crate::api::Effect;
use crate::checker::Checker;
use crate::history::{Sender, Story};
use crate::manager::Manager;
use crate::stats::Stats;
use crate::stored::{Entry, Stored};
use jiff::SignedDuration;
use navin_cluster_agent::rules::names::parse_time;
use serde_json::Value;
use std::sync::Arc;

impl Checker {
    /// 5, first half.
    pub fn beliefs(&mut self, count: usize) {
        if count > 1 && self.equal_rates && !self.lease_touched {
            self.broken(ONE, format!("{count} replicas"));
        }
    }

    /// 1 and 3: a receipt that says that it is recorded leaves only when it is.
    pub(crate) fn receipt_leaves(&mut self, body: &[u8], manager: &Manager) {
        let receipt: Value = serde_json::from_slice(body).unwrap_or_default();
        self.speaks_for(&receipt, manager);
        self.answers_a_replay(&receipt);
        let said = if receipt["recorded"] == true { &receipt } else { &receipt["original"] };
        if said["recorded"] != true || self.state_lost {
            return;
        }
        let id = said["command_id"].as_str().unwrap_or("");
        let recorded = self.stories.get(id).and_then(|story| story.outcome.as_ref());
        if recorded != Some(said) {
            self.broken(NONCE, format!("{id}: a receipt is sent that is not the recorded one"));
        }
    }

    /// 1: after its outcome was recorded, each delivery is answered `nonce_replayed`, expired or not. Judged by
    /// the receipt's own time, so only where all wall clocks are right.
    fn answers_a_replay(&mut self, receipt: &Value) {
        if self.lossy() || self.clocks_turned || receipt["recorded"] == true {
            return;
        }
        let reason = receipt["reason"].as_str().unwrap_or("");
        let story = receipt["command_id"].as_str().and_then(|id| self.stories.get(id));
        let ended = story.and_then(|story| story.ended_at).map(|ended| ended + SignedDuration::from_secs(2));
        let judged = receipt["executed_at"].as_str().and_then(parse_time);
        let nonce = receipt["nonce"].as_str().unwrap_or("");
        // A record may have been dropped: then `floor` answers.
        let kept = self.stored.as_ref().is_some_and(|stored| stored.commands.contains_key(nonce));
        if matches!(reason, "expired" | "not_yet_valid") && kept && ended.is_some() && judged > ended {
            let what = format!("{}: {reason} after its outcome was recorded at {ended:?}", receipt["nonce"]);
            self.broken(NONCE, what);
        }
    }

    pub(crate) fn lease_changed(&mut self, effect: &Effect, stats: &mut Stats) {
        let Some(lease) = &effect.after else { return };
        let text = |pointer: &str| lease.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        let transitions = lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0);
        let key = (text("/spec/holderIdentity"), transitions, text("/metadata/uid"));
        if key.0.is_empty() {
            return;
        }
        let acquired = std::mem::replace(&mut self.acquired, text("/spec/acquireTime"));
        if self.tenures.last() == Some(&key) {
            if acquired != self.acquired && !self.lease_touched {
                self.broken(
                    FENCED,
                    format!("{} takes over from itself, transitions={transitions} again", key.0),
                );
            }
            return;
        }
        if self.tenures.contains(&key) && !self.lease_touched {
            self.broken(FENCED, format!("two tenures share transitions={transitions} of {}", key.0));
        }
        stats.failovers += 1;
        self.tenures.push(key);
    }

    pub(crate) fn state_changed(
        &mut self,
        effect: &Effect,
        sender: Option<&Sender>,
        manager: &Manager,
        stats: &mut Stats,
    ) {
        let Some(sender) = sender else {
            self.stored = effect.after.as_ref().and_then(Stored::read).map(Arc::new);
            return;
        };
        let next = sender.writes.clone();
        let before = std::mem::replace(&mut self.stored, next.clone());
        let Some(next) = next else { return };
        if sender.tenure < self.state_tenure {
            let what =
                format!("state: term={} of tenure {} after {}", next.term, sender.tenure, self.state_tenure);
            self.broken(FENCED, what);
        }
        let takes_over = sender.tenure > self.state_tenure;
        self.state_tenure = sender.tenure;
        let taken = std::mem::replace(&mut self.state_taken, takes_over);
        // The first of the two steps that make a state has term 0.
        if let Some(before) = before.as_ref().filter(|before| takes_over && before.term > 0) {
            // A restart in the same pod may find that the former process's takeover has landed after its own reading, with
            // the very text of its own. That process had no answer then, so it has sent nothing else that could land.
            let absorbed = taken && before.holder == next.holder;
            if next.term < before.term || (next.term == before.term && !absorbed) {
                self.broken(
                    "a takeover raises the term",
                    format!("term={} after {}", next.term, before.term),
                );
            }
        }
        if next.bytes > STATE_LIMIT {
            self.broken(SIZE, format!("{} bytes", next.bytes));
        }
        if self.state_lost {
            for entry in next.commands.values() {
                let story = self.story(&entry.id, manager);
                story.accepted = true;
                if let Some(receipt) = &entry.receipt {
                    story.outcome = Some(receipt.clone());
                }
            }
            return;
        }
        if let Some(before) = before {
            self.nothing_dropped(&before, &next);
        }
        for entry in next.commands.values() {
            self.recorded(entry, manager, stats);
        }
        let names: Vec<&str> = next.commands.values().filter_map(Entry::name).collect();
        if let Some(name) = names.iter().find(|name| next.accepted(name).count() > 1) {
            self.broken("of one name one command is under way", (*name).to_owned());
        }
    }

    /// 6.
    fn nothing_dropped(&mut self, before: &Stored, next: &Stored) {
        for (nonce, entry) in &before.commands {
            if next.commands.contains_key(nonce) {
                continue;
            }
            let acknowledged = self.stories.get(&entry.id).is_some_and(|story| story.acknowledged);
            let floor = next.floor.as_deref().and_then(parse_time);
            if !acknowledged {
                self.broken(KEPT, format!("{nonce}: dropped, and the manager does not have it"));
            }
            if floor < parse_time(&entry.not_after) {
                self.broken(KEPT, format!("{nonce}: dropped, and floor does not remember it"));
            }
        }
    }

    fn recorded(&mut self, entry: &Entry, manager: &Manager, stats: &mut Stats) {
        let stands = |component: &Option<String>, checker: &Self| {
            component.as_ref().is_some_and(|name| checker.stands.contains(name))
        };
        let story = self.story(&entry.id, manager).clone();
        if !story.accepted {
            let gone = !stands(&story.name, self);
            let story = self.story(&entry.id, manager);
            story.accepted = true;
            story.gone = gone;
        }
        let Some(receipt) = &entry.receipt else {
            if story.outcome.is_some() {
                self.broken(NONCE, format!("#{}: accepted again", story.sequence));
            }
            return;
        };
        match &story.outcome {
            Some(outcome) if outcome == receipt => {}
            Some(_) => self.broken(NONCE, format!("#{}: its receipt changes", story.sequence)),
            None => {
                let now = self.now;
                let story = self.story(&entry.id, manager);
                story.outcome = Some(receipt.clone());
                story.ended_at = Some(now);
                let story = story.clone();
                let reason = receipt["reason"].as_str().or(receipt["status"].as_str()).unwrap_or("");
                *stats.outcomes.entry(reason.to_owned()).or_default() += 1;
                self.true_outcome(&story, receipt);
            }
        }
        if entry.acknowledged && !story.acknowledged {
            self.broken(KEPT, format!("#{}: acknowledged, and the manager does not have it", story.sequence));
        }
    }

    /// 3: the status is what happened.
    fn true_outcome(&mut self, story: &Story, receipt: &Value) {
        let stands = story.name.as_ref().is_some_and(|name| self.stands.contains(name));
        let status = receipt["status"].as_str().unwrap_or("");
        let lie = match (status, story.operation.as_str()) {
            ("succeeded", "managedcomponent.apply") => {
                // What stood already, whoever wrote it, is not written again after the window.
                let stood = receipt["result"]["changed"] == false;
                story.creates + story.replaces == 0 && !stood
            }
            ("succeeded", "managedcomponent.delete") => !story.gone,
            ("succeeded", "inventory.report") => story.creates + story.replaces + story.deletes > 0,
            ("succeeded", _) => true,
            // After a delete that landed, a late create of another command may have brought the object back.
            _ => (story.replaces > 0 || (story.deletes > 0 && !stands)) && !story.by_hand,
        };
        if lie {
            let Story { creates, replaces, deletes, .. } = story;
            let did = format!("creates={creates} replaces={replaces} deletes={deletes}");
            let what = format!("#{} {} is {receipt}; {did}", story.sequence, story.operation);
            self.broken(STATUS, what);
        }
    }
}
