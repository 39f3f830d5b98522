//! May this command run? CONTRACT section 2, "order of checks": the first that fails is the answer.
//!
//! [`judge`] reads as the contract's line does. What is not authentic, expired or not yet valid
//! leaves no trace in the state; every other refusal is the one outcome of its nonce.

use super::config::Configuration;
use super::envelope::{KeyRing, Verified, open_command, reopen_command};
use super::json::derived::Raw;
use super::link::Link;
use super::messages::{Command, Operation, Reason, Receipt, Refusal};
use super::names::Nonce;
use super::state::{DESIRED_LIMIT, Phase, Record, State};
use jiff::Timestamp;

#[cfg(test)]
mod tests;

/// What commands are judged by: the manager's keys, and who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// The manager's keys.
    pub ring: KeyRing,
    /// Who we are.
    pub config: Configuration,
}

/// What is to be done with a command that was delivered.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Verdict {
    /// Record it as accepted, then do it.
    Run(Box<Accepted>),
    /// Answer it; record the answer where [`Refused::record`] is there.
    Refuse(Box<Refused>),
    /// It is being executed, under this nonce: drop this delivery without an answer.
    UnderWay(Nonce),
    /// Nothing for now: look at it again later.
    Later(Why),
}

/// Why a command is neither run nor refused yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Another command of its name is accepted.
    NameBusy,
    /// It is sensitive, and the link is not known yet.
    Connecting,
    /// There is no room in the state: it is left where it is.
    Full,
}

/// A command that may run, with the proof of its signature. Made here alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    command: Verified<Command>,
    operation: Operation,
}

impl Accepted {
    /// The command.
    #[must_use]
    pub fn command(&self) -> &Verified<Command> {
        &self.command
    }

    /// The command without its arguments, and what it asks for: so the spec is held once.
    #[must_use]
    pub fn into_parts(mut self) -> (Verified<Command>, Operation) {
        self.command.forget_arguments();
        (self.command, self.operation)
    }
}

/// A command that may not.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// The command, where it is authentic and in its window: the refusal is its recorded outcome.
    pub record: Option<Verified<Command>>,
    /// The recorded receipt, with `nonce_replayed`.
    pub original: Option<Receipt>,
}

/// Judges a command as it came over the wire. CONTRACT section 2.
pub fn judge(bytes: &[u8], trust: &Trust, state: &State, link: Link, now: Timestamp) -> Verdict {
    let command = match open_command(bytes, &trust.ring, trust.config.max_validity_s)
        .and_then(|command| addressed(command, &trust.config))
    {
        Ok(command) => command,
        Err(refusal) => return untraced(refusal, None),
    };
    if let Some(record) = state.record(&command.value().nonce) {
        return replayed(command.value(), record);
    }
    if let Err(refusal) = in_window(command.value(), state, now) {
        return untraced(refusal, None);
    }
    match allowed(command.value(), state, link) {
        Ok(operation) => admit(command, operation, state, link),
        Err(refusal) => recorded(refusal, command, state),
    }
}

/// Verifies an envelope that was taken from the state, before it is used, and that it is what stands there:
/// `is_its` says whether the command is that of the record. Its window and the link were judged at acceptance.
/// CONTRACT section 6.
///
/// # Errors
/// The first check that failed.
pub fn reverify(
    envelope: &Raw,
    trust: &Trust,
    is_its: impl FnOnce(&Command) -> bool,
) -> Result<Accepted, Refusal> {
    let command = addressed(reopen_command(envelope, &trust.ring)?, &trust.config)?;
    if !is_its(command.value()) {
        let message = "payload: of another command than its record";
        return Err(Refusal::of(command.value(), Reason::InvalidEnvelope, message));
    }
    let operation = Operation::of(command.value())?;
    Ok(Accepted { command, operation })
}

/// `wrong_tenant`, `wrong_target`.
fn addressed(command: Verified<Command>, config: &Configuration) -> Result<Verified<Command>, Refusal> {
    let value = command.value();
    if value.tenant_id != config.tenant_id {
        let (expected, found) = (config.tenant_id.as_str(), value.tenant_id.as_str());
        let message = format!("payload.tenant_id: expected {expected:?}, found {found:?}");
        return Err(Refusal::of(value, Reason::WrongTenant, &message));
    }
    if value.target != config.cluster_id {
        let (expected, found) = (config.cluster_id.as_str(), value.target.as_str());
        let message = format!("payload.target.id: expected {expected:?}, found {found:?}");
        return Err(Refusal::of(value, Reason::WrongTarget, &message));
    }
    Ok(command)
}

