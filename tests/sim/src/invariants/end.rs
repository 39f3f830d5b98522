//! What must hold when all troubles have ended and time enough has passed.

use super::{STATUS, shaped, spec};
use crate::api::{Api, Kind};
use crate::checker::Checker;
use crate::history::Story;
use crate::manager::Manager;
use std::collections::BTreeSet;

impl Checker {
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
            .find(|command| command.offered && !command.recorded() && now.cast_signed() <= command.window.1);
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
    pub(crate) fn unwanted(&self, name: &str, api: &Api, manager: &Manager) -> Option<String> {
        let succeeded = manager.commands.iter().rev().find(|command| {
            command.name.as_deref() == Some(name)
                && self.stories.get(&command.id).is_some_and(Story::succeeded)
        });
        let wanted = succeeded.and_then(|command| command.spec.clone()).map(|spec| shaped(spec, self.schema));
        let found = api.object(Kind::Component, name).cloned();
        if spec(found.as_ref()) == wanted || (wanted.is_none() && self.foreign.contains(name)) {
            return None;
        }
        Some(format!("{name} is {:?}, wanted is {wanted:?}", spec(found.as_ref())))
    }
}
