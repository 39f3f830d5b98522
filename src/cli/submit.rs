//! `submit`: a command past the manager, through the inbox of the agent in the same container.

use super::{Arguments, Exit, Fatal, command_file, print};
use crate::clock::{Clock, SystemClock, unpredictable};
use crate::folder::{DirFolder, Folder};
use crate::rules::inbox::{STATUS_NAME, Status as Standing, receipt_name};
use crate::rules::messages::{Reason, Status};
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

const HELP: &str = "\
Usage: navin-cluster-agent submit FILE|- [OPTION]...

Break glass: hands a signed command to the agent that runs in this container, waits for its receipt
and prints it. The agent judges it as one that came from the manager. Where the manager is out of
reach, sensitive commands are refused.

Options:
  --inbox DIR   The folder that the agent was given [default: /var/lib/navin/inbox]
  --wait-s N    How long to wait for the receipt, 1 to 3600 [default: 180]

A command that got no receipt in time is taken back where it was not begun. To submit the same
file again is safe: a command runs once, and the answer is then what became of it: nonce_replayed,
with the first receipt in original, from which the exit code is taken.

Exit codes: 0 succeeded, 1 failed or refused (the receipt says why), 3 this replica does not lead
(standard error names the pod that does), 64 wrong command line, 66 FILE not readable, 69 no agent
answers here, 70 the answer is not a receipt and is left there, 71 the folder is not writable, or
the output, 75 no receipt in time.
";

/// Where the agent's manifests mount the inbox.
const DEFAULT_DIR: &str = "/var/lib/navin/inbox";
/// How long is waited for the receipt, where nothing else is said, in seconds.
const WAIT_S: u64 = 180;
/// The longest, in seconds.
const MOST_WAIT_S: u64 = 3_600;
/// Between two looks into the folder.
const LOOK: Duration = Duration::from_millis(100);
/// How long an agent is given to say that it is there: it may have started with us.
const APPEARS: Duration = Duration::from_secs(10);
/// Largest receipt, in bytes: one with a whole inventory, which is at most 8 MiB.
const MAX_RECEIPT: usize = 16 * 1024 * 1024;
/// Largest status, in bytes.
const MAX_STATUS: usize = 4 * 1024;

/// What is read of a receipt here; the whole is printed as it is.
#[derive(Deserialize)]
struct Outcome {
    status: Status,
    reason: Option<String>,
    command_id: Option<String>,
    original: Option<Box<Outcome>>,
}

impl Outcome {
    /// What became of the command: of one that was delivered before, what its first receipt says.
    fn exit(&self) -> Exit {
        let replayed = self.reason.as_deref() == Some(Reason::NonceReplayed.as_str());
        let original = self.original.as_deref().filter(|_| replayed);
        // The nonce may be another command's.
        let same = |original: &&Self| original.command_id == self.command_id;
        match original.filter(same).unwrap_or(self).status {
            Status::Succeeded => Exit::Success,
            Status::Failed | Status::Refused => Exit::Refused,
        }
    }
}

pub(super) fn main(mut arguments: Arguments) -> Result<Exit, Fatal> {
    if arguments.help() {
        return print(HELP);
    }
    let dir = arguments.option_or("--inbox", DEFAULT_DIR)?;
    let wait = match arguments.option("--wait-s")? {
        None => WAIT_S,
        Some(text) => {
            text.parse().ok().filter(|seconds| (1..=MOST_WAIT_S).contains(seconds)).ok_or_else(|| {
                Fatal::new(Exit::Usage, format!("--wait-s {text}: expected a number from 1 to {MOST_WAIT_S}"))
            })?
        }
    };
    let command = command_file(arguments, "submit")?;
    let folder = DirFolder::new(Path::new(&dir));
    let clock = SystemClock::default();
    let submission =
        Submission { dir: &dir, folder: &folder, clock: &clock, wait: Duration::from_secs(wait) };
    submission.run(&command)
}

struct Submission<'a> {
    dir: &'a str,
    folder: &'a DirFolder,
    clock: &'a SystemClock,
    wait: Duration,
}

