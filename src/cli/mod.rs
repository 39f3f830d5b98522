//! The command line: one file per subcommand, and what they share.

mod arguments;
mod run;
mod verify;
mod version;

use arguments::{Arguments, UsageError};
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// How the process ends. The values are those of BSD's `sysexits.h` where one fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, accepted, or stopped by SIGTERM.
    Success = 0,
    /// The command was refused.
    Refused = 1,
    /// `EX_USAGE`: the command line is wrong.
    Usage = 64,
    /// `EX_NOINPUT`: a file named on the command line cannot be read.
    NoInput = 66,
    /// `EX_SOFTWARE`: a thread ended that should not.
    Software = 70,
    /// `EX_OSERR`: the operating system refused a thread, a signal handler or the output.
    System = 71,
    /// `EX_CONFIG`: the identity or the way to the API server is wrong.
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        // The discriminants are the codes.
        Self::from(exit as u8)
    }
}

/// Why a subcommand failed: its exit code and one line for standard error.
pub(crate) struct Fatal {
    exit: Exit,
    message: String,
}

impl Fatal {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string() }
    }
}

impl From<UsageError> for Fatal {
    fn from(error: UsageError) -> Self {
        Self::new(Exit::Usage, format!("{error} (see --help)"))
    }
}

const HELP: &str = "\
Usage: navin-cluster-agent COMMAND [OPTION]...

Applies the signed commands of a Navin manager in this Kubernetes cluster.

Commands:
  run      Be the agent: takes the Lease, asks the manager for commands, executes them
  verify   Say whether a command file would be accepted; touches nothing
  version  Print version, commit, and the versions of the TLS and signature crates

'navin-cluster-agent COMMAND --help' explains each.
";

/// Runs the program with its arguments (the program's own name left out).
#[must_use]
pub fn main(arguments: impl Iterator<Item = String>) -> Exit {
    match dispatch(Arguments::new(arguments)) {
        Ok(exit) => exit,
        Err(fatal) => {
            complain(&fatal.message);
            fatal.exit
        }
    }
}

fn dispatch(mut arguments: Arguments) -> Result<Exit, Fatal> {
    match arguments.word().as_deref() {
        Some("run") => run::main(arguments),
        Some("verify") => verify::main(arguments),
        Some("version" | "--version" | "-V") => version::main(arguments),
        Some("help" | "--help" | "-h") => print(HELP),
        Some(other) => Err(Fatal::new(Exit::Usage, format!("unknown command {other:?} (see --help)"))),
        None => Err(Fatal::new(Exit::Usage, "expected a command: run, verify or version (see --help)")),
    }
}

/// Prints to standard output.
fn print(text: &str) -> Result<Exit, Fatal> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map(|()| Exit::Success)
        .map_err(|e| Fatal::new(Exit::System, format!("standard output: {e}")))
}

/// Prints one line to standard error; there is nobody left to tell if that fails.
fn complain(message: &str) {
    let line = format!("navin-cluster-agent: {message}\n");
    drop(io::stderr().lock().write_all(line.as_bytes()));
}
