//! How the state changes: accepted, refused, finished, acknowledged, forgotten. CONTRACT section 6.

use super::{Asks, Component, Desired, Mark, Phase, Record, State};
use crate::rules::envelope::Verified;
use crate::rules::messages::{Command, Receipt, Source, seconds};
use crate::rules::names::{ComponentName, Nonce};
use jiff::Timestamp;
use std::fmt;

/// What a command's end means for its component. CONTRACT section 6, "an execution".
#[derive(Clone, PartialEq)]
pub enum Effect {
    /// Nothing.
    None,
    /// It succeeded: this is the desired state now.
    Applied(ComponentName, Desired),
    /// It succeeded: the component is no longer desired, and a tombstone stands for it.
    Deleted(ComponentName, Mark),
    /// It failed, and a create of it may still land.
    FailedMarked(ComponentName, Mark),
}

impl Mark {
    /// What `command` leaves behind.
    #[must_use]
    pub fn of(command: &Command, max_validity_s: u64) -> Self {
        Self { sequence: command.sequence.get(), forget_after: command.forget_after(max_validity_s) }
    }

    /// A mark never falls, and never goes sooner.
    fn over(self, before: Option<Self>) -> Self {
        before.map_or(self, |before| Self {
            sequence: self.sequence.max(before.sequence),
            forget_after: self.forget_after.max(before.forget_after),
        })
    }
}

/// Why a record was not made or changed: the first outcome of a nonce stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// The nonce has a record already.
    Known,
    /// The nonce has no record.
    Unknown,
    /// The command has ended already.
    Done,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known => "the nonce is recorded already",
            Self::Unknown => "the nonce is not recorded",
            Self::Done => "the command has its outcome already",
        })
    }
}

impl Record {
    /// What a command may have left behind that is not taken up any more, since it does not verify: a create of its that
    /// lands later, or has landed. Its `not_before` is not trusted, nor recorded: the mark stays as long as any would.
    #[must_use]
    pub fn left_behind(&self, max_validity_s: u64) -> Effect {
        match &self.asks {
            Asks { name: Some(name), may_create: true, .. } => {
                let forget_after =
                    self.not_after.checked_add(seconds(max_validity_s)).unwrap_or(Timestamp::MAX);
                Effect::FailedMarked(name.clone(), Mark { sequence: self.sequence.get(), forget_after })
            }
            Asks { .. } => Effect::None,
        }
    }
}

impl State {
    /// Records a command as accepted.
    ///
    /// # Errors
    /// Its nonce has a record.
    pub fn accept(&mut self, command: &Verified<Command>, source: Source) -> Result<(), RecordError> {
        let phase = Phase::Accepted { envelope: command.envelope().clone() };
        let mut record = record(command.value(), source, phase);
        record.asks = Asks::of(command.value());
        self.insert(command.value(), record)
    }

    /// Records a refusal as the command's outcome.
    ///
    /// # Errors
    /// Its nonce has a record.
    pub fn refuse(&mut self, command: &Command, receipt: Receipt) -> Result<(), RecordError> {
        let source = receipt.source;
        let phase = Phase::Done { receipt: Box::new(receipt), acknowledged: false };
        self.insert(command, record(command, source, phase))
    }

    /// Records the outcome of an accepted command, and in the same write what it means for the
    /// component.
    ///
    /// # Errors
    /// There is no such command, or it has its outcome: nothing is changed.
    pub fn finish(&mut self, nonce: &Nonce, receipt: Receipt, effect: Effect) -> Result<(), RecordError> {
        let record = self.commands.get_mut(nonce).ok_or(RecordError::Unknown)?;
        match record.phase {
            Phase::Accepted { .. } => {}
            Phase::Done { .. } => return Err(RecordError::Done),
        }
        record.phase = Phase::Done { receipt: Box::new(receipt), acknowledged: false };
        record.asks = Asks::default();
        record.measure();
        self.take_effect(effect);
        Ok(())
    }

    /// Notes that the manager has the receipt, or never will take it. False where nothing changed.
    pub fn acknowledge(&mut self, nonce: &Nonce) -> bool {
        let Some(record) = self.commands.get_mut(nonce) else { return false };
        match &mut record.phase {
            Phase::Done { acknowledged, .. } if !*acknowledged => *acknowledged = true,
            Phase::Done { .. } | Phase::Accepted { .. } => return false,
        }
        record.measure();
        true
    }

    /// Forgets what may be forgotten: records whose window is past and whose receipt is
    /// acknowledged, and marks that are past their time. Only with a clock that is trusted. False
    /// where nothing changed.
    pub fn prune(&mut self, now: Timestamp, clock_trusted: bool) -> bool {
        if !clock_trusted {
            return false;
        }
        let before = self.commands.len();
        let mut floor = self.floor;
        self.commands.retain(|_, record| {
            let acknowledged = match record.phase {
                Phase::Done { acknowledged, .. } => acknowledged,
                Phase::Accepted { .. } => false,
            };
            let forget = acknowledged && record.not_after < now;
            if forget {
                floor = floor.max(Some(record.not_after));
            }
            !forget
        });
        self.floor = floor;
        let mut changed = self.commands.len() != before;
        self.components.retain(|_, component| {
            if component.mark.is_some_and(|mark| mark.forget_after < now) {
                component.mark = None;
                component.measure();
                changed = true;
            }
            component.desired.is_some() || component.mark.is_some()
        });
        changed
    }

    fn insert(&mut self, command: &Command, record: Record) -> Result<(), RecordError> {
        if self.commands.contains_key(&command.nonce) {
            return Err(RecordError::Known);
        }
        self.highest_sequence = self.highest_sequence.max(record.sequence.get());
        self.commands.insert(command.nonce.clone(), record);
        Ok(())
    }

    fn take_effect(&mut self, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Applied(name, desired) => self.change(name, |component| {
                component.succeeded = component.succeeded.max(desired.sequence);
                // A mark at or below what is desired can no longer tell anything.
                component.mark = component.mark.filter(|mark| mark.sequence > desired.sequence);
                component.desired = Some(desired);
            }),
            Effect::Deleted(name, mark) => self.change(name, |component| {
                component.succeeded = component.succeeded.max(mark.sequence);
                component.desired = None;
                component.mark = Some(mark.over(component.mark));
            }),
            Effect::FailedMarked(name, mark) => {
                self.change(name, |component| component.mark = Some(mark.over(component.mark)));
            }
        }
    }

    fn change(&mut self, name: ComponentName, change: impl FnOnce(&mut Component)) {
        let unknown = Component { succeeded: 0, desired: None, mark: None, bytes: 0 };
        let component = self.components.entry(name).or_insert(unknown);
        change(component);
        component.measure();
    }
}

/// The length of the record that [`State::accept`] makes, without making it.
pub(super) fn accepted_bytes(command: &Verified<Command>, source: Source) -> usize {
    record(command.value(), source, Phase::Accepted { envelope: command.envelope().clone() }).bytes
}

fn record(command: &Command, source: Source, phase: Phase) -> Record {
    let mut record = Record {
        command_id: command.command_id.clone(),
        sequence: command.sequence,
        not_after: command.not_after,
        source,
        phase,
        bytes: 0,
        asks: Asks::default(),
    };
    record.measure();
    record
}
