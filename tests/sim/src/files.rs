//! What people put into the inbox, and when.

use crate::chance::{keyed, mix};
use crate::faults::SECOND;
use crate::folder::{What, oversized};
use crate::replica::INBOX;
use crate::workload::{Item, name, spec};
use crate::world::World;
use fastrand::Rng;
use serde_json::Value;

/// What a person writes into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// The envelope that was signed for it.
    Signed,
    /// The first half of it.
    Half,
    /// One made up of it, as in [`crate::manager::Manager::forged`].
    Forged(u8),
    /// The envelope of the manager's command with this index.
    Copy(usize),
    /// Not JSON.
    Garbage,
    /// More than 256 KiB.
    Oversized,
    /// A link.
    Link,
}

/// One thing that happens in the folders.
#[derive(Clone, Debug, PartialEq)]
pub enum Paper {
    /// The manager signs a command for a file: operation, component, spec, window in seconds; and whether the
    /// gateway delivers it too.
    Sign(&'static str, Option<String>, Option<Value>, i64, bool),
    /// A person writes the file: in place, or by renaming another to it.
    Put(Text, bool),
    /// A person takes it away again.
    TakeAway,
}

/// The replica whose folder is meant, or all.
pub type Target = Option<usize>;

/// The papers of a seed until `end`, each with its number and time.
#[must_use]
pub fn plan(seed: u64, replicas: usize, end: u64) -> Vec<(u64, u64, Item)> {
    let mut rng = keyed(seed, 0x1_0007);
    let count = if rng.bool() { rng.usize(0..12) } else { 0 };
    let mut plan = Vec::new();
    for index in 0..count {
        let file = format!("{index}.json");
        let target = (rng.u32(0..3) != 0).then(|| rng.usize(0..replicas));
        let at = rng.u64(0..end);
        for (later, paper) in papers(&mut rng, index) {
            plan.push((at + later, Item::Inbox(target, file.clone(), paper)));
        }
    }
    plan.into_iter().enumerate().map(|(index, (at, item))| (mix(0x8_0000, index as u64), at, item)).collect()
}

/// The life of one file.
fn papers(rng: &mut Rng, index: usize) -> Vec<(u64, Paper)> {
    let component = Some(name(rng.usize(0..3)));
    let valid = [5, 60, 300, 900][rng.usize(0..4)];
    let offered = rng.bool();
    let sign = match rng.u32(0..10) {
        0..5 => {
            Paper::Sign("managedcomponent.apply", component, Some(spec(rng, index + 100, 0)), valid, offered)
        }
        5..8 => Paper::Sign("managedcomponent.delete", component, None, valid, offered),
        _ => Paper::Sign("inventory.report", None, None, valid, offered),
    };
    let mut papers = vec![(0, sign)];
    // The file may be late: by then another may have been approved, or the window be over.
    let most = [1, 5, 30][rng.usize(0..3)];
    let mut at = rng.u64(1..most * SECOND);
    let text = match rng.u32(0..20) {
        0..11 => Text::Signed,
        11..14 => Text::Half,
        14..16 => Text::Forged(rng.u8(0..4)),
        16 => Text::Copy(rng.usize(0..20)),
        17 => Text::Garbage,
        18 => Text::Oversized,
        _ => Text::Link,
    };
    papers.push((at, Paper::Put(text, false)));
    let later = |rng: &mut Rng| {
        let most = [1, 3, 20, 60][rng.usize(0..4)];
        rng.u64(SECOND / 20..most * SECOND)
    };
    if text == Text::Half && rng.u32(0..4) != 0 {
        at += later(rng);
        papers.push((at, Paper::Put(Text::Signed, true)));
    } else if rng.u32(0..5) == 0 {
        at += later(rng);
        let text = if text == Text::Signed { Text::Forged(rng.u8(0..4)) } else { Text::Signed };
        papers.push((at, Paper::Put(text, rng.bool())));
    }
    if rng.u32(0..5) == 0 {
        papers.push((at + later(rng), Paper::TakeAway));
    }
    papers
}

impl World {
    pub(crate) fn paper(&mut self, target: Target, file: &str, paper: &Paper) {
        let now = self.now.get();
        match paper {
            Paper::Sign(operation, name, spec, valid, offered) => {
                self.filed.insert(file.to_owned(), self.manager.commands.len());
                self.manager.approve(now, operation, name.as_deref(), spec.as_ref(), *valid);
                if let Some(command) = self.manager.commands.last_mut() {
                    command.offered = *offered;
                }
            }
            Paper::Put(text, in_place) => self.put(target, file, *text, *in_place),
            Paper::TakeAway => {
                for slot in self.meant(target) {
                    let held = self.slots[slot].pile.held(file).and_then(|held| held.what);
                    if self.slots[slot].pile.take_away(file)
                        && let Some(What::Signed(index)) = held
                    {
                        self.taken_back(index);
                    }
                }
            }
        }
        for slot in self.meant(target) {
            self.hinted_now(slot);
        }
    }

