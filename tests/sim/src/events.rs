//! Troubles of the plan, the workload, and the end of the run.

use crate::api::{ANNOTATIONS_LIMIT, Effect, Kind};
use crate::checker::STATE;
use crate::faults::{SECOND, Trouble};
use crate::host::true_time;
use crate::workload::Item;
use crate::world::{Conditions, Event, World};
use navin_cluster_agent::kube::lease;
use serde_json::json;

/// How long after the end of the troubles everything must have settled.
const SETTLE_WITHIN: u64 = 20 * 60 * SECOND;
/// How long everything must stay settled.
const STAYS: u64 = 20 * SECOND;

impl World {
    fn time(&self) -> String {
        format!("{:.0}", true_time(self.now.get()))
    }

    /// Shows what was done to the store by hand to whoever checks.
    fn effects_by_hand(&mut self) {
        self.send_lines();
        for effect in std::mem::take(&mut self.api.effects) {
            let now = self.now.get();
            self.checker.effect(&effect, None, &self.manager, &mut self.stats);
            let Effect { kind, name, .. } = &effect;
            self.trace
                .note(now, &[8], name, || format!("by hand: {kind:?} {}", crate::speech::effect(&effect)));
        }
    }

    pub(crate) fn trouble(&mut self, index: usize) {
        let (number, _, trouble) = self.troubles[index];
        if self.healed.is_some() || !self.options.allowed.has(number) {
            return;
        }
        self.happened.push(number);
        *self.stats.troubles.entry(trouble.name()).or_default() += 1;
        let now = self.now.get();
        self.trace.note(now, &[9, number], "", || format!("TROUBLE {trouble:?} fault={number}"));
        let time = self.time();
        if trouble.loses() {
            self.checker.will_lose(trouble);
        }
        match trouble {
            Trouble::GatewayAway(long) => self.conditions.gateway_away = now + long,
            Trouble::GatewayAnswers(status, long) => self.conditions.gateway_answers = (status, now + long),
            Trouble::ManagerRestarts => self.manager.restart(),
            Trouble::ApiAway(long) => {
                self.conditions.api_away = now + long;
                self.disturb_all(now + long);
            }
            Trouble::ApiAnswers(status, long) => {
                self.conditions.api_answers = (status, now + long);
                self.disturb_all(now + long);
            }
            Trouble::CutOff(slot, long) => {
                self.conditions.cut_off[slot] = now + long;
                self.disturb(slot, now + long);
            }
            Trouble::FolderBroken(slot, long) => {
                self.slots[slot].pile.breaks(now + long);
                self.disturb(slot, now + long);
            }
            Trouble::Compacted => self.api.compact(),
            Trouble::Clock(slot, step, rate) => {
                self.checker.turns_clock();
                self.slots[slot].host.turn(step, rate);
            }
            Trouble::Terminated(slot) => self.terminate(slot),
            Trouble::Killed(slot) => self.kill(slot, Some("killed")),
            Trouble::AllKilled => {
                for slot in 0..self.slots.len() {
                    self.kill(slot, Some("killed"));
                }
            }
            Trouble::StateDeleted => self.api.delete_by_hand(Kind::ConfigMap, STATE, &time),
            Trouble::StateEdited => {
                self.api.edit(Kind::ConfigMap, STATE, |object| object["data"] = json!({ "state.json": "?" }));
            }
            Trouble::LeaseDeleted => self.api.delete_by_hand(Kind::Lease, lease::NAME, &time),
            Trouble::LeaseCleared => {
                self.api
                    .edit(Kind::Lease, lease::NAME, |object| object["spec"]["holderIdentity"] = json!(""));
            }
        }
        self.effects_by_hand();
    }

    fn terminate(&mut self, slot: usize) {
        let Some(replica) = &self.slots[slot].replica else { return };
        replica.permit.close();
        let process = self.slots[slot].process;
        self.after(4_500_000, Event::Overdue(slot, process));
        // As the main thread's event wakes the leader thread.
        for thread in 0..crate::replica::ROLES.len() {
            let waits = self.slots[slot].replica.as_ref().is_some_and(|r| r.threads[thread].waits.is_some());
            if waits {
                self.resume(slot, thread, None);
            }
        }
    }

