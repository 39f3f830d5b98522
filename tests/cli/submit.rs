//! `submit`, with the test in the agent's place: what it puts into the folder, what it waits for, what it
//! says and leaves behind.

use crate::agent::{SOON, only_line, parts, program};
use navin_test_support::{RunFolder, until};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An inbox without an agent.
struct Bench(RunFolder);

/// So many seconds before now, as the contract writes times.
fn ago(seconds: i64) -> String {
    let time = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(seconds);
    format!("{time:.0}")
}

impl Bench {
    fn new(name: &str) -> Self {
        let bench = Self(RunFolder::new(name));
        fs::create_dir(bench.inbox()).unwrap();
        bench
    }

    fn inbox(&self) -> PathBuf {
        self.0.path().join("inbox")
    }

    /// What the agent would have written so many seconds ago.
    fn status(&self, leader: Option<&str>, seconds: i64) {
        let status = json!({ "replica": "agent-a", "leads": leader == Some("agent-a"), "leader": leader,
            "written_at": ago(seconds) });
        // Renamed, as the agent does: never half of it.
        fs::write(self.inbox().join(".part"), status.to_string()).unwrap();
        fs::rename(self.inbox().join(".part"), self.inbox().join(".status.json")).unwrap();
    }

    /// Starts `submit -` and gives it `input`.
    fn submit(&self, wait_s: u64, input: &[u8]) -> Child {
        let mut child = Command::new(program())
            .args(["submit", "-", "--wait-s", &wait_s.to_string(), "--inbox"])
            .arg(self.inbox())
            .current_dir("/")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child
    }

    /// The command that was put into the folder, as soon as it is there.
    #[track_caller]
    fn submitted(&self) -> PathBuf {
        let name =
            until("the command", SOON, || self.names().into_iter().find(|name| name.starts_with("submit-")));
        self.inbox().join(name)
    }

    fn names(&self) -> Vec<String> {
        fs::read_dir(self.inbox())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".status.json")
            .collect()
    }
}

fn end(child: Child) -> (Option<i32>, String, String) {
    parts(&child.wait_with_output().unwrap())
}

fn receipt_of(command: &Path) -> PathBuf {
    PathBuf::from(command.to_str().unwrap().replace(".json", ".receipt.json"))
}

#[test]
fn a_command_is_put_under_a_name_of_its_own_and_its_receipt_printed() {
    let bench = Bench::new("submit-good");
    bench.status(Some("agent-a"), 0);
    let mut seen = Vec::new();
    for (status, code) in [("succeeded", 0), ("failed", 1), ("refused", 1)] {
        let child = bench.submit(20, b"any bytes \xff");
        let command = bench.submitted();
        assert_eq!(fs::read(&command).unwrap(), b"any bytes \xff", "the agent alone judges it");
        let receipt =
            json!({ "type": "navin.receipt/v1", "status": status, "result": { "a": [1, "\u{e4}"] } });
        fs::write(bench.inbox().join(".r"), format!("{receipt}\n")).unwrap();
        fs::rename(bench.inbox().join(".r"), receipt_of(&command)).unwrap();
        let (found, stdout, stderr) = end(child);
        assert_eq!((found, stderr.as_str()), (Some(code), ""));
        assert_eq!(serde_json::from_str::<Value>(&only_line(&stdout)).unwrap(), receipt);
        assert!(bench.names().is_empty(), "both files are gone: {:?}", bench.names());
        let name = command.file_name().unwrap().to_str().unwrap().to_owned();
        let random = name.trim_start_matches("submit-").trim_end_matches(".json");
        assert!(random.len() == 32 && random.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        assert!(!seen.contains(&name));
        seen.push(name);
    }
}

impl Bench {
    /// Submits a command, answers it with `receipt`, and gives how it ended.
    fn answered(&self, receipt: &[u8]) -> (Option<i32>, String, String) {
        self.status(Some("agent-a"), 0);
        let child = self.submit(20, b"{}");
        let command = self.submitted();
        fs::write(self.inbox().join(".r"), receipt).unwrap();
        fs::rename(self.inbox().join(".r"), receipt_of(&command)).unwrap();
        end(child)
    }
}

#[test]
fn of_a_command_that_was_submitted_before_the_exit_code_says_what_became_of_it() {
    let bench = Bench::new("submit-again");
    for (original, id, code) in
        [("succeeded", "one", 0), ("failed", "one", 1), ("refused", "one", 1), ("succeeded", "another", 1)]
    {
        let receipt = json!({ "status": "refused", "reason": "nonce_replayed", "command_id": "one",
            "original": { "status": original, "command_id": id } });
        assert_eq!(bench.answered(receipt.to_string().as_bytes()).0, Some(code), "{original} {id}");
    }
    let other = json!({ "status": "refused", "reason": "expired", "original": { "status": "succeeded" } });
    assert_eq!(bench.answered(other.to_string().as_bytes()).0, Some(1));
}

#[test]
fn an_answer_that_is_no_receipt_or_too_large_is_exit_70_and_is_left_there() {
    let bench = Bench::new("submit-strange");
    for answer in [b"\x1b[2J".to_vec(), b"{}".to_vec(), vec![b' '; 16 * 1024 * 1024 + 1]] {
        let (code, stdout, stderr) = bench.answered(&answer);
        assert_eq!((code, stdout.as_str()), (Some(70), ""), "{stderr}");
        let [left] = &bench.names()[..] else { panic!("{:?}", bench.names()) };
        assert!(only_line(&stderr).contains(left.as_str()), "{stderr}");
        let left = bench.inbox().join(left);
        assert_eq!(fs::metadata(&left).unwrap().len(), u64::try_from(answer.len()).unwrap());
        fs::remove_file(left).unwrap();
    }
}

#[test]
fn a_replica_that_does_not_lead_is_exit_3_and_names_the_leader() {
    let bench = Bench::new("submit-follower");
    bench.status(Some("agent-b"), 0);
    let (code, stdout, stderr) = end(bench.submit(20, b"{}"));
    assert_eq!((code, stdout.as_str()), (Some(3), ""), "{stderr}");
    assert!(only_line(&stderr).contains("agent-b"), "{stderr}");
    assert!(bench.names().is_empty(), "nothing was put there");

    // It leads no longer while we wait.
    bench.status(Some("agent-a"), 0);
    let child = bench.submit(20, b"{}");
    bench.submitted();
    bench.status(None, 0);
    bench.status(Some("agent-b"), 0);
    let (code, _, stderr) = end(child);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("agent-b") && stderr.contains("may have been begun"), "{stderr}");
    assert!(bench.names().is_empty(), "it is taken back");
}

