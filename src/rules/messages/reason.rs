//! Why a command is not run, or did not succeed. CONTRACT section 2, "order of checks, and reason codes".

use super::Command;
use crate::rules::names::{CommandId, Nonce};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The reason codes of receipts. CONTRACT section 2, in the order of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Not an envelope of the contract's form.
    InvalidEnvelope,
    /// Signed by a key that is not trusted.
    UnknownKey,
    /// The signature does not verify.
    InvalidSignature,
    /// For another tenant.
    WrongTenant,
    /// For another cluster.
    WrongTarget,
    /// The nonce has its outcome already.
    NonceReplayed,
    /// After its window.
    Expired,
    /// Before its window.
    NotYetValid,
    /// An operation that we do not know.
    UnknownOperation,
    /// Arguments of another form than the operation's.
    InvalidArguments,
    /// A later command for the same name has succeeded.
    Superseded,
    /// Dated before the state was lost.
    StateLost,
    /// Sensitive, while offline.
    ManagerUnreachable,
    /// The desired state would exceed its limit.
    TooLarge,
    /// The API server's final answer.
    KubernetesRefused,
    /// No final answer of the API server in time.
    KubernetesUnavailable,
}

impl Reason {
    /// Whether a command that is refused for it is authentic (CONTRACT section 1).
    #[must_use]
    pub fn is_of_authentic(self) -> bool {
        match self {
            Self::InvalidEnvelope
            | Self::UnknownKey
            | Self::InvalidSignature
            | Self::WrongTenant
            | Self::WrongTarget => false,
            Self::NonceReplayed
            | Self::Expired
            | Self::NotYetValid
            | Self::UnknownOperation
            | Self::InvalidArguments
            | Self::Superseded
            | Self::StateLost
            | Self::ManagerUnreachable
            | Self::TooLarge
            | Self::KubernetesRefused
            | Self::KubernetesUnavailable => true,
        }
    }

    /// The code as it is written in receipts and counters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidEnvelope => "invalid_envelope",
            Self::UnknownKey => "unknown_key",
            Self::InvalidSignature => "invalid_signature",
            Self::WrongTenant => "wrong_tenant",
            Self::WrongTarget => "wrong_target",
            Self::NonceReplayed => "nonce_replayed",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::UnknownOperation => "unknown_operation",
            Self::InvalidArguments => "invalid_arguments",
            Self::Superseded => "superseded",
            Self::StateLost => "state_lost",
            Self::ManagerUnreachable => "manager_unreachable",
            Self::TooLarge => "too_large",
            Self::KubernetesRefused => "kubernetes_refused",
            Self::KubernetesUnavailable => "kubernetes_unavailable",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a command is not run. CONTRACT section 2, "order of checks".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The first check that failed.
    pub reason: Reason,
    /// For people; holds nothing of a spec.
    pub message: String,
    /// Whom the receipt is for, where that could be read. Without them there is no receipt.
    pub ids: Option<(CommandId, Nonce)>,
}

impl Refusal {
    /// A refusal of a command that could be read.
    #[must_use]
    pub fn of(command: &Command, reason: Reason, message: &str) -> Self {
        let ids = Some((command.command_id.clone(), command.nonce.clone()));
        Self { reason, message: message.to_owned(), ids }
    }
}
