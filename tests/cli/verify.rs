//! `verify`: the verdict on every envelope of the vectors, from a file and from standard input.

use crate::agent::{only_line, output, parts, program};
use base64::Engine as _;
use navin_test_support::{RunFolder, workspace_dir};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

/// Largest envelope, in bytes.
const LIMIT: usize = 256 * 1024;

/// The identity of the vectors, and their cases.
struct Vectors {
    folder: RunFolder,
    cases: Vec<Value>,
}

impl Vectors {
    fn new(name: &str) -> Self {
        let folder = RunFolder::new(name);
        let path = workspace_dir().join("tests/vectors/envelopes.json");
        let vectors: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let identity = folder.path().join("identity");
        fs::create_dir(&identity).unwrap();
        fs::write(identity.join("config.json"), vectors["config"].to_string()).unwrap();
        fs::write(identity.join("manager.pem"), vectors["manager_pem"].as_str().unwrap()).unwrap();
        Self { folder, cases: vectors["cases"].as_array().unwrap().clone() }
    }

    fn identity(&self) -> String {
        self.folder.path().join("identity").to_str().unwrap().to_owned()
    }

    /// A file with this text.
    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The envelope that is accepted, and a time at which it is.
    fn good(&self) -> (Vec<u8>, String) {
        let case = &self.cases[0];
        assert_eq!(case["expect"]["status"], "accepted");
        (wire(case), now(case))
    }

    fn verify(&self, file: &str, at: &str) -> Output {
        output(&["verify", file, "--identity-dir", &self.identity(), "--at", at])
    }

    /// The same through standard input.
    fn verify_input(&self, input: &[u8], at: &str) -> Output {
        let mut child = Command::new(program())
            .args(["verify", "-", "--identity-dir", &self.identity(), "--at", at])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It reads no more than it needs: the pipe may break.
        let written = child.stdin.take().unwrap().write_all(input);
        assert!(written.is_ok() || input.len() > LIMIT, "{written:?}");
        child.wait_with_output().unwrap()
    }
}

fn wire(case: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(case["wire_b64"].as_str().unwrap()).unwrap()
}

fn now(case: &Value) -> String {
    case["now"].as_str().unwrap().to_owned()
}

/// That the answer is exactly the expected one: exit code, and one line of JSON with no other member.
#[track_caller]
fn assert_answer(output: &Output, expected: &Value, what: &str) {
    let (code, stdout, stderr) = parts(output);
    let mut answer: Value = serde_json::from_str(&only_line(&stdout)).expect("JSON");
    let accepted = expected["status"] == "accepted";
    if !accepted {
        let message = answer.as_object_mut().unwrap().remove("message").expect("a message");
        assert!(message.as_str().is_some_and(|text| !text.is_empty()), "{what}: {message}");
    }
    assert_eq!(&answer, expected, "{what}");
    assert_eq!((code, stderr.as_str()), (Some(i32::from(!accepted)), ""), "{what}");
}

#[test]
fn every_envelope_of_the_vectors_gets_its_verdict_from_a_file_and_from_standard_input() {
    let vectors = Vectors::new("verify-vectors");
    assert!(vectors.cases.len() > 60, "the vectors have shrunk");
    for case in &vectors.cases {
        let what = case["name"].as_str().unwrap();
        let bytes = wire(case);
        let file = vectors.file("command.json", &bytes);
        assert_answer(&vectors.verify(&file, &now(case)), &case["expect"], what);
        assert_answer(&vectors.verify_input(&bytes, &now(case)), &case["expect"], what);
    }
}

#[test]
fn without_at_it_is_judged_now() {
    let vectors = Vectors::new("verify-now");
    let expired = vectors.cases.iter().find(|case| case["expect"]["reason"] == "expired").unwrap();
    let file = vectors.file("command.json", &wire(expired));
    let output = output(&["verify", &file, &format!("--identity-dir={}", vectors.identity())]);
    let (code, stdout, _) = parts(&output);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    // Either way the window of the vectors is not now's.
    assert!(["expired", "not_yet_valid"].contains(&answer["reason"].as_str().unwrap()), "{answer}");
    assert_eq!(code, Some(1));
}

