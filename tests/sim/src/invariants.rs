//! What must hold after every step; the numbers are those of the design's list.

use crate::api::{Api, Effect, Kind};
use crate::checker::{Act, Checker, Sender, Story};
use crate::identity::CLUSTER;
use crate::manager::Manager;
use crate::replica::Replica;
use crate::stats::Stats;
use crate::stored::{Entry, Stored};
use navin_cluster_agent::rules::names::parse_time;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Largest value of a ConfigMap, in bytes.
const STATE_LIMIT: usize = 1_048_576;
const SETTLED: &str = "/metadata/labels/platform.navin.ai~1settled";

const NONCE: &str =
    "1: a nonce is executed for at most one command, and its first recorded receipt never changes";
const ALLOWED: &str = "2: no command changes anything that was not, when accepted, authentic, in its window and allowed by the link";
const STATUS: &str =
    "3: every command ends with one recorded status at the manager, and that is what happened in the cluster";
const SPEC: &str = "4: each component is as the highest sequence that succeeded for its name says";
const ONE: &str = "5: with clocks of equal rate no two replicas believe at once that they may act";
const FENCED: &str = "5: no write of a former leader takes effect after the next leader's first write";
const KEPT: &str = "6: what was recorded is kept until the manager acknowledged it and its window is past";
const SIZE: &str = "7: the state never exceeds its limit, and nothing recorded is dropped to make room";
const NAMED: &str = "8: a component that no command ever named is never written";

impl Checker {
    /// 5, first half.
    pub fn beliefs(&mut self, count: usize) {
        if count > 1 && self.equal_rates && !self.lease_touched {
            self.broken(ONE, format!("{count} replicas"));
        }
    }

    /// 2: as a process sends the acceptance of a command for the first time, the command is authentic and in
    /// its window by the process's clock, and the link is not offline.
    pub(crate) fn accepting(
        &mut self,
        replica: &Replica,
        process: u64,
        next: &Arc<Stored>,
        manager: &Manager,
        since: Option<Duration>,
    ) {
        let offline_after = self.offline_after();
        let known = self.known.entry(process).or_default();
        let mut broken = None;
        let was = |nonce: &str| known.view.as_ref().is_some_and(|view| view.commands.contains_key(nonce));
        let new: Vec<(&String, &Entry)> =
            next.commands.iter().filter(|(nonce, entry)| entry.envelope.is_some() && !was(nonce)).collect();
        for (nonce, entry) in new {
            if !known.accepting.insert(nonce.clone()) {
                continue;
            }
            let issued = manager.command(&entry.id).filter(|command| command.nonce == *nonce);
            let envelope = entry.envelope.clone().unwrap_or_default();
            let Some(issued) = issued.filter(|issued| {
                serde_json::from_str::<Value>(&issued.envelope).is_ok_and(|issued| issued == envelope)
            }) else {
                broken = Some(format!("{nonce}: the manager never signed this"));
                continue;
            };
            let payload = &envelope["payload"];
            let time = |member: &str| payload[member].as_str().and_then(parse_time);
            let wall = replica.life.host.wall();
            if payload["target"]["id"] != CLUSTER
                || time("not_before") > Some(wall)
                || time("not_after") < Some(wall)
            {
                broken = Some(format!("#{}: not in its window at {wall}", issued.sequence));
            }
            let now = replica.life.monotonic();
            let lately =
                |moment: Option<Duration>| moment.is_some_and(|m| now.saturating_sub(m) < offline_after);
            if issued.name.is_some() && !lately(known.answered) && !lately(since) {
                broken = Some(format!("#{}: while offline", issued.sequence));
            }
        }
        if let Some(what) = broken {
            self.broken(ALLOWED, what);
        }
    }

