//! `health`: whether the agent in the same container is alive, for the kubelet.

use super::{Arguments, Exit, Fatal, print};
use crate::heartbeat;
use std::path::Path;

const HELP: &str = "\
Usage: navin-cluster-agent health [OPTION]...

Says whether the agent that runs in this container is alive: each of its threads goes round within its
own limit, whether it leads or not, and whether or not it reaches the API server and the manager.

Options:
  --run-dir DIR  Its run folder, or its inbox where it was given none
                 [default: /var/lib/navin/run]

Exit codes: 0 alive, 1 not (standard error names the thread and its silence), 64 wrong command line,
71 the output could not be written.
";

/// Where the agent's manifests mount a folder for the heartbeat.
pub(super) const RUN_DIR: &str = "/var/lib/navin/run";

pub(super) fn main(mut arguments: Arguments) -> Result<Exit, Fatal> {
    if arguments.help() {
        return print(HELP);
    }
    let dir = arguments.option_or("--run-dir", RUN_DIR)?;
    arguments.end()?;
    let line = heartbeat::look(Path::new(&dir)).map_err(|why| Fatal::new(Exit::Refused, why))?;
    print(&format!("{line}\n"))
}
