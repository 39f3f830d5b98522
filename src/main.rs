//! The binary: subcommand and exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    navin_cluster_agent::cli::main(arguments).into()
}
