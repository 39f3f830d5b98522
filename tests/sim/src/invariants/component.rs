//! What must hold of every change of a component.

use super::{FENCED, NAMED, OTHERS, SPEC, STATUS, created_of, shaped, spec};
use crate::api::Effect;
use crate::checker::Checker;
use crate::history::{Act, Sender};
use crate::manager::Manager;
use crate::stats::Stats;
use serde_json::Value;

/// The label that makes a lost write conflict.
const SETTLED: &str = "/metadata/labels/platform.navin.ai~1settled";

impl Checker {
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
        let moved = spec(effect.before.as_ref()) != spec(effect.after.as_ref()) || gone;
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
            let mark = |object: &Option<Value>| object.as_ref().is_some_and(|o| created_of(o).is_some());
            // Made by hand, or deprived by hand of what says that it is ours.
            if effect.before.is_none() || (mark(&effect.before) && !mark(&effect.after) && !gone) {
                self.foreign.insert(name.clone());
            }
            if moved {
                self.drifted.entry(name).or_insert(self.now);
            }
            return;
        };
        self.drifted.remove(&name);
        self.fenced(effect, sender, manager);
        if let (Some(before), Some(after)) = (&effect.before, &effect.after)
            && of_others(before) != of_others(after)
        {
            self.broken(OTHERS, format!("{name}: {:?} became {:?}", of_others(before), of_others(after)));
        }
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
            } else if effect.before.is_none() {
                story.creates += 1;
            } else if !settles {
                story.replaces += 1;
            }
        }
        let sequence = story.sequence;
        if !gone {
            let found = spec(effect.after.as_ref());
            let expected =
                if settles { spec(effect.before.as_ref()) } else { wanted.map(|spec| shaped(spec, schema)) };
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
}

/// What of an object is not the agent's to change.
fn of_others(object: &Value) -> Vec<Value> {
    let metadata = &object["metadata"];
    let entries = |member: &str| {
        let mut entries = metadata[member].clone();
        if let Some(entries) = entries.as_object_mut() {
            let ours =
                |key: &str| key.contains("platform.navin.ai/") || key == "app.kubernetes.io/managed-by";
            entries.retain(|key, _| !ours(key));
        }
        if entries.as_object().is_some_and(serde_json::Map::is_empty) { Value::Null } else { entries }
    };
    vec![entries("labels"), entries("annotations"), metadata["finalizers"].clone(), object["status"].clone()]
}