    pub(crate) fn item(&mut self, index: usize) {
        let (number, _, item) = self.items[index].clone();
        if !self.options.allowed.has(number) {
            return;
        }
        self.happened.push(number);
        let now = self.now.get();
        let time = self.time();
        self.trace.note(now, &[10, number], "", || crate::speech::item(&item, number));
        match item {
            Item::Approve(operation, name, spec, valid) => {
                self.manager.approve(now, operation, name.as_deref(), spec.as_ref(), valid);
            }
            Item::EditSpec(name, value) => {
                self.api.edit(Kind::Component, &name, |object| object["spec"]["edited"] = json!(value));
            }
            Item::Label(name, status) => {
                self.api.edit(Kind::Component, &name, |object| {
                    if status {
                        object["status"] = json!({ "at": now });
                    } else {
                        object["metadata"]["labels"]["somebody"] = json!(now.to_string());
                    }
                });
            }
            Item::Delete(name) => self.api.delete_by_hand(Kind::Component, &name, &time),
            Item::Create(name) => {
                let object = json!({
                    "apiVersion": "platform.navin.ai/v1", "kind": "ManagedComponent",
                    "metadata": { "name": name, "namespace": crate::identity::NAMESPACE },
                    "spec": { "by": "hand" },
                });
                self.api.create_by_hand(Kind::Component, object, &time);
            }
            Item::Hold(name) => {
                self.api.edit(Kind::Component, &name, |object| {
                    // As the server refuses to add one to what is being deleted.
                    if object["metadata"].get("deletionTimestamp").is_none() {
                        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
                    }
                });
            }
            Item::Let(name) => self.release(&name),
            Item::LabelOurs(state) => {
                let (kind, name) = if state { (Kind::ConfigMap, STATE) } else { (Kind::Lease, lease::NAME) };
                self.api.edit(kind, name, |object| {
                    object["metadata"]["labels"]["somebody"] = json!(now.to_string());
                });
            }
            Item::Fill(name) => {
                self.api.edit(Kind::Component, &name, |object| {
                    let key = "example.com/notes";
                    let note = "x".repeat(ANNOTATIONS_LIMIT - key.len());
                    object["metadata"]["annotations"] = json!({ key: note });
                });
            }
            Item::Inbox(target, file, paper) => self.paper(target, &file, &paper),
            Item::Replay(index, times) => {
                if let Some(command) = self.manager.commands.get_mut(index) {
                    command.taken_back = None;
                }
                let envelope = self.manager.commands.get(index).map(|command| command.envelope.clone());
                for envelope in envelope.into_iter().cycle().take(times) {
                    self.manager.slipped.push(envelope);
                }
            }
            Item::Forge(index, kind) => {
                let forged = self.manager.forged(index, kind);
                self.manager.slipped.extend(forged);
            }
        }
        self.effects_by_hand();
    }

    fn release(&mut self, name: &str) {
        self.api.edit(Kind::Component, name, |object| {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("finalizers");
            }
        });
    }

    pub(crate) fn heal(&mut self) {
        let now = self.now.get();
        self.trace.note(now, &[11], "", || "ALL TROUBLES END".to_owned());
        self.healed = Some(now);
        self.disturb_all(now);
        self.conditions = Conditions { cut_off: vec![0; self.slots.len()], ..Conditions::default() };
        for slot in &self.slots {
            slot.host.set_right();
            slot.pile.breaks(0);
        }
        let names: Vec<String> = self.api.all(Kind::Component).map(|(name, _)| name.to_owned()).collect();
        for name in names {
            self.release(&name);
        }
        self.effects_by_hand();
        self.after(SECOND, Event::Settled);
    }

    /// Within a bounded time after the troubles: one leader, everything answered, nothing left.
    pub(crate) fn look_whether_settled(&mut self) {
        let now = self.now.get();
        let Some(healed) = self.healed else { return };
        let leaders =
            self.slots.iter().filter(|s| s.replica.as_ref().is_some_and(|r| r.tenure().is_some())).count();
        let missing = if now <= self.last_landing {
            Some("something that was delayed has not landed".to_owned())
        } else {
            let missing = self.checker.missing(leaders, now, &self.api, &self.manager);
            missing.or_else(|| self.unanswered())
        };
        match (missing, self.settled_since) {
            (None, None) => self.settled_since = Some(now),
            (None, Some(since)) if now - since >= STAYS => {
                self.checker.finally(&self.manager);
                self.done = true;
                return;
            }
            (None, Some(_)) => {}
            (Some(missing), _) => {
                self.settled_since = None;
                if now.saturating_sub(healed.max(self.last_landing)) > SETTLE_WITHIN {
                    self.checker.broken("liveness: everything settles when the troubles have ended", missing);
                    return;
                }
            }
        }
        self.after(SECOND, Event::Settled);
    }
}
