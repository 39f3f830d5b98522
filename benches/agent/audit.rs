//! Who asked what of the API server and when, by its own audit log: the same clock for every program.

use crate::units::milliseconds;
use jiff::Timestamp;
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Mutex;

/// One call that was answered, or one watch that ended.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The token's id where it has one (a service account's), else the user agent.
    pub(crate) who: String,
    /// As RBAC has it: `get`, `update`, `patch`…
    pub(crate) verb: String,
    /// The plural of its kind, or the path where there is none.
    pub(crate) resource: String,
    /// HTTP status.
    pub(crate) status: u64,
    pub(crate) received: Timestamp,
    pub(crate) answered: Timestamp,
}

impl Call {
    /// Whether it would change something.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Whether it is one that was taken.
    pub(crate) fn succeeded(&self) -> bool {
        self.status < 300
    }
}

/// The log, read as it grows.
#[derive(Debug)]
pub(crate) struct Audit {
    file: PathBuf,
    read: Mutex<(u64, Vec<Call>)>,
}

impl Audit {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, read: Mutex::new((0, vec![])) }
    }

    /// All calls that were received at `since` or later and are answered.
    pub(crate) fn since(&self, since: Timestamp) -> Vec<Call> {
        let mut read = self.read.lock().expect("no reader panics");
        let (offset, calls) = &mut *read;
        let mut file = File::open(&self.file).expect("the audit log");
        file.seek(SeekFrom::Start(*offset)).expect("a file");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("the audit log, in UTF-8");
        // The last line may be half written.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        *offset += whole as u64;
        calls.extend(text[..whole].lines().filter_map(call));
        let earlier = calls.iter().rev().take_while(|call| call.answered >= since).count();
        let recent = &calls[calls.len() - earlier..];
        recent.iter().filter(|call| call.received >= since).cloned().collect()
    }

    /// How long the calls of one program took inside the API server, watches not counted, in milliseconds.
    pub(crate) fn inside(&self, who: &str, since: Timestamp) -> f64 {
        let calls = self.of(who, since);
        let took = |call: &Call| milliseconds(call.answered.duration_since(call.received).unsigned_abs());
        calls.iter().filter(|call| call.verb != "watch").map(took).sum()
    }

    /// The same of one program.
    pub(crate) fn of(&self, who: &str, since: Timestamp) -> Vec<Call> {
        let mut calls = self.since(since);
        calls.retain(|call| call.who == who);
        calls
    }
}

fn call(line: &str) -> Option<Call> {
    let event: Value = serde_json::from_str(line).ok()?;
    if event["stage"] != "ResponseComplete" {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let credential = &event["user"]["extra"]["authentication.kubernetes.io/credential-id"][0];
    let of = &event["objectRef"];
    Some(Call {
        who: credential.as_str().map_or_else(|| text(&event["userAgent"]), str::to_owned),
        verb: text(&event["verb"]),
        resource: text(if of.is_null() { &event["requestURI"] } else { &of["resource"] }),
        status: event["responseStatus"]["code"].as_u64().unwrap_or(0),
        received: event["requestReceivedTimestamp"].as_str()?.parse().ok()?,
        answered: event["stageTimestamp"].as_str()?.parse().ok()?,
    })
}
