//! `verify`: the verdict on a command file, without a cluster.

use super::{Arguments, Exit, Fatal, command_file, print};
use crate::clock;
use crate::identity::{self, DEFAULT_DIR};
use crate::rules::link::Link;
use crate::rules::names::parse_time;
use crate::rules::state::State;
use crate::rules::verdict::{self, Trust, Verdict};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::Path;

const HELP: &str = "\
Usage: navin-cluster-agent verify FILE|- [OPTION]...

Prints the verdict on a command file as JSON: {\"status\":\"accepted\"}, or
{\"status\":\"refused\",\"reason\":\"...\",\"message\":\"...\"}. It knows nothing of a cluster:
whether the command ran before, or a newer one did, only the agent can say.

Options:
  --identity-dir DIR  Folder with manager.pem and config.json
                      [default: /etc/navin/identity]
  --at TIME           Judge as if it were this time (RFC 3339, UTC, 'Z') [default: now]

Exit codes: 0 accepted, 1 refused, 64 wrong command line, 66 FILE not readable,
71 the output could not be written, 78 the identity is wrong.
";

pub(super) fn main(mut arguments: Arguments) -> Result<Exit, Fatal> {
    if arguments.help() {
        return print(HELP);
    }
    let dir = arguments.option_or("--identity-dir", DEFAULT_DIR)?;
    let at = match arguments.option("--at")? {
        Some(text) => parse_time(&text).ok_or_else(|| {
            Fatal::new(Exit::Usage, format!("--at {text}: expected a time such as 2026-01-31T12:00:00Z"))
        })?,
        None => clock::now(),
    };
    let envelope = command_file(arguments, "verify")?;
    let (ring, config) = identity::load_signed(Path::new(&dir)).map_err(|e| Fatal::new(Exit::Config, e))?;
    let (exit, answer) = judge(&envelope, &Trust { ring, config }, at);
    print(&format!("{answer}\n"))?;
    Ok(exit)
}

fn judge(envelope: &[u8], trust: &Trust, at: Timestamp) -> (Exit, Value) {
    match verdict::judge(envelope, trust, &State::new(0, ""), Link::Online, at) {
        Verdict::Run(_) => (Exit::Success, json!({ "status": "accepted" })),
        Verdict::Refuse(refused) => {
            let (reason, message) = (refused.refusal.reason.as_str(), refused.refusal.message);
            (Exit::Refused, json!({ "status": "refused", "reason": reason, "message": message }))
        }
        // An empty state has no command under way and room for one.
        Verdict::UnderWay(_) | Verdict::Later(_) => {
            (Exit::Refused, json!({ "status": "refused", "reason": "too_large", "message": "" }))
        }
    }
}
