//! The contract's commands: what one says, what it asks for, why one is refused. CONTRACT section 2.

use super::form::{FormError, Members, expected};
use super::json::MAX_NUMBER;
use super::names::{CommandId, ComponentName, Label, Nonce, Sequence};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use std::fmt;

mod reason;
mod receipt;
#[cfg(test)]
mod tests;

pub use reason::{Reason, Refusal};
pub use receipt::{Receipt, ReceiptType, Source, Stamp, Status};

/// The `type` of a command's payload. CONTRACT section 2.
pub const COMMAND_TYPE: &str = "navin.command/v1";

/// The payload of a command, in the right form. CONTRACT section 2.
#[derive(Clone, PartialEq)]
pub struct Command {
    /// The manager's identifier.
    pub command_id: CommandId,
    /// Whose command it is.
    pub tenant_id: Label,
    /// The identifier of the cluster that it is for.
    pub target: Label,
    /// What to do, as it was sent: [`Operation::of`] says whether we know it.
    pub operation: String,
    /// The arguments of the operation, as they were sent.
    pub arguments: Map<String, Value>,
    /// Used once.
    pub nonce: Nonce,
    /// The place in the order of approval.
    pub sequence: Sequence,
    /// The window's first moment.
    pub not_before: Timestamp,
    /// The window's last moment, included.
    pub not_after: Timestamp,
}

impl Command {
    /// Reads a payload. `max_validity_s` is the longest window; `None` for what was accepted
    /// before, when it may have been another.
    ///
    /// # Errors
    /// What the contract refuses as `invalid_envelope`, named by its member.
    pub fn from_payload(payload: &Value, max_validity_s: Option<u64>) -> Result<Self, FormError> {
        let mut members = Members::of("payload", payload)?;
        members.constant("payload.type", COMMAND_TYPE)?;
        let command = Self {
            command_id: members.parsed("payload.command_id", CommandId::parse, "a UUID")?,
            tenant_id: members.parsed("payload.tenant_id", Label::parse, "an RFC 1123 label")?,
            target: read_target(members.value("payload.target")?)?,
            operation: members.text("payload.operation")?.to_owned(),
            arguments: members
                .value("payload.arguments")?
                .as_object()
                .cloned()
                .ok_or_else(|| expected("payload.arguments", "an object"))?,
            nonce: members.parsed("payload.nonce", Nonce::parse, "22 to 64 characters of A-Z a-z 0-9 _ -")?,
            sequence: Sequence::new(members.number("payload.sequence", None, &(1..=MAX_NUMBER))?)
                .ok_or_else(|| expected("payload.sequence", "1 to 2^53-1"))?,
            not_before: members.time("payload.not_before")?,
            not_after: members.time("payload.not_after")?,
        };
        members.end()?;
        let length = command.not_after.duration_since(command.not_before);
        if length.is_negative() {
            return Err(expected("payload.not_after", "a time not before payload.not_before"));
        }
        if max_validity_s.is_some_and(|longest| length > seconds(longest)) {
            return Err(expected("payload.not_after", "a window of at most max_validity_s"));
        }
        Ok(command)
    }

    /// When what a command leaves behind (a tombstone, a failed mark) may be forgotten: when its
    /// `not_before` and the longest window are past. CONTRACT section 6.
    #[must_use]
    pub fn forget_after(&self, max_validity_s: u64) -> Timestamp {
        self.not_before.checked_add(seconds(max_validity_s)).unwrap_or(Timestamp::MAX)
    }
}

/// Without the arguments, which may hold anything.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("command_id", &self.command_id)
            .field("nonce", &self.nonce)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

pub(super) fn seconds(count: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(count).unwrap_or(i64::MAX))
}

fn read_target(value: &Value) -> Result<Label, FormError> {
    let mut members = Members::of("payload.target", value)?;
    members.constant("payload.target.kind", "cluster")?;
    let id = members.parsed("payload.target.id", Label::parse, "an RFC 1123 label")?;
    members.end()?;
    Ok(id)
}

/// An operation that we know, with its arguments in the right form. CONTRACT section 2.
#[derive(Clone, PartialEq)]
pub enum Operation {
    /// `managedcomponent.apply`
    Apply {
        /// The component.
        name: ComponentName,
        /// Its whole `spec`.
        spec: Map<String, Value>,
    },
    /// `managedcomponent.delete`
    Delete {
        /// The component.
        name: ComponentName,
    },
    /// `inventory.report`
    InventoryReport,
}

impl Operation {
    /// What a command asks for.
    ///
    /// # Errors
    /// `unknown_operation`, or `invalid_arguments`.
    pub fn of(command: &Command) -> Result<Self, Refusal> {
        let arguments = Members::over("arguments", &command.arguments);
        let read = match command.operation.as_str() {
            "managedcomponent.apply" => read_apply(arguments),
            "managedcomponent.delete" => read_delete(arguments),
            "inventory.report" => arguments.end().map(|()| Self::InventoryReport),
            _ => {
                let message = "payload.operation: expected managedcomponent.apply, managedcomponent.delete or inventory.report";
                return Err(Refusal::of(command, Reason::UnknownOperation, message));
            }
        };
        read.map_err(|error| Refusal::of(command, Reason::InvalidArguments, &error.to_string()))
    }

    /// Whether it is refused while offline. All are that are not listed as read only.
    #[must_use]
    pub fn sensitive(&self) -> bool {
        match self {
            Self::Apply { .. } | Self::Delete { .. } => true,
            Self::InventoryReport => false,
        }
    }

    /// The component that it writes: while it is under way no other of that name is begun, and none is repaired.
    #[must_use]
    pub fn name(&self) -> Option<&ComponentName> {
        match self {
            Self::Apply { name, .. } | Self::Delete { name } => Some(name),
            Self::InventoryReport => None,
        }
    }

    /// Whether a write of it may create the component: one without an answer may land late, and leaves a mark.
    #[must_use]
    pub fn may_create(&self) -> bool {
        match self {
            Self::Apply { .. } => true,
            Self::Delete { .. } | Self::InventoryReport => false,
        }
    }

    /// Whether it brings a spec, which is kept once it has succeeded.
    #[must_use]
    pub fn brings_spec(&self) -> bool {
        match self {
            Self::Apply { .. } => true,
            Self::Delete { .. } | Self::InventoryReport => false,
        }
    }
}

/// Without the spec, which may hold anything.
impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply { name, .. } => write!(f, "Apply({name})"),
            Self::Delete { name } => write!(f, "Delete({name})"),
            Self::InventoryReport => f.write_str("InventoryReport"),
        }
    }
}

fn read_apply(mut members: Members<'_>) -> Result<Operation, FormError> {
    let name = read_name(&mut members)?;
    let spec = members.value("arguments.spec")?;
    members.end()?;
    let spec = spec.as_object().cloned().ok_or_else(|| expected("arguments.spec", "an object"))?;
    Ok(Operation::Apply { name, spec })
}

fn read_delete(mut members: Members<'_>) -> Result<Operation, FormError> {
    let name = read_name(&mut members)?;
    members.end()?;
    Ok(Operation::Delete { name })
}

fn read_name(members: &mut Members<'_>) -> Result<ComponentName, FormError> {
    members.parsed("arguments.name", ComponentName::parse, "an RFC 1123 subdomain")
}