    fn meant(&self, target: Target) -> Vec<usize> {
        target.map_or_else(|| (0..self.slots.len()).collect(), |slot| vec![slot])
    }

    fn put(&mut self, target: Target, file: &str, text: Text, in_place: bool) {
        let signed = self.filed.get(file).copied();
        let envelope = |world: &Self, index: usize| {
            world.manager.commands.get(index).map(|command| command.envelope.clone().into_bytes())
        };
        let (what, bytes) = match (text, signed) {
            (Text::Garbage, _) => (What::Garbage, Some(b"{ what? }".to_vec())),
            (Text::Oversized, _) => (What::Oversized, Some(oversized())),
            (Text::Link, _) => (What::Link, Some(Vec::new())),
            (Text::Copy(index), _) | (Text::Signed, Some(index)) => {
                (What::Signed(index), envelope(self, index))
            }
            (Text::Half, Some(index)) => {
                let half = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
                (What::Half(index), envelope(self, index).map(half))
            }
            (Text::Forged(kind), Some(index)) => {
                let forged = self.manager.forged(index, kind).map(String::into_bytes);
                (What::Forged(index, kind), forged)
            }
            (Text::Signed | Text::Half | Text::Forged(_), None) => return,
        };
        let Some(bytes) = bytes else { return };
        for slot in self.meant(target) {
            let before = self.slots[slot].pile.held(file).and_then(|held| held.what);
            if !self.slots[slot].pile.put(file, bytes.clone(), what, in_place) {
                continue;
            }
            if let Some(What::Signed(index)) = before {
                self.taken_back(index);
            }
            if let What::Signed(index) = what
                && let Some(command) = self.manager.commands.get_mut(index)
            {
                command.taken_back = None;
            }
        }
    }

    /// A file of this command is gone; where it was the last, and nobody else delivers it, it is taken back.
    fn taken_back(&mut self, index: usize) {
        let holds = |what: &(String, What, u64)| what.1 == What::Signed(index);
        let elsewhere = self.slots.iter().any(|slot| slot.pile.waiting().iter().any(holds));
        let now = self.now.get();
        if let Some(command) = self.manager.commands.get_mut(index)
            && !elsewhere
            && !command.offered
        {
            command.taken_back = Some(now);
        }
    }

    /// As inotify wakes the inbox's thread.
    fn hinted_now(&mut self, slot: usize) {
        let place = &self.slots[slot];
        let waits = place.replica.as_ref().is_some_and(|replica| replica.threads[INBOX].waits.is_some());
        if waits && place.paused_until <= self.now.get() {
            self.resume(slot, INBOX, None);
        }
    }

    /// Shows what was answered in the folders to whoever checks.
    pub(crate) fn answers(&mut self) {
        for slot in 0..self.slots.len() {
            for answered in self.slots[slot].pile.take_answers() {
                let now = self.now.get();
                let pile = std::sync::Arc::clone(&self.slots[slot].pile);
                self.trace.note(now, &[13, slot as u64], &answered.file, || {
                    format!(
                        "r{slot} inbox    answers {} {}",
                        answered.file,
                        crate::speech::receipt(&answered.bytes)
                    )
                });
                *self.stats.files.entry(crate::speech::reason(&answered.bytes)).or_default() += 1;
                self.checker.file_answered(now, &pile, &answered, &self.manager);
            }
        }
    }
}
