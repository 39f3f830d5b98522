//! A model of the manager's gateway, CONTRACT section 4.

use crate::api::Reply;
use crate::host::true_time;
use crate::identity::{CLUSTER, TENANT, sign, sign_as_nobody};
use jiff::SignedDuration;
use serde_json::{Value, json};

/// A command without a receipt is delivered again after this time, in microseconds.
const AGAIN: u64 = 15_000_000;
/// Most commands of one answer.
const MOST: usize = 64;
/// Most bytes of them.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// One command as the manager keeps it.
#[derive(Clone, Debug)]
pub struct Issued {
    /// `command_id`
    pub id: String,
    /// `nonce`
    pub nonce: String,
    /// `sequence`
    pub sequence: u64,
    /// `managedcomponent.apply`, `managedcomponent.delete` or `inventory.report`
    pub operation: String,
    /// The component, if it has one.
    pub name: Option<String>,
    /// The spec of an apply.
    pub spec: Option<Value>,
    /// The window, in true microseconds.
    pub window: (i64, i64),
    /// As it is delivered.
    pub envelope: String,
    /// When it was delivered last.
    pub delivered: Option<u64>,
    /// The receipt that is shown.
    pub shown: Option<Value>,
    /// The gateway delivers it; else it comes by a file alone.
    pub offered: bool,
    /// Since when nobody delivers it any more: its file was taken back.
    pub taken_back: Option<u64>,
}

impl Issued {
    /// Whether the shown receipt is the recorded outcome.
    #[must_use]
    pub fn recorded(&self) -> bool {
        self.shown.as_ref().is_some_and(|receipt| receipt["recorded"] == true)
    }
}

/// The manager.
#[derive(Default)]
pub struct Manager {
    /// In the order of their sequence.
    pub commands: Vec<Issued>,
    /// What a hostile gateway slips into the next answers.
    pub slipped: Vec<String>,
    /// Receipts that were refused, for the trace.
    pub strange: u64,
}

impl Manager {
    /// Approves a command at `now`, good for `valid_s` seconds.
    pub fn approve(
        &mut self,
        now: u64,
        operation: &str,
        name: Option<&str>,
        spec: Option<&Value>,
        valid_s: i64,
    ) {
        let sequence = self.commands.len() as u64 + 1;
        let seconds = i64::try_from(now / 1_000_000).unwrap_or(0);
        let window = (seconds - 60, seconds + valid_s);
        let payload = payload(sequence, operation, &arguments(name, spec), window);
        self.commands.push(Issued {
            id: text(&payload, "command_id"),
            nonce: text(&payload, "nonce"),
            sequence,
            operation: operation.to_owned(),
            name: name.map(str::to_owned),
            spec: spec.cloned(),
            window: (window.0 * 1_000_000, window.1 * 1_000_000),
            envelope: sign(&payload).to_string(),
            delivered: None,
            shown: None,
            offered: true,
            taken_back: None,
        });
    }

    /// After a restart every unanswered command is due.
    pub fn restart(&mut self) {
        for command in &mut self.commands {
            command.delivered = None;
        }
    }

    /// The commands that are due at `now`; None where there are none.
    pub fn take_due(&mut self, now: u64) -> Option<Reply> {
        let moment = now.cast_signed();
        let due = self.commands.iter_mut().filter(|command| {
            !command.recorded()
                && command.offered
                && (command.window.0..=command.window.1).contains(&moment)
                && command.delivered.is_none_or(|at| now.saturating_sub(at) >= AGAIN)
        });
        let (mut envelopes, mut bytes) = (Vec::new(), 0);
        for command in due.take(MOST) {
            bytes += command.envelope.len();
            if bytes > MOST_BYTES {
                break;
            }
            command.delivered = Some(now);
            envelopes.push(command.envelope.clone());
        }
        envelopes.append(&mut self.slipped);
        envelopes.truncate(MOST);
        (!envelopes.is_empty()).then(|| answer(&envelopes))
    }

    /// What a poll is answered whose wait has run out.
    #[must_use]
    pub fn nothing() -> Reply {
        answer(&[])
    }

    /// Takes a receipt.
    pub fn receipt(&mut self, body: &[u8]) -> Reply {
        let Ok(receipt) = serde_json::from_slice::<Value>(body) else {
            return error(400, "malformed");
        };
        if receipt["tenant_id"] != TENANT || receipt["cluster_id"] != CLUSTER {
            return error(403, "other_cluster");
        }
        let Some(command) =
            self.commands.iter_mut().find(|command| receipt["command_id"] == command.id.as_str())
        else {
            return error(404, "unknown_command");
        };
        if receipt["nonce"] != command.nonce.as_str() {
            return error(400, "malformed");
        }
        if command.recorded() {
            return Reply::of(&json!({ "recorded": false }));
        }
        let original = &receipt["original"];
        let takes_over = receipt["reason"] == "nonce_replayed"
            && original["recorded"] == true
            && original["command_id"] == receipt["command_id"]
            && original["nonce"] == receipt["nonce"];
        command.shown = Some(if takes_over { original.clone() } else { receipt });
        Reply::of(&json!({ "recorded": true }))
    }

    /// The command with this identifier.
    #[must_use]
    pub fn command(&self, id: &str) -> Option<&Issued> {
        self.commands.iter().find(|command| command.id == id)
    }

    /// Envelopes that must never have an effect, made of a good one: signed by another key, changed after
    /// signing, and for another tenant or cluster (by the manager's own hand).
    #[must_use]
    pub fn forged(&self, index: usize, kind: u8) -> Option<String> {
        let good: Value = serde_json::from_str(&self.commands.get(index)?.envelope).ok()?;
        let mut payload = good["payload"].clone();
        payload["nonce"] = json!(format!("forged-nonce-{kind}-{index:020}"));
        let mut forged = match kind {
            0 => sign_as_nobody(&payload),
            1 => {
                payload["tenant_id"] = json!("another");
                sign(&payload)
            }
            2 => {
                payload["target"]["id"] = json!("another");
                sign(&payload)
            }
            _ => good,
        };
        if kind > 2 {
            forged["payload"]["arguments"] = json!({ "name": "component-0", "spec": { "forged": true } });
        }
        Some(forged.to_string())
    }
}

fn answer(envelopes: &[String]) -> Reply {
    let body = format!("{{\"commands\":[{}]}}", envelopes.join(","));
    Reply { status: 200, body: body.into_bytes(), retry_after: None }
}

/// An error of the gateway.
#[must_use]
pub fn error(status: u16, code: &str) -> Reply {
    Reply::with(status, &json!({ "error": code, "message": "" }))
}

fn arguments(name: Option<&str>, spec: Option<&Value>) -> Value {
    match (name, spec) {
        (Some(name), Some(spec)) => json!({ "name": name, "spec": spec }),
        (Some(name), None) => json!({ "name": name }),
        _ => json!({}),
    }
}

fn payload(sequence: u64, operation: &str, arguments: &Value, window: (i64, i64)) -> Value {
    let time = |second: i64| format!("{:.0}", true_time(0) + SignedDuration::from_secs(second));
    json!({
        "type": "navin.command/v1",
        "command_id": format!("00000000-0000-4000-8000-{sequence:012}"),
        "tenant_id": TENANT,
        "target": { "kind": "cluster", "id": CLUSTER },
        "operation": operation,
        "arguments": arguments,
        "nonce": format!("nonce-{sequence:020}"),
        "sequence": sequence,
        "not_before": time(window.0),
        "not_after": time(window.1),
    })
}

fn text(payload: &Value, member: &str) -> String {
    payload[member].as_str().unwrap_or("").to_owned()
}
