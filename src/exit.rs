//! How the process ends: exit codes, and the one line that goes with a failure.

use std::fmt;
use std::process::ExitCode;

/// How the process ends. The values are those of BSD's `sysexits.h` where one fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, accepted, or stopped by SIGTERM.
    Success = 0,
    /// The command was refused, or failed; or something is not well.
    Refused = 1,
    /// This replica does not lead.
    NotLeading = 3,
    /// `EX_USAGE`: the command line is wrong.
    Usage = 64,
    /// `EX_NOINPUT`: a file named on the command line cannot be read.
    NoInput = 66,
    /// `EX_UNAVAILABLE`: no agent answers in the inbox.
    Unavailable = 69,
    /// `EX_SOFTWARE`: a thread ended that should not. A panic ends what is shipped by SIGABRT instead.
    Software = 70,
    /// `EX_OSERR`: the operating system refused a thread, a signal handler, a folder or the output.
    System = 71,
    /// `EX_TEMPFAIL`: no receipt in time.
    TimedOut = 75,
    /// `EX_CONFIG`: the identity or the way to the API server is wrong.
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        #[expect(
            clippy::as_conversions,
            reason = "the discriminants are the codes, and bytes: nothing is cut"
        )]
        Self::from(exit as u8)
    }
}

/// Why a subcommand failed: its exit code and one line for standard error.
pub(crate) struct Fatal {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Fatal {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string() }
    }
}
