//! The receipt: the one outcome of a command, as the manager and the inbox get it and the state
//! keeps it. CONTRACT section 2, "Receipt".

use super::{Command, Reason, Refusal};
use crate::rules::json;
use crate::rules::names::{CommandId, Label, Nonce, time};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Longest `message` of a receipt, in bytes.
const MAX_MESSAGE_BYTES: usize = 1024;

/// The `type` of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiptType {
    /// The one version.
    #[serde(rename = "navin.receipt/v1")]
    V1,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Done.
    Succeeded,
    /// Accepted, and not done.
    Failed,
    /// Not accepted.
    Refused,
}

impl Status {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// Where a command came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The manager's gateway.
    Gateway,
    /// The break-glass folder.
    Inbox,
}

/// What every receipt says about who gave it, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The configuration's tenant.
    pub tenant_id: Label,
    /// The configuration's cluster.
    pub cluster_id: Label,
    /// The pod's name.
    pub replica: String,
    /// Where the command came from.
    pub source: Source,
    /// Now; kept in whole seconds.
    pub executed_at: Timestamp,
}

/// A receipt. Its members are exactly the contract's, in its order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The type.
    #[serde(rename = "type")]
    pub kind: ReceiptType,
    /// The command; absent only in the inbox's answer to a file that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_id: Option<CommandId>,
    /// Its nonce; absent together with `command_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Nonce>,
    /// Whose agent this is.
    pub tenant_id: Label,
    /// Which cluster this is.
    pub cluster_id: Label,
    /// How it ended.
    pub status: Status,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the operation gives back.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_result")]
    pub result: Option<Value>,
    /// Whether this is the outcome in the state.
    pub recorded: bool,
    /// When it ended.
    #[serde(with = "time")]
    pub executed_at: Timestamp,
    /// The pod that gave it.
    pub replica: String,
    /// Where the command came from.
    pub source: Source,
    /// The recorded receipt; only with `nonce_replayed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Box<Receipt>>,
}

impl Receipt {
    /// The outcome of a command that was done.
    #[must_use]
    pub fn succeeded(stamp: &Stamp, command: &Command, result: Value) -> Self {
        let ids = Some((command.command_id.clone(), command.nonce.clone()));
        Self { result: Some(result), ..Self::blank(stamp, ids, Status::Succeeded) }
    }

    /// The outcome of a command that was accepted and not done.
    #[must_use]
    pub fn failed(stamp: &Stamp, command: &Command, reason: Reason, message: &str) -> Self {
        let ids = Some((command.command_id.clone(), command.nonce.clone()));
        let blank = Self::blank(stamp, ids, Status::Failed);
        Self { reason: Some(reason), message: Some(clean(message)), ..blank }
    }

    /// A refusal: `recorded` where the state keeps it; `original` with `nonce_replayed`.
    #[must_use]
    pub fn refused(stamp: &Stamp, refusal: &Refusal, recorded: bool, original: Option<Self>) -> Self {
        Self {
            reason: Some(refusal.reason),
            message: Some(clean(&refusal.message)),
            recorded,
            original: original.map(Box::new),
            ..Self::blank(stamp, refusal.ids.clone(), Status::Refused)
        }
    }

    /// The end of a command whose record does not verify any more: accepted, and not done.
    #[must_use]
    pub fn broken(stamp: &Stamp, ids: (CommandId, Nonce), refusal: Refusal) -> Self {
        let refusal = Refusal { ids: Some(ids), ..refusal };
        Self { status: Status::Failed, ..Self::refused(stamp, &refusal, true, None) }
    }

    /// Whether the manager is told: not of what names no command, nor of what is not authentic in the inbox, so
    /// that nobody with access to the folder speaks for a pending command.
    #[must_use]
    pub fn is_for_the_manager(&self) -> bool {
        let authentic = self.reason.is_none_or(Reason::is_of_authentic);
        self.command_id.is_some() && (self.source == Source::Gateway || authentic)
    }

    /// The same with something for people to read, where there is anything.
    #[must_use]
    pub fn with_message(self, message: &str) -> Self {
        Self { message: (!message.is_empty()).then(|| clean(message)), ..self }
    }

    /// The command's identifier, for a log line.
    #[must_use]
    pub fn command(&self) -> &str {
        self.command_id.as_ref().map_or("unreadable", CommandId::as_str)
    }

    fn blank(stamp: &Stamp, ids: Option<(CommandId, Nonce)>, status: Status) -> Self {
        let (command_id, nonce) = ids.unzip();
        let second = Timestamp::from_second(stamp.executed_at.as_second());
        Self {
            kind: ReceiptType::V1,
            command_id,
            nonce,
            tenant_id: stamp.tenant_id.clone(),
            cluster_id: stamp.cluster_id.clone(),
            status,
            reason: None,
            message: None,
            result: None,
            recorded: true,
            executed_at: second.unwrap_or(stamp.executed_at),
            replica: stamp.replica.clone(),
            source: stamp.source,
            original: None,
        }
    }
}

/// Control characters become spaces, and the text is cut to its limit at a character's end.
fn clean(message: &str) -> String {
    let mut text: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
    text
}

fn read_result<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Value>, D::Error> {
    json::derived::value(source).map(Some)
}
