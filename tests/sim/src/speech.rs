//! The readable side of a trace: the agent's own log lines, and calls and changes in few words.

use crate::api::{Effect, Reply};
use crate::workload::Item;
use log::{LevelFilter, Log, Metadata, Record};
use navin_cluster_agent::http::Request;
use serde_json::Value;
use std::cell::RefCell;
use std::fmt::Write as _;

#[derive(Default)]
struct Said {
    place: String,
    on: bool,
    lines: Vec<String>,
}

thread_local! {
    static SAID: RefCell<Said> = RefCell::default();
}

struct Collector;

impl Log for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.target().starts_with("navin_cluster_agent") {
            SAID.with_borrow_mut(|said| {
                if said.on {
                    let line = format!("{}     log {} {}", said.place, record.level(), record.args());
                    said.lines.push(line);
                }
            });
        }
    }

    fn flush(&self) {}
}

/// Lets the agent's log lines into traces that keep words.
pub fn listen() {
    if log::set_logger(&Collector).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

/// Which thread runs next.
pub(crate) fn set(_now: u64, slot: usize, role: &str, on: bool) {
    SAID.with_borrow_mut(|said| {
        said.on = on;
        if on {
            said.place = format!("r{slot} {role:<8}");
        }
    });
}

/// What was logged since.
pub(crate) fn take() -> Vec<String> {
    SAID.with_borrow_mut(|said| std::mem::take(&mut said.lines))
}

fn short(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
    if let Some(state) = object.pointer("/data/state.json").and_then(Value::as_str) {
        return format!("rv={} {}", text("/metadata/resourceVersion"), state_words(state));
    }
    if let Some(spec) = object.pointer("/spec/holderIdentity") {
        let transitions = object.pointer("/spec/leaseTransitions").cloned().unwrap_or_default();
        return format!("rv={} holder={spec} transitions={transitions}", text("/metadata/resourceVersion"));
    }
    if object.get("reason").is_some() {
        return format!("{}: {}", text("/reason"), text("/message"));
    }
    if let Some(commands) = object.get("commands").and_then(Value::as_array) {
        let ids: Vec<String> = commands.iter().map(|c| short_command(&c["payload"])).collect();
        return format!("[{}]", ids.join("; "));
    }
    if object.get("recorded").is_some() {
        return format!("{} {} recorded={}", text("/command_id"), text("/status"), object["recorded"]);
    }
    let part = |pointer: &str| {
        let words = object.pointer(pointer).cloned().unwrap_or_default().to_string();
        words.get(..300).map_or(words.clone(), |start| format!("{start}..."))
    };
    let mut words = format!(
        "rv={} uid={} spec={} annotations={}",
        text("/metadata/resourceVersion"),
        text("/metadata/uid"),
        part("/spec"),
        part("/metadata/annotations")
    );
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        words.push_str(" TERMINATING");
    }
    words
}

fn short_command(payload: &Value) -> String {
    format!("#{} {} {}", payload["sequence"], payload["operation"], payload["arguments"])
}

fn state_words(text: &str) -> String {
    let Ok(state) = serde_json::from_str::<Value>(text) else { return "unreadable".to_owned() };
    let mut words = format!("term={} holder={} lost_at={}", state["term"], state["holder"], state["lost_at"]);
    for record in state["commands"].as_object().into_iter().flatten().map(|(_, record)| record) {
        let phase = &record["phase"];
        let done = &phase["done"];
        let how = if done.is_null() {
            "accepted".to_owned()
        } else {
            let acknowledged = if done["acknowledged"] == true { "+" } else { "" };
            let reason = done["receipt"]["reason"].as_str().unwrap_or("");
            format!("{}{}{acknowledged}", done["receipt"]["status"].as_str().unwrap_or("?"), reason)
        };
        let _infallible = write!(words, " #{}:{how}", record["sequence"]);
    }
    words
}

/// A request in few words.
pub(crate) fn describe(request: &Request) -> String {
    let path = request.path.split("?timeout").next().unwrap_or("");
    let path = path.rsplit('/').next().unwrap_or(path);
    let body = request.body.as_deref().and_then(|body| serde_json::from_slice::<Value>(body).ok());
    match body {
        Some(body) if body.get("preconditions").is_some() => format!("{path} {}", body["preconditions"]),
        Some(body) if body.get("leader_since").is_some() => path.to_owned(),
        Some(body) => format!("{path} {}", short(&body)),
        None => path.to_owned(),
    }
}

/// An answer in few words.
pub(crate) fn answer(reply: &Reply) -> String {
    let body = reply.json();
    if body.get("items").is_some() { String::new() } else { short(&body) }
}

/// An item of the workload in few words.
pub(crate) fn item(item: &Item, number: u64) -> String {
    let words = format!("{item:?}");
    format!("ITEM {} item={number}", words.get(..200).unwrap_or(&words))
}

/// A receipt in few words.
pub(crate) fn receipt(bytes: &[u8]) -> String {
    let receipt: Value = serde_json::from_slice(bytes).unwrap_or_default();
    format!("{} {} {}", receipt["command_id"], receipt["status"], receipt["reason"])
}

/// The reason of a receipt, or its status.
pub(crate) fn reason(bytes: &[u8]) -> String {
    let receipt: Value = serde_json::from_slice(bytes).unwrap_or_default();
    receipt["reason"].as_str().or(receipt["status"].as_str()).unwrap_or("?").to_owned()
}

/// A change of the store in few words.
pub(crate) fn effect(effect: &Effect) -> String {
    let after = effect.after.as_ref().map_or_else(|| "GONE".to_owned(), short);
    format!("   = {:?} {}: {after}", effect.kind, effect.name)
}
