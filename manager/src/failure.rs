//! Why the program ends, and with which exit code.

use crate::issue::IssueError;
use crate::operator::Trouble;
use crate::store::StoreError;
use std::path::{Path, PathBuf};

/// Exit code of a configuration that cannot be used: `EX_CONFIG` of sysexits.h.
const EX_CONFIG: u8 = 78;

/// Why the program ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file of keys or certificates that cannot be used.
    #[error("{}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; nothing of its content.
        problem: String,
    },
    /// A file or folder that cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// An argument of another form than it must have.
    #[error("{0}")]
    Argument(String),
    /// A call of the REST API that did not end well.
    #[error(transparent)]
    Operator(#[from] Trouble),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A command or identity that is refused.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// Something of the system that was expected to be there.
    #[error("{0}")]
    System(String),
}

impl Failure {
    /// A file that cannot be used, and why.
    #[expect(clippy::needless_pass_by_value, reason = "literals and errors alike")]
    pub(crate) fn damaged(path: &Path, problem: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), problem: problem.to_string() }
    }

    /// What the system said about a file.
    pub(crate) fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    /// The exit code, as `--help` tells it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Damaged { .. } => EX_CONFIG,
            Self::Argument(_) => 2,
            Self::Operator(trouble) => trouble.exit_code(),
            Self::File { .. } | Self::Listen { .. } | Self::Store(_) | Self::Issue(_) | Self::System(_) => 1,
        }
    }
}
