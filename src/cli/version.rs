//! `version`.

use super::{Arguments, Exit, Fatal, print};

const HELP: &str = "\
Usage: navin-cluster-agent version

Prints version and commit, and the versions of the TLS and signature crates.
";

pub(super) fn main(arguments: Arguments) -> Result<Exit, Fatal> {
    if arguments.help() {
        return print(HELP);
    }
    arguments.end()?;
    print(&text())
}

/// What it prints.
pub(super) fn text() -> String {
    format!(
        "navin-cluster-agent {}\ncommit {}\n{}",
        env!("CARGO_PKG_VERSION"),
        env!("NAVIN_COMMIT"),
        env!("NAVIN_CRATES").replace(' ', "\n").replace('=', " ") + "\n",
    )
}