#[test]
fn where_no_agent_runs_it_says_so() {
    let bench = Bench::new("submit-nobody");
    let (code, _, stderr) = end(bench.submit(1, b"{}"));
    assert_eq!(code, Some(69), "{stderr}");
    assert!(only_line(&stderr).contains(bench.inbox().to_str().unwrap()), "{stderr}");
    for garbage in ["", "{}", "[]", "{\"leads\": true}"] {
        fs::write(bench.inbox().join(".status.json"), garbage).unwrap();
        assert_eq!(end(bench.submit(1, b"{}")).0, Some(69), "{garbage}");
    }
    bench.status(Some("agent-a"), 100);
    let (code, _, stderr) = end(bench.submit(1, b"{}"));
    assert_eq!(code, Some(69), "written long ago, by an agent that runs no more: {stderr}");
    fs::remove_dir_all(bench.inbox()).unwrap();
    assert_eq!(end(bench.submit(1, b"{}")).0, Some(69), "no folder");
}

#[test]
fn without_a_leader_or_a_receipt_in_time_it_is_exit_75_and_nothing_is_left() {
    let bench = Bench::new("submit-late");
    bench.status(None, 0);
    let (code, _, stderr) = end(bench.submit(1, b"{}"));
    assert_eq!(code, Some(75), "{stderr}");
    assert!(only_line(&stderr).contains("nothing was submitted"), "{stderr}");

    bench.status(Some("agent-a"), 0);
    let child = bench.submit(3, b"{}");
    let command = bench.submitted();
    // A link is nobody's receipt.
    fs::write(bench.0.path().join("elsewhere"), "{\"status\": \"succeeded\"}").unwrap();
    symlink(bench.0.path().join("elsewhere"), receipt_of(&command)).unwrap();
    let (code, stdout, stderr) = end(child);
    assert_eq!((code, stdout.as_str()), (Some(75), ""), "{stderr}");
    assert!(only_line(&stderr).contains("no receipt within 3 s"), "{stderr}");
    assert!(bench.names().is_empty(), "{:?}", bench.names());
}

#[test]
fn what_is_submitted_is_a_file_or_standard_input_and_is_limited() {
    let bench = Bench::new("submit-file");
    bench.status(Some("agent-a"), 0);
    let inbox = bench.inbox();
    let missing = Command::new(program())
        .args(["submit", "/nowhere/command.json", "--inbox", inbox.to_str().unwrap()])
        .output()
        .unwrap();
    let (code, _, stderr) = parts(&missing);
    assert_eq!(code, Some(66));
    assert!(only_line(&stderr).contains("/nowhere/command.json"), "{stderr}");

    let file = bench.0.path().join("command.json");
    fs::write(&file, vec![b' '; 300 * 1024]).unwrap();
    let child = Command::new(program())
        .args(["submit", file.to_str().unwrap(), "--wait-s=3", &format!("--inbox={}", inbox.display())])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let command = bench.submitted();
    assert_eq!(fs::metadata(&command).unwrap().len(), 256 * 1024 + 1, "enough to be refused as too large");
    assert_eq!(end(child).0, Some(75));
}
