//! One process of a test, with its output in files; it ends when its guard is dropped.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::reaper;
use crate::wait::until;

/// What is started, and how: kept by [`Process`], so that the same can be started again.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Names the log files: `<name>.stdout` and `<name>.stderr`.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment, on top of this process's own without any proxy.
    pub envs: Vec<(String, String)>,
    /// The folder of the log files, and its working directory.
    pub folder: PathBuf,
}

impl Launch {
    fn spawn(&self) -> Child {
        let log = |suffix: &str| {
            let path = self.folder.join(format!("{}.{suffix}", self.name));
            OpenOptions::new().create(true).append(true).open(path).expect("a log file")
        };
        let mut command = Command::new(&self.program);
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(proxy);
        }
        command
            .args(&self.args)
            .envs(self.envs.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log("stdout"))
            .stderr(log("stderr"));
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", self.program.display()));
        reaper::watch(child.id());
        child
    }
}

/// A running process, or one that ran.
#[derive(Debug)]
pub struct Process(Mutex<Running>);

#[derive(Debug)]
struct Running {
    launch: Launch,
    child: Child,
    exit: Option<ExitStatus>,
}

impl Process {
    /// Starts it.
    pub fn start(launch: Launch) -> Self {
        let child = launch.spawn();
        Self(Mutex::new(Running { launch, child, exit: None }))
    }

    /// Kills it, should it still run, and starts the same again; the log files go on.
    pub fn start_again(&self) {
        self.kill9();
        let mut running = self.running();
        running.child = running.launch.spawn();
        running.exit = None;
    }

    /// As [`Process::start_again`], with other arguments.
    pub fn start_again_with(&self, args: Vec<OsString>) {
        self.running().launch.args = args;
        self.start_again();
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.running().child.id()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        self.running().poll().is_none()
    }

    /// SIGKILL, and waits for its end. Nothing happens to one that has ended.
    pub fn kill9(&self) {
        self.running().kill();
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGSTOP: it does nothing more, with all that it holds, until [`Process::resume`].
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Waits for its end: the exit code, 128 + n where signal n ended it, `None` after `bound`.
    pub fn wait_exit(&self, bound: Duration) -> Option<i32> {
        let started = Instant::now();
        loop {
            let over = started.elapsed() > bound;
            let exit = self.running().poll();
            if let Some(exit) = exit {
                return exit.code().or_else(|| exit.signal().map(|signal| 128 + signal));
            }
            if over {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// All that it has written to standard output so far, over all its starts.
    pub fn stdout_text(&self) -> String {
        self.text("stdout")
    }

    /// The lines of JSON that it has written to standard output so far, over all its starts.
    pub fn announced(&self) -> Vec<Value> {
        // A line that is not whole yet is none.
        self.stdout_text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for the `number`th of these lines, from 1.
    #[track_caller]
    pub fn announces(&self, number: usize, bound: Duration) -> Value {
        until("a line of JSON", bound, || {
            assert!(self.is_running(), "it ended: {}", self.stderr_tail());
            self.announced().into_iter().nth(number - 1)
        })
    }

    /// All that it has written to standard error so far, over all its starts.
    pub fn stderr_text(&self) -> String {
        self.text("stderr")
    }

    /// The last lines of standard error, for the message of a failed assertion.
    pub fn stderr_tail(&self) -> String {
        let text = self.stderr_text();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    fn text(&self, suffix: &str) -> String {
        let path = {
            let running = self.running();
            running.launch.folder.join(format!("{}.{suffix}", running.launch.name))
        };
        String::from_utf8_lossy(&fs::read(path).expect("the log file of a started process")).into_owned()
    }

    fn signal(&self, signal: Signal) {
        let mut running = self.running();
        // Not to one that was waited for: the number may be another's by now.
        assert!(running.poll().is_none(), "{} has ended", running.launch.name);
        let pid = i32::try_from(running.child.id()).ok().and_then(Pid::from_raw).expect("a process number");
        kill_process(pid, signal).expect("a signal to a child");
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    fn poll(&mut self) -> Option<ExitStatus> {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().expect("a child can be waited for");
            if self.exit.is_some() {
                reaper::ended(self.child.id());
            }
        }
        self.exit
    }

    fn kill(&mut self) {
        if self.poll().is_none() {
            self.child.kill().expect("SIGKILL to a child");
            self.exit = Some(self.child.wait().expect("a child can be waited for"));
            reaper::ended(self.child.id());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::RunFolder;

    fn shell(folder: &RunFolder, script: &str) -> Process {
        Process::start(Launch {
            name: "shell".into(),
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            envs: vec![("WORD".into(), "hello".into())],
            folder: folder.path().to_owned(),
        })
    }

    #[test]
    fn output_and_exit_code_can_be_read() {
        let folder = RunFolder::new("output");
        let process = shell(&folder, "echo $WORD; echo oh >&2; exit 7");
        assert_eq!(process.wait_exit(Duration::from_secs(5)), Some(7));
        assert_eq!((process.stdout_text().as_str(), process.stderr_text().as_str()), ("hello\n", "oh\n"));
    }

    #[test]
    fn a_paused_process_does_nothing_until_it_is_resumed() {
        let folder = RunFolder::new("pause");
        let process = shell(&folder, "while :; do echo tick; sleep 0.01; done");
        let ticks = || process.stdout_text().len();
        until("a tick", Duration::from_secs(5), || (ticks() > 0).then_some(()));
        process.pause();
        thread::sleep(Duration::from_millis(50));
        let paused = ticks();
        thread::sleep(Duration::from_millis(100));
        assert_eq!(ticks(), paused);
        process.resume();
        until("another tick", Duration::from_secs(5), || (ticks() > paused).then_some(()));
        process.terminate();
        assert_eq!(process.wait_exit(Duration::from_secs(5)), Some(128 + 15));
        process.start_again();
        assert!(process.is_running());
        assert_eq!(process.wait_exit(Duration::from_millis(20)), None);
    }
}
