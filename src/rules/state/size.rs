//! How large the state is, and what still fits. CONTRACT section 6, "size".
//!
//! Each record and component knows its own length, so that a question about the whole costs a sum
//! and not a serialisation.

use super::outcome::accepted_bytes;
use super::{Asks, Component, Phase, Record, State};
use crate::rules::envelope::Verified;
use crate::rules::json::{MAX_SIGNED_WEIGHT, length, parse, weight_of_members};
use crate::rules::messages::{Command, Operation, Source};
use crate::rules::names::ComponentName;
use std::collections::BTreeMap;
use std::iter::once;

/// Largest desired state, in bytes: 600 KiB.
pub const DESIRED_LIMIT: usize = 600 * 1024;

/// Largest state with which an apply is accepted, in bytes: 900 KiB.
pub const APPLY_LIMIT: usize = 900 * 1024;

/// Largest state with which anything is accepted or a refusal is recorded, in bytes: 980 KiB.
pub const OTHER_LIMIT: usize = 980 * 1024;

/// Largest value of a `ConfigMap` that the API server takes, in bytes: 1 MiB.
pub const STATE_LIMIT: usize = 1024 * 1024;

/// What the arguments of all that is under way may weigh with those of another apply, in units of 32 bytes: 16 MiB. They
/// are held as values, which may take many times their text.
const UNDER_WAY_WEIGHT: usize = 2 * MAX_SIGNED_WEIGHT;

/// Kept free for each command under way, in bytes: its receipt, at its longest, and a mark. So the
/// outcome of what was accepted can always be written.
const OUTCOME_RESERVE: usize = 4 * 1024;

impl State {
    /// The length of [`State::to_json`], or up to two bytes more.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let shell = Self {
            holder: self.holder.clone(),
            commands: BTreeMap::new(),
            components: BTreeMap::new(),
            ..*self
        };
        let records = self.commands.iter().map(|(nonce, record)| entry(nonce.as_str(), record.bytes));
        let components =
            self.components.iter().map(|(name, component)| entry(name.as_str(), component.bytes));
        records.chain(components).fold(length(&shell), usize::saturating_add)
    }

    /// The length of the desired state alone.
    #[must_use]
    pub fn desired_bytes(&self) -> usize {
        self.components.keys().map(|name| self.desired_bytes_of(name)).fold(0, usize::saturating_add)
    }

    /// Whether a command, which asks for `operation`, can be recorded as accepted.
    #[must_use]
    pub fn fits(&self, command: &Verified<Command>, operation: &Operation) -> bool {
        let limit = if operation.brings_spec() { APPLY_LIMIT } else { OTHER_LIMIT };
        let record = accepted_bytes(command, Source::Gateway);
        let light = || self.weight_with(weight_of_members(&command.value().arguments)) <= UNDER_WAY_WEIGHT;
        let room = self.has_room(entry(command.value().nonce.as_str(), record), limit, 1);
        room && (!operation.brings_spec() || light())
    }

    /// Whether a refusal can be recorded.
    #[must_use]
    pub fn fits_refusal(&self) -> bool {
        self.has_room(OUTCOME_RESERVE, OTHER_LIMIT, 0)
    }

    /// Whether it stays under `limit` with `added` bytes, and can be written when all that is accepted, and this
    /// many `more`, have ended.
    fn has_room(&self, added: usize, limit: usize, more: usize) -> bool {
        let bytes = self.bytes().saturating_add(added);
        let under_way = self.accepted().count().saturating_add(more);
        bytes < limit && bytes.saturating_add(under_way.saturating_mul(OUTCOME_RESERVE)) < STATE_LIMIT
    }

    /// Whether no apply can be recorded, however small.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes() >= APPLY_LIMIT
    }

    /// Whether an apply would take the desired state above its limit, when it and all that is under
    /// way have succeeded.
    #[must_use]
    pub fn too_large(&self, command: &Verified<Command>, operation: &Operation) -> bool {
        if !operation.brings_spec() {
            return false;
        }
        let new = (operation.name(), accepted_bytes(command, Source::Gateway));
        let accepted = self.commands.values().filter(|record| record.asks.brings_spec);
        let accepted = accepted.map(|record| (record.asks.name.as_ref(), record.bytes));
        let bytes = once(new).chain(accepted).fold(self.desired_bytes(), |bytes, (name, added)| {
            let replaced = name.map_or(0, |name| self.desired_bytes_of(name));
            bytes.saturating_add(added).saturating_sub(replaced)
        });
        bytes > DESIRED_LIMIT
    }

    /// Whether what is under way leaves no room for another of the heaviest specs, though the state may be small.
    #[must_use]
    pub fn is_heavy(&self) -> bool {
        self.weight_with(MAX_SIGNED_WEIGHT) > UNDER_WAY_WEIGHT
    }

    /// What the arguments of all that is under way weigh, with those of another command.
    fn weight_with(&self, another: usize) -> usize {
        self.commands.values().map(|record| record.asks.weight).fold(another, usize::saturating_add)
    }

    /// Measures what was read.
    pub(super) fn measure_all(&mut self) {
        for record in self.commands.values_mut() {
            record.measure();
            record.asks = command_of(&record.phase).as_ref().map(Asks::of).unwrap_or_default();
        }
        self.components.values_mut().for_each(Component::measure);
    }

    fn desired_bytes_of(&self, name: &ComponentName) -> usize {
        match self.components.get(name) {
            Some(component) if component.desired.is_some() => entry(name.as_str(), component.bytes),
            Some(_) | None => 0,
        }
    }
}

impl Record {
    pub(super) fn measure(&mut self) {
        self.bytes = length(self);
    }
}

impl Asks {
    pub(super) fn of(command: &Command) -> Self {
        let operation = Operation::of(command).ok();
        Self {
            name: operation.as_ref().and_then(Operation::name).cloned(),
            brings_spec: operation.as_ref().is_some_and(Operation::brings_spec),
            may_create: operation.as_ref().is_some_and(Operation::may_create),
            weight: weight_of_members(&command.arguments),
        }
    }
}

impl Component {
    pub(super) fn measure(&mut self) {
        self.bytes = length(self);
    }
}

/// What is accepted, verified or not.
fn command_of(phase: &Phase) -> Option<Command> {
    let Phase::Accepted { envelope } = phase else { return None };
    let envelope = parse(envelope.text().as_bytes(), STATE_LIMIT).ok()?;
    Command::from_payload(envelope.get("payload")?, None).ok()
}

/// A member of an object: its name in quotes, a colon, its value, a comma.
fn entry(name: &str, bytes: usize) -> usize {
    name.len().saturating_add(4).saturating_add(bytes)
}
