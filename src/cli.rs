//! The command line: one file per subcommand, and what they share.

mod arguments;
mod doctor;
mod health;
mod run;
mod submit;
mod verify;
mod version;

#[cfg(test)]
pub(crate) use run::start_logging;

use crate::exit::{Exit, Fatal};
use crate::files;
use crate::rules::json::MAX_ENVELOPE_BYTES;
use arguments::{Arguments, UsageError};
use std::io::{self, Write};

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
  health   Say whether the agent in this container is alive, for the kubelet
  doctor   Say what is wrong, and what to do about it; changes nothing
  submit   Hand a command to the agent in this container, past the manager
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
        Some("doctor") => doctor::main(arguments),
        Some("health") => health::main(arguments),
        Some("submit") => submit::main(arguments),
        Some("verify") => verify::main(arguments),
        Some("version" | "--version" | "-V") => version::main(arguments),
        Some("help" | "--help" | "-h") => print(HELP),
        Some(other) => Err(Fatal::new(Exit::Usage, format!("unknown command {other:?} (see --help)"))),
        None => {
            let message = "expected a command: run, health, doctor, submit, verify or version (see --help)";
            Err(Fatal::new(Exit::Usage, message))
        }
    }
}

/// What is left of the command line of `task`: a command's file, read to one byte more than is allowed, so that whoever
/// judges it says so.
fn command_file(mut arguments: Arguments, task: &str) -> Result<Vec<u8>, Fatal> {
    let Some(file) = arguments.word() else {
        let message = format!("{task}: expected FILE, or - for standard input (see --help)");
        return Err(Fatal::new(Exit::Usage, message));
    };
    arguments.end()?;
    files::read_head(&file, MAX_ENVELOPE_BYTES.saturating_add(1))
        .map_err(|e| Fatal::new(Exit::NoInput, format!("{file}: not readable: {e}")))
}

/// Prints to standard output.
fn print(text: &str) -> Result<Exit, Fatal> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<Exit, Fatal> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map(|()| Exit::Success)
        .map_err(|e| Fatal::new(Exit::System, format!("standard output: {e}")))
}

/// Prints one line to standard error; there is nobody left to tell if that fails.
fn complain(message: &str) {
    let line = format!("navin-cluster-agent: {message}\n");
    drop(io::stderr().lock().write_all(line.as_bytes()));
}
