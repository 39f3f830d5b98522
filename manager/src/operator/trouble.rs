//! What can go wrong with what operators ask for.

use crate::process::failure::Failure;
use std::time::Duration;

/// Why a task did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// What was given cannot be used.
    #[error("{0}")]
    Usage(String),
    /// The server refused the call.
    #[error("refused ({status}): {detail}")]
    Refused {
        /// The status.
        status: u16,
        /// Why, in the server's words.
        detail: String,
        /// When it wants to be asked again, where it says so.
        again_in: Option<Duration>,
    },
    /// No answer.
    #[error("{0}")]
    Unreachable(String),
    /// The command did not succeed.
    #[error("command {command_id}: {status}{reason}; see `navin-manager commands {command_id}`")]
    Outcome {
        /// Which.
        command_id: String,
        /// What became of it.
        status: String,
        /// Why, in brackets, where its receipt says so.
        reason: String,
    },
    /// The command has no outcome yet.
    #[error(
        "command {command_id}: {status} when the wait ran out; it runs when an agent takes it within its window: go on with \
         `navin-manager wait {command_id}`"
    )]
    WaitRanOut {
        /// Which.
        command_id: String,
        /// What was known of it last.
        status: String,
    },
    /// Standard output is gone.
    #[error("standard output: {0}")]
    Output(std::io::Error),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Operator { problem: trouble.to_string(), exit_code: trouble.exit_code() }
    }
}

impl Trouble {
    /// The exit code, as `--help` tells it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Refused { status: 401, .. } => 3,
            Self::Refused { status: 404, .. } => 4,
            Self::Refused { status: 408 | 500.., .. } | Self::Unreachable(_) => 5,
            Self::WaitRanOut { .. } => 6,
            Self::Refused { .. } | Self::Outcome { .. } | Self::Output(_) => 1,
        }
    }

    /// Names the cluster that was asked for, where the server has not found it or what is its.
    pub(super) fn of_cluster(mut self, cluster: &str) -> Self {
        if let Self::Refused { status: 404, detail, .. } = &mut self {
            *detail = format!("cluster {cluster:?}: {detail}");
        }
        self
    }

    /// When the server wants to be asked again, where it said so of a call that it put off.
    pub(super) fn again_in(&self) -> Option<Duration> {
        match self {
            Self::Refused { again_in, .. } => *again_in,
            Self::Usage(_)
            | Self::Unreachable(_)
            | Self::Outcome { .. }
            | Self::WaitRanOut { .. }
            | Self::Output(_) => None,
        }
    }
}