#[test]
fn the_size_limit_is_256_kib_and_more_is_not_even_read() {
    let vectors = Vectors::new("verify-size");
    let (mut bytes, at) = vectors.good();
    bytes.resize(LIMIT, b' ');
    let accepted = json!({"status": "accepted"});
    assert_answer(&vectors.verify(&vectors.file("command.json", &bytes), &at), &accepted, "the limit");
    assert_answer(&vectors.verify_input(&bytes, &at), &accepted, "the limit");
    let refused = json!({"status": "refused", "reason": "invalid_envelope"});
    for size in [LIMIT + 1, 32 * 1024 * 1024] {
        bytes.resize(size, b' ');
        let file = vectors.file("command.json", &bytes);
        assert_answer(&vectors.verify(&file, &at), &refused, "beyond the limit");
        assert_answer(&vectors.verify_input(&bytes, &at), &refused, "beyond the limit");
    }
    assert_answer(&vectors.verify_input(b"", &at), &refused, "empty");
    assert_answer(&vectors.verify("/dev/zero", &at), &refused, "without an end");
}

#[test]
fn a_file_that_cannot_be_read_is_exit_66_and_named() {
    let vectors = Vectors::new("verify-missing");
    let (_, at) = vectors.good();
    for file in [vectors.folder.path().join("absent.json"), vectors.folder.path().to_owned()] {
        let file = file.to_str().unwrap();
        let (code, stdout, stderr) = parts(&vectors.verify(file, &at));
        assert_eq!((code, stdout.as_str()), (Some(66), ""));
        assert!(only_line(&stderr).contains(file), "{stderr}");
    }
}

#[test]
fn a_time_of_another_form_is_exit_64_and_named() {
    let vectors = Vectors::new("verify-at");
    let (bytes, _) = vectors.good();
    let file = vectors.file("command.json", &bytes);
    for at in
        ["", "now", "2026-11-30", "2026-11-30T12:00:00", "2026-11-30T12:00:00+00:00", "2026-11-30 12:00:00Z"]
    {
        let (code, stdout, stderr) = parts(&vectors.verify(&file, at));
        assert_eq!((code, stdout.as_str()), (Some(64), ""), "{at:?}");
        assert!(only_line(&stderr).contains("--at"), "{stderr}");
    }
}

#[test]
fn an_identity_that_does_not_verify_is_exit_78_and_named() {
    let vectors = Vectors::new("verify-identity");
    let (bytes, at) = vectors.good();
    let file = vectors.file("command.json", &bytes);
    for name in ["manager.pem", "config.json"] {
        let path = PathBuf::from(vectors.identity()).join(name);
        let good = fs::read(&path).unwrap();
        for bad in [&b""[..], b"garbage"] {
            fs::write(&path, bad).unwrap();
            let (code, stdout, stderr) = parts(&vectors.verify(&file, &at));
            assert_eq!((code, stdout.as_str()), (Some(78), ""), "{name}");
            assert!(only_line(&stderr).contains(path.to_str().unwrap()), "{stderr}");
        }
        fs::write(&path, good).unwrap();
    }
    assert_answer(&vectors.verify(&file, &at), &json!({"status": "accepted"}), "as it was");
}

#[test]
fn verify_touches_nothing() {
    let vectors = Vectors::new("verify-touch");
    let (bytes, at) = vectors.good();
    let file = vectors.file("command.json", &bytes);
    let before = tree(vectors.folder.path());
    for at in [at.as_str(), "2000-01-01T00:00:00Z", "never"] {
        let output = Command::new(program())
            .args(["verify", &file, "--identity-dir", &vectors.identity(), "--at", at])
            .current_dir(vectors.folder.path())
            .env("HOME", vectors.folder.path())
            .env("TMPDIR", vectors.folder.path())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(if at == "never" { 64 } else { i32::from(at.starts_with("2000")) })
        );
    }
    assert_eq!(tree(vectors.folder.path()), before);
}

/// Every file below a folder: path, contents, and when it was written.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.push((
                path.clone(),
                fs::read(&path).unwrap(),
                path.metadata().unwrap().modified().unwrap(),
            ));
        }
    }
    found.sort();
    found
}