/// `nonce_replayed`.
fn replayed(command: &Command, record: &Record) -> Verdict {
    match &record.phase {
        Phase::Accepted { .. } => Verdict::UnderWay(command.nonce.clone()),
        Phase::Done { receipt, .. } => {
            let message = "payload.nonce: has its outcome already";
            let refusal = Refusal::of(command, Reason::NonceReplayed, message);
            untraced(refusal, Some((**receipt).clone()))
        }
    }
}

/// `expired`, `not_yet_valid`. What is not later than `floor` may have had a record that is gone.
fn in_window(command: &Command, state: &State, now: Timestamp) -> Result<(), Refusal> {
    if state.floor.is_some_and(|floor| command.not_after <= floor) {
        let message = "payload.not_after: not later than that of records which were dropped";
        return Err(Refusal::of(command, Reason::Expired, message));
    }
    if now > command.not_after {
        let message = format!("payload.not_after: expected not before {now}, found {}", command.not_after);
        return Err(Refusal::of(command, Reason::Expired, &message));
    }
    if now < command.not_before {
        let message = format!("payload.not_before: expected not after {now}, found {}", command.not_before);
        return Err(Refusal::of(command, Reason::NotYetValid, &message));
    }
    Ok(())
}

/// `unknown_operation`, `invalid_arguments`, `superseded`, `state_lost`, `manager_unreachable`.
fn allowed(command: &Command, state: &State, link: Link) -> Result<Operation, Refusal> {
    let operation = Operation::of(command)?;
    let component = operation.name().and_then(|name| state.component(name));
    let succeeded = component.map_or(0, |component| component.succeeded);
    if command.sequence.get() <= succeeded {
        let message = format!("payload.sequence: not higher than {succeeded}, which succeeded");
        return Err(Refusal::of(command, Reason::Superseded, &message));
    }
    if !operation.sensitive() {
        return Ok(operation);
    }
    if state.lost_at.is_some_and(|lost_at| command.not_before <= lost_at) {
        let message = "payload.not_before: not later than when the state was lost; issue it anew";
        return Err(Refusal::of(command, Reason::StateLost, message));
    }
    match link {
        Link::Connecting | Link::Online => Ok(operation),
        Link::Offline => {
            let message = "a sensitive operation while the manager is out of reach";
            Err(Refusal::of(command, Reason::ManagerUnreachable, message))
        }
    }
}

/// What may run may still have to wait, or be `too_large`.
fn admit(command: Verified<Command>, operation: Operation, state: &State, link: Link) -> Verdict {
    if link == Link::Connecting && operation.sensitive() {
        return Verdict::Later(Why::Connecting);
    }
    if operation.name().is_some_and(|name| state.busy(name).is_some()) {
        return Verdict::Later(Why::NameBusy);
    }
    if state.too_large(&command, &operation) {
        let message = format!("the desired state would exceed {} KiB", DESIRED_LIMIT.div_euclid(1024));
        let refusal = Refusal::of(command.value(), Reason::TooLarge, &message);
        return recorded(refusal, command, state);
    }
    if state.fits(&command, &operation) {
        Verdict::Run(Box::new(Accepted { command, operation }))
    } else {
        Verdict::Later(Why::Full)
    }
}

/// Refuses what could not be read at all, and why.
pub fn unreadable(why: &str) -> Verdict {
    untraced(Refusal { reason: Reason::InvalidEnvelope, message: why.to_owned(), ids: None }, None)
}

/// A refusal that leaves no trace in the state.
fn untraced(refusal: Refusal, original: Option<Receipt>) -> Verdict {
    Verdict::Refuse(Box::new(Refused { refusal, record: None, original }))
}

/// A refusal that is the outcome of its nonce; given only where it can be recorded.
fn recorded(refusal: Refusal, command: Verified<Command>, state: &State) -> Verdict {
    if state.fits_refusal() {
        Verdict::Refuse(Box::new(Refused { refusal, record: Some(command), original: None }))
    } else {
        Verdict::Later(Why::Full)
    }
}
