//! Why the program ends, and with which exit code. It knows none of those who fail: each says how what went
//! wrong with it becomes a failure.

use std::path::{Path, PathBuf};

/// The exit codes, as `--help` tells them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0   done; for the servers: stopped by SIGTERM or SIGINT; with --wait: succeeded
  1   failed; a command or request that is refused, a command that failed or expired
  2   the command line, or the spec in a file, is wrong
  3   the token is not known (operator commands; so are the next three)
  4   there is no such cluster or command
  5   the server does not answer, or its database does not
  6   the wait ran out before the outcome
  78  the database, or a key or certificate file, is missing; or a key or certificate file is damaged,
      or does not fit the others (a damaged database: 1)

Logs go to standard error; NAVIN_LOG sets the filter (default: info).";

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
    #[error("{problem}")]
    Operator {
        /// What went wrong.
        problem: String,
        /// What it ends with.
        exit_code: u8,
    },
    /// The database.
    #[error("{0}")]
    Store(String),
    /// A command or identity that is refused.
    #[error("{0}")]
    Issue(String),
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

    /// A file that does not fit the others. What stands beside it is what agents know: that is not to be moved away.
    pub(crate) fn misfit(path: &Path, problem: &str) -> Self {
        let help = "put it back from the backup, or see docs/MANAGER.md, \"When a key is lost\"";
        Self::damaged(path, format!("{problem}: {help}"))
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
            Self::Operator { exit_code, .. } => *exit_code,
            Self::File { .. } | Self::Listen { .. } | Self::Store(_) | Self::Issue(_) | Self::System(_) => 1,
        }
    }
}
