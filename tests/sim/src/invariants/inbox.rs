//! What must hold of the files of the inbox and their answers, CONTRACT section 7.

use super::LINKED;
use super::link::Link;
use crate::checker::Checker;
use crate::faults::SECOND;
use crate::folder::{Answered, Pile, What};
use crate::manager::Manager;
use crate::sample::Sample;
use serde_json::Value;

const ONCE: &str = "inbox: a file is answered once, and its answer never changes";
const BESIDE: &str = "inbox: an answer stands beside the content that was judged";
const SETTLED: &str =
    "inbox: a file is read when it has not changed for a second, one that is cut off for ten";
const RIGHT: &str = "inbox: the answer is right for what the file holds";
const SILENT: &str = "inbox: the manager is told nothing of what is not authentic";
const PROMPT: &str = "inbox: a leader that nothing is in the way of answers each file that stays";

/// The reasons of what is not authentic.
const NOT_AUTHENTIC: [&str; 5] =
    ["invalid_envelope", "unknown_key", "invalid_signature", "wrong_tenant", "wrong_target"];
/// How long a file may wait that can be answered at once, in microseconds: a scan, the settling, slow clocks.
const AT_ONCE: u64 = 150 * SECOND;
/// How long a command may wait when its window is over: for another of its name, and for itself.
const AFTER_WINDOW: u64 = 400 * SECOND;

impl Checker {
    /// A file was answered.
    pub(crate) fn file_answered(&mut self, now: u64, pile: &Pile, answered: &Answered, manager: &Manager) {
        let Answered { file, bytes, began, again } = answered;
        if *again {
            self.broken(ONCE, file.clone());
        }
        let receipt: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let Some(held) = pile.held(file) else {
            if pile.removed(file).is_none_or(|removed| removed < *began) {
                self.broken(BESIDE, format!("{file} was gone"));
            }
            return;
        };
        // Changed while it was written: nobody can prevent that.
        let Some(what) = held.what.filter(|_| held.changed <= *began) else { return };
        let rested = now.saturating_sub(held.changed);
        let second = if self.equal_rates { SECOND } else { SECOND * 7 / 10 };
        let least = if matches!(what, What::Half(_)) { 10 * second } else { second };
        if rested < least {
            self.broken(SETTLED, format!("{file} ({what:?}) after {rested} us"));
        }
        if let Some(why) = self.wrong(what, &receipt, manager) {
            self.broken(RIGHT, format!("{file} ({what:?}): {why}: {receipt}"));
        }
    }

    /// Why an answer is wrong.
    fn wrong(&self, what: What, receipt: &Value, manager: &Manager) -> Option<String> {
        let reason = receipt["reason"].as_str().unwrap_or("");
        let expected = match what {
            What::Signed(index) => return self.wrong_of_signed(index, receipt, manager),
            What::Half(_) | What::Garbage | What::Oversized | What::Link => "invalid_envelope",
            What::Forged(_, 0) => "unknown_key",
            What::Forged(_, 1) => "wrong_tenant",
            What::Forged(_, 2) => "wrong_target",
            What::Forged(..) => "invalid_signature",
        };
        let refused = receipt["status"] == "refused" && receipt["recorded"] == false;
        (reason != expected || !refused || receipt["source"] != "inbox").then(|| format!("not {expected}"))
    }

    fn wrong_of_signed(&self, index: usize, receipt: &Value, manager: &Manager) -> Option<String> {
        let command = manager.commands.get(index)?;
        if receipt["command_id"] != command.id.as_str() || receipt["nonce"] != command.nonce.as_str() {
            return Some(format!("not of #{}", command.sequence));
        }
        if self.state_lost {
            return None;
        }
        let outcome = self.stories.get(&command.id).and_then(|story| story.outcome.as_ref());
        let mut said =
            if receipt["recorded"] == true { receipt.clone() } else { receipt["original"].clone() };
        if let Some(result) = said.get_mut("result").and_then(Value::as_object_mut) {
            result.remove("inventory");
        }
        match receipt["reason"].as_str().unwrap_or("") {
            "expired" | "not_yet_valid" if receipt["recorded"] == false => None,
            "nonce_replayed" if receipt["recorded"] == true => Some("a replay is not recorded".to_owned()),
            _ => (outcome != Some(&said)).then(|| format!("recorded is {outcome:?}")),
        }
    }

    /// A receipt leaves for the manager.
    pub(crate) fn speaks_for(&mut self, receipt: &Value, manager: &Manager) {
        if receipt["source"] != "inbox" {
            return;
        }
        let reason = receipt["reason"].as_str().unwrap_or("");
        let command = receipt["command_id"].as_str().and_then(|id| manager.command(id));
        let known = command.is_some_and(|command| receipt["nonce"] == command.nonce.as_str());
        if NOT_AUTHENTIC.contains(&reason) || !known {
            self.broken(SILENT, receipt.to_string());
        }
    }

    pub(crate) fn files_sampled(
        &mut self,
        sample: &Sample,
        waiting: &[(String, What, u64)],
        manager: &Manager,
    ) {
        for (file, what, changed) in waiting {
            let (from, limit) = self.bound(*what, sample, manager);
            let waited = sample.now.saturating_sub(from.max(*changed)).min(sample.calm);
            if waited > limit {
                self.broken(PROMPT, format!("{file} ({what:?}) waits for {} s", waited / SECOND));
            }
        }
    }

    /// Since when a file can be answered, and how long that may take.
    fn bound(&self, what: What, sample: &Sample, manager: &Manager) -> (u64, u64) {
        let What::Signed(index) = what else { return (0, AT_ONCE) };
        let Some(command) = manager.commands.get(index) else { return (0, AT_ONCE) };
        let known = self.known.get(&sample.process);
        let link = known.map(|known| known.link(sample.since, sample.monotonic, self.offline_after()));
        let busy =
            |name: &String| self.stored.as_ref().is_some_and(|stored| stored.accepted(name).next().is_some());
        match (&command.name, link) {
            (Some(name), Some(Link::Offline(long))) if !busy(name) => {
                let long = u64::try_from(long.as_micros()).unwrap_or(0) * 7 / 10;
                (sample.now.saturating_sub(long), AT_ONCE)
            }
            _ => (u64::try_from(command.window.1).unwrap_or(0), AFTER_WINDOW),
        }
    }

    /// Something that nobody delivers any more is begun.
    pub(crate) fn begun_although_taken_back(&mut self, nonce: &str) {
        self.broken("inbox: no command is begun whose file was taken back", nonce.to_owned());
    }

    /// A recorded refusal `manager_unreachable` leaves for the state.
    pub(crate) fn refused_as_unreachable(&mut self, link: Option<Link>, nonce: &str) {
        if !matches!(link, Some(Link::Offline(_))) {
            self.broken(LINKED, format!("{nonce}: manager_unreachable while {link:?}"));
        }
    }
}
