//! What outlives the test process, to end what the test process started.
//!
//! Statics are never dropped, and a test may itself be killed, so guards alone leave servers behind.
//! A shell holds the other end of a pipe: when this process is gone, however it went, the pipe closes,
//! and the shell kills by number what was not reported as ended, and removes this process's folder.
//! (The kernel's parent-death signal comes when the *thread* that started a child ends, which for a
//! test is too early, and asking for it takes unsafe code.)

use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::folder::{kept, process_folder};

/// A process that is stopped is killed as well: SIGKILL waits for nobody.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids=
while read -r order pid; do
    case $order in
    watch) pids="$pids $pid" ;;
    ended)
        rest=
        for other in $pids; do [ "$other" = "$pid" ] || rest="$rest $other"; done
        pids=$rest ;;
    keep) folder= ;;
    folder) folder=$1 ;;
    esac
done
for pid in $pids; do kill -KILL "$pid"; done
[ -z "$folder" ] || { sleep 0.2; rm -rf "$folder"; }
"#;

static REAPER: OnceLock<Mutex<ChildStdin>> = OnceLock::new();

/// From now on the process dies with this one.
pub(crate) fn watch(pid: u32) {
    tell(&format!("watch {pid}"));
}

/// The process has been waited for: its number may be another's from now on.
pub(crate) fn ended(pid: u32) {
    tell(&format!("ended {pid}"));
}

/// A test failed: leave this process's files. Where no reaper runs, nobody would remove them.
pub(crate) fn keep_folder() {
    if REAPER.get().is_some() {
        tell("keep");
    }
}

fn tell(order: &str) {
    let reaper = REAPER.get_or_init(|| Mutex::new(start()));
    let mut pipe = reaper.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(pipe, "{order}").expect("the reaper reads as long as this process lives");
}

#[expect(clippy::zombie_processes, reason = "it outlives this process; nobody here can wait for it")]
fn start() -> ChildStdin {
    let mut shell = Command::new("sh")
        .args(["-c", SCRIPT, "navin-test-reaper"])
        .arg(process_folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh, which every Unix has");
    let mut pipe = shell.stdin.take().expect("its standard input was piped");
    if !kept() {
        writeln!(pipe, "folder").expect("the reaper has just started");
    }
    pipe
}