impl Submission<'_> {
    fn run(&self, command: &[u8]) -> Result<Exit, Fatal> {
        self.await_leader()?;
        let unwritable =
            |e: std::io::Error| Fatal::new(Exit::System, format!("{}: not writable: {e}", self.dir));
        // A name of its own, so that no answer to another file is taken for its answer. Whoever can list the
        // folder can write an answer all the same: it is as trustworthy as the folder.
        let name = format!("submit-{}.json", unpredictable().map_err(unwritable)?);
        self.folder.write(&name, command, true).map_err(unwritable)?;
        let answer = self.await_receipt(&name);
        // What is left is answered and never read again; nobody is helped by an error about it.
        drop(self.folder.remove(&name));
        let ended = answer.and_then(|(text, outcome)| print(&text).map(|_| outcome.exit()));
        // An answer that could not be used or printed is all that there is of it.
        if !matches!(&ended, Err(fatal) if matches!(fatal.exit, Exit::Software | Exit::System)) {
            drop(self.folder.remove(&receipt_name(&name).unwrap_or_default()));
        }
        ended
    }

    /// Waits until the agent here leads. One that follows, or none, is an error.
    fn await_leader(&self) -> Result<(), Fatal> {
        loop {
            let waited = self.clock.monotonic();
            match self.status() {
                Some(status) if status.leads => return Ok(()),
                Some(Standing { leader: Some(leader), replica, .. }) => {
                    return Err(not_leading(&replica, &leader, "nothing was submitted; submit it there"));
                }
                None if waited >= APPEARS.min(self.wait) => {
                    let message = format!(
                        "{}: no agent answers here: is it running, with --inbox {}?",
                        self.dir, self.dir
                    );
                    return Err(Fatal::new(Exit::Unavailable, message));
                }
                Some(_) if waited >= self.wait => {
                    let message =
                        format!("no replica leads after {} s; nothing was submitted", self.wait.as_secs());
                    return Err(Fatal::new(Exit::TimedOut, message));
                }
                Some(_) | None => self.clock.sleep(LOOK),
            }
        }
    }

    /// The receipt as it is, once it is there, and what it says. An answer that is none is left in the folder.
    fn await_receipt(&self, name: &str) -> Result<(String, Outcome), Fatal> {
        let receipt = receipt_name(name).unwrap_or_default();
        let no_receipt = |why: String| {
            let message = format!("{}/{receipt}: not a receipt, left there: {why}", self.dir);
            Fatal::new(Exit::Software, message)
        };
        loop {
            let waited = self.clock.monotonic();
            if let Some(entry) = self.folder.look(&receipt)
                && entry.stamp.size > MAX_RECEIPT
            {
                return Err(no_receipt(format!("{} bytes, more than {MAX_RECEIPT}", entry.stamp.size)));
            }
            if let Some(bytes) = self.read(&receipt, MAX_RECEIPT) {
                let outcome = serde_json::from_slice(&bytes).map_err(|e| no_receipt(e.to_string()))?;
                return Ok((String::from_utf8_lossy(&bytes).into_owned(), outcome));
            }
            if let Some(Standing { leads: false, leader: Some(leader), replica, .. }) = self.status() {
                let message = "the command may have been begun; submit the same there, it runs once";
                return Err(not_leading(&replica, &leader, message));
            }
            if waited >= self.wait {
                let message = format!(
                    "no receipt within {} s; the command was taken back, but may have been begun: \
                     to submit the same again is safe",
                    self.wait.as_secs()
                );
                return Err(Fatal::new(Exit::TimedOut, message));
            }
            self.clock.sleep(LOOK);
        }
    }

    fn status(&self) -> Option<Standing> {
        Standing::read(&self.read(STATUS_NAME, MAX_STATUS)?, self.clock.wall())
    }

    fn read(&self, name: &str, limit: usize) -> Option<Vec<u8>> {
        let entry = self.folder.look(name)?;
        self.folder.read(&entry, limit).ok()?
    }
}

fn not_leading(replica: &str, leader: &str, advice: &str) -> Fatal {
    Fatal::new(Exit::NotLeading, format!("{replica:?} does not lead, the leader is {leader:?}: {advice}"))
}