    /// 1 and 3: a receipt that says that it is recorded leaves only when it is.
    pub(crate) fn receipt_leaves(&mut self, body: &[u8]) {
        let receipt: Value = serde_json::from_slice(body).unwrap_or_default();
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

    pub(crate) fn lease_changed(&mut self, effect: &Effect, stats: &mut Stats) {
        let Some(lease) = &effect.after else { return };
        let text = |pointer: &str| lease.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        let transitions = lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0);
        let key = (text("/spec/holderIdentity"), transitions, text("/metadata/uid"));
        if key.0.is_empty() || self.tenures.last() == Some(&key) {
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
        self.state_tenure = sender.tenure;
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
                let story = self.story(&entry.id, manager);
                story.outcome = Some(receipt.clone());
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
        let did = story.writes + story.deletes;
        let status = receipt["status"].as_str().unwrap_or("");
        let lie = match (status, story.operation.as_str()) {
            ("succeeded", "managedcomponent.apply") => story.writes == 0,
            ("succeeded", "managedcomponent.delete") => !story.gone,
            ("succeeded", _) => false,
            _ => did > 0 && !story.by_hand,
        };
        if lie {
            let what = format!(
                "#{} {} is {receipt}; writes={} deletes={}",
                story.sequence, story.operation, story.writes, story.deletes
            );
            self.broken(STATUS, what);
        }
    }

    pub(crate) fn component_changed(
        &mut self,
        effect: &Effect,
        sender: Option<&Sender>,
        manager: &Manager,
        stats: &mut Stats,
    ) {
        let name = effect.name.clone();
        let gone = effect
            .after
            .as_ref()
            .is_none_or(|object| object.pointer("/metadata/deletionTimestamp").is_some());
        let moved = spec(&effect.before) != spec(&effect.after) || gone;
        if gone {
            self.stands.remove(&name);
        } else {
            self.stands.insert(name.clone());
        }
        for story in self.stories.values_mut().filter(|s| s.name.as_ref() == Some(&name) && s.accepted) {
            story.gone |= gone;
            story.by_hand |= sender.is_none() && moved && story.outcome.is_none();
        }
        let Some(sender) = sender else {
            if effect.before.is_none() {
                self.foreign.insert(name);
            }
            return;
        };
        self.fenced(effect, sender, manager);
        match (sender.act, &sender.under) {
            (Act::Sweep, _) => self.sweeps(effect, sender, stats),
            (_, None) => self.broken(NAMED, name),
            (act, Some(under)) => self.acts(effect, under, act, gone, manager),
        }
    }

    /// 4: what a command or a repair writes is what was signed.
    fn acts(&mut self, effect: &Effect, under: &str, act: Act, gone: bool, manager: &Manager) {
        let name = &effect.name;
        let settled =
            |object: &Option<Value>| object.as_ref().and_then(|object| object.pointer(SETTLED).cloned());
        let changed = effect.before.is_some() && effect.after.is_some();
        let settles = changed && settled(&effect.before) != settled(&effect.after);
        let wanted = manager.command(under).and_then(|command| command.spec.clone());
        let schema = self.schema;
        let story = self.story(under, manager);
        if act == Act::Command {
            if gone {
                story.deletes += 1;
            } else if !settles {
                story.writes += 1;
            }
        }
        let sequence = story.sequence;
        if !gone {
            let found = spec(&effect.after);
            let expected =
                if settles { spec(&effect.before) } else { wanted.map(|spec| shaped(spec, schema)) };
            if found != expected {
                self.broken(SPEC, format!("{name}: #{sequence} wrote {found:?}, not {expected:?}"));
            }
        }
        if !settles {
            self.foreign.remove(name);
        }
    }

    /// Only a create of ours that landed late is removed without a command.
    fn sweeps(&mut self, effect: &Effect, sender: &Sender, stats: &mut Stats) {
        let created = effect.before.as_ref().and_then(created_of);
        if created.is_none_or(|created| created > sender.mark) {
            self.broken(NAMED, format!("{}: deleted as a late create, created={created:?}", effect.name));
        }
        stats.late_creates += 1;
    }

    /// 5, second half: and the same for a newer command of the name. A create has no precondition: a late one
    /// is removed again.
    fn fenced(&mut self, effect: &Effect, sender: &Sender, manager: &Manager) {
        let name = &effect.name;
        let last = self.component_tenure.entry(name.clone()).or_default();
        let former = sender.tenure < *last;
        *last = (*last).max(sender.tenure);
        if effect.before.is_none() {
            return;
        }
        if former {
            self.broken(FENCED, format!("{name}: {:?} of tenure {}", sender.act, sender.tenure));
        }
        let Some(under) = sender.under.as_deref().filter(|_| !self.state_lost) else { return };
        let story = self.story(under, manager).clone();
        if let Some(outcome) = story.outcome.as_ref().filter(|_| sender.act == Act::Command) {
            let what =
                format!("{name}: #{} changes it after its outcome {}", story.sequence, outcome["status"]);
            self.broken(STATUS, what);
        }
        let newer = self.stories.values().find(|other| {
            other.name.as_ref() == Some(name) && other.sequence > story.sequence && other.succeeded()
        });
        if let Some(newer) = newer {
            let what = format!("{name}: #{} changes it after #{} succeeded", story.sequence, newer.sequence);
            self.broken(SPEC, what);
        }
    }

    /// What is still missing to a settled world.
    #[must_use]
    pub fn missing(&self, leaders: usize, now: u64, api: &Api, manager: &Manager) -> Option<String> {
        if leaders != 1 {
            return Some(format!("{leaders} leaders"));
        }
        let Some(stored) = &self.stored else {
            // A leader that has nothing to write does not miss it.
            return (!self.state_lost).then(|| "there is no state".to_owned());
        };
        if let Some(entry) = stored.commands.values().find(|entry| entry.envelope.is_some()) {
            return Some(format!("{} is accepted and not done", entry.id));
        }
        if let Some(entry) = stored.commands.values().find(|entry| !entry.acknowledged) {
            return Some(format!("the receipt of {} is not acknowledged", entry.id));
        }
        let waits = manager
            .commands
            .iter()
            .find(|command| !command.recorded() && now.cast_signed() <= command.window.1);
        if let Some(command) = waits {
            return Some(format!("#{} has no status at the manager", command.sequence));
        }
        if self.state_lost {
            return None;
        }
        let names: BTreeSet<&str> =
            manager.commands.iter().filter_map(|command| command.name.as_deref()).collect();
        names.into_iter().find_map(|name| self.unwanted(name, api, manager))
    }

    /// 3 and 4, at the end.
    pub fn finally(&mut self, manager: &Manager) {
        if self.state_lost {
            return;
        }
        for command in &manager.commands {
            let recorded = self.stories.get(&command.id).and_then(|story| story.outcome.clone());
            let shown = command.shown.clone().filter(|_| command.recorded());
            if recorded != shown {
                let what = format!("#{}: recorded {recorded:?}, at the manager {shown:?}", command.sequence);
                self.broken(STATUS, what);
            }
        }
    }

    /// 4: how a component differs from what the highest sequence that succeeded says. What was made anew by
    /// hand where nothing is wanted is left alone.
    fn unwanted(&self, name: &str, api: &Api, manager: &Manager) -> Option<String> {
        let succeeded = manager.commands.iter().rev().find(|command| {
            command.name.as_deref() == Some(name)
                && self.stories.get(&command.id).is_some_and(Story::succeeded)
        });
        let wanted = succeeded.and_then(|command| command.spec.clone()).map(|spec| shaped(spec, self.schema));
        let found = api.object(Kind::Component, name).cloned();
        if spec(&found) == wanted || (wanted.is_none() && self.foreign.contains(name)) {
            return None;
        }
        Some(format!("{name} is {:?}, wanted is {wanted:?}", spec(&found)))
    }
}

fn spec(object: &Option<Value>) -> Option<Value> {
    object.as_ref().map(|object| object["spec"].clone())
}

fn created_of(object: &Value) -> Option<u64> {
    object.pointer("/metadata/annotations/platform.navin.ai~1created")?.as_str()?.parse().ok()
}

/// A spec as the cluster makes it.
fn shaped(mut spec: Value, schema: crate::api::Schema) -> Value {
    if schema.default && spec.get("replicas").is_none() {
        spec["replicas"] = Value::from(1);
    }
    if schema.admission {
        spec["admitted"] = Value::from(true);
    }
    spec
}
