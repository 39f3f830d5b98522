//! What operators do from a shell, over the REST API and with its rights alone: what can be asked for ([`cli`]), and how
//! it is shown ([`show`]). Imports [`process`](crate::process) alone, and nothing of the manager that it calls; only
//! the command line may import it.
#![cfg_attr(
    not(test),
    expect(clippy::indexing_slicing, reason = "JSON by name alone: what is missing is null")
)]

pub(crate) mod cli;
mod client;
pub(crate) mod show;
mod spec;
mod trouble;

use cli::{Form, OperatorTask, Sending, Server, Target};
use client::Client;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::slice::from_ref;
use std::time::{Duration, Instant};
use trouble::Trouble;

/// Between two looks at a command that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Entries of a page.
const PAGE: u64 = 500;

/// Does what is asked for.
pub(crate) fn run(task: OperatorTask) -> Result<(), Trouble> {
    let cluster = task.cluster().map(str::to_owned);
    perform(task).map_err(|trouble| match cluster {
        Some(cluster) => trouble.of_cluster(&cluster),
        None => trouble,
    })
}

fn perform(task: OperatorTask) -> Result<(), Trouble> {
    match task {
        OperatorTask::Clusters { server, name: None, .. } => list_clusters(&server),
        OperatorTask::Clusters { server, name: Some(name), register: None, .. } => {
            show_cluster(&server, &name)
        }
        OperatorTask::Clusters { server, name: Some(name), register: Some(namespace), kubeconfig } => {
            let mut body = json!({ "cluster_id": name, "namespace": namespace });
            if let Some(path) = kubeconfig {
                body["kubeconfig"] = spec::read(&path)?.into();
            }
            let cluster = Client::new(&server)?.post("/api/v1/clusters", &body)?;
            show::print(server.output, &cluster, from_ref(&cluster), &show::CLUSTERS)
        }
        OperatorTask::ImportRbac(target) => {
            show::text(&Client::new(&target.server)?.get_text(&target.path("import-rbac")?)?)
        }
        OperatorTask::Identity { target, gateway_url, settings } => {
            let mut body = json!({ "gateway_url": gateway_url });
            for setting in settings {
                let (name, number) = setting.split_once('=').unwrap_or((&setting, ""));
                let expected =
                    || Trouble::Usage(format!("--set {setting}: expected NAME=N, N a whole number"));
                let number: u64 = number.parse().map_err(|_| expected())?;
                body[name] = number.into();
            }
            let issued = Client::new(&target.server)?.post(&target.path("agent")?, &body)?;
            show::tell("a new identity is issued, and any before it revoked: apply this now");
            match target.server.output {
                Form::Table => show::text(issued["secret_yaml"].as_str().unwrap_or_default()),
                form => show::whole(form, &issued),
            }
        }
        OperatorTask::Manifests { target, image } => {
            let path = target.path(&format!("agent/manifests?image={}", encode(&image)))?;
            show::text(&Client::new(&target.server)?.get_text(&path)?)
        }
        OperatorTask::Apply { target, name, file, sending } => {
            let spec = spec::parse(&file, &spec::read(&file)?, &name)?;
            send(&target, "managedcomponent.apply", &json!({ "name": name, "spec": spec }), &sending)
        }
        OperatorTask::Delete { target, name, sending } => {
            send(&target, "managedcomponent.delete", &json!({ "name": name }), &sending)
        }
        OperatorTask::Inventory(target) => {
            let inventory = Client::new(&target.server)?.get(&target.path("inventory")?)?;
            show::whole(target.server.output, &inventory)
        }
        OperatorTask::Commands { target, command: None, limit } => {
            let commands =
                pages(&Client::new(&target.server)?, &target.path("commands")?, "commands", limit)?;
            let document = json!({ "commands": commands });
            show::print(target.server.output, &document, &commands, &show::COMMANDS)
        }
        OperatorTask::Commands { target, command: Some(command), .. } => {
            let shown = Client::new(&target.server)?.get(&target.command(&command)?)?;
            show::whole(target.server.output, &shown)
        }
        OperatorTask::Wait { target, command, timeout } => {
            wait(&Client::new(&target.server)?, &target, &command, timeout, &Value::Null)
        }
        OperatorTask::Audit { server, limit } => {
            let entries = pages(&Client::new(&server)?, "/api/v1/audit", "entries", limit)?;
            show::print(server.output, &json!({ "entries": entries }), &entries, &show::AUDIT)
        }
    }
}

impl Target {
    /// The path of what is the cluster's.
    fn path(&self, rest: &str) -> Result<String, Trouble> {
        Ok(format!("/api/v1/clusters/{}/kubernetes/{rest}", encode(self.cluster()?)))
    }

    /// The path of one of its commands.
    fn command(&self, command_id: &str) -> Result<String, Trouble> {
        self.path(&format!("commands/{}", encode(command_id)))
    }
}

fn list_clusters(server: &Server) -> Result<(), Trouble> {
    let clusters = pages(&Client::new(server)?, "/api/v1/clusters", "clusters", u64::MAX)?;
    show::print(server.output, &json!({ "clusters": clusters }), &clusters, &show::CLUSTERS)
}

fn show_cluster(server: &Server, name: &str) -> Result<(), Trouble> {
    let cluster = Client::new(server)?.get(&format!("/api/v1/clusters/{}", encode(name)))?;
    show::print(server.output, &cluster, from_ref(&cluster), &show::CLUSTERS)?;
    match (server.output, cluster["components"].as_array()) {
        (Form::Table, Some(components)) if !components.is_empty() => {
            show::text(&format!("\n{}", show::table(components, &show::COMPONENTS)))
        }
        _ => Ok(()),
    }
}

/// Queues a command, and waits for it where that is asked for.
fn send(target: &Target, operation: &str, arguments: &Value, sending: &Sending) -> Result<(), Trouble> {
    let client = Client::new(&target.server)?;
    let mut body = json!({ "operation": operation, "arguments": arguments });
    if let Some(seconds) = sending.valid_for_s {
        body["valid_for_s"] = seconds.into();
    }
    let command = client.post(&target.path("commands")?, &body)?;
    match command["command_id"].as_str() {
        Some(command_id) if sending.wait => wait(&client, target, command_id, sending.timeout, &command),
        _ => show::print(target.server.output, &command, from_ref(&command), &show::COMMANDS),
    }
}

/// Waits for a command's outcome. A server that does not answer meanwhile is asked again, for as long
/// as the wait may take; one that says when to ask again (`Retry-After`) is asked then, and also where
/// no time was given, until the command has expired, as far as that is `known`.
fn wait(
    client: &Client,
    target: &Target,
    command_id: &str,
    timeout: Option<u64>,
    known: &Value,
) -> Result<(), Trouble> {
    let path = target.command(command_id)?;
    let end = timeout.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    let (mut expires, mut last) = (expiry(known), known["status"].as_str().unwrap_or_default().to_owned());
    if !last.is_empty() {
        show::tell(&format!("{command_id}: {last}"));
    }
    loop {
        let pause = match client.get(&path) {
            Ok(command) => {
                let status = command["status"].as_str().unwrap_or_default().to_owned();
                if status != last {
                    show::tell(&format!("{command_id}: {status}"));
                    last.clone_from(&status);
                }
                if !matches!(status.as_str(), "queued" | "delivered") {
                    show::print(target.server.output, &command, from_ref(&command), &show::COMMANDS)?;
                    if status == "succeeded" {
                        return Ok(());
                    }
                    let reason = command["receipt"]["reason"].as_str();
                    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
                    return Err(Trouble::Outcome { command_id: command_id.to_owned(), status, reason });
                }
                expires = expiry(&command);
                LOOK_EVERY
            }
            Err(trouble) => {
                let has_time = end.is_some() || expires.is_some_and(|expires| Timestamp::now() < expires);
                match trouble.again_in() {
                    Some(again_in) if has_time => {
                        show::tell(&format!("{trouble}; asked again in {} s", again_in.as_secs()));
                        again_in
                    }
                    None if trouble.exit_code() == 5 && end.is_some() => {
                        show::tell(&trouble.to_string());
                        LOOK_EVERY
                    }
                    Some(_) | None => return Err(trouble),
                }
            }
        };
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            let status = if last.is_empty() { "unknown".to_owned() } else { last };
            return Err(Trouble::WaitRanOut { command_id: command_id.to_owned(), status });
        }
        std::thread::sleep(left.map_or(pause, |left| pause.min(left)));
    }
}

/// Until when a command may be executed.
fn expiry(command: &Value) -> Option<Timestamp> {
    command["not_after"].as_str()?.parse().ok()
}

/// The first `limit` entries of a list, page by page.
fn pages(client: &Client, path: &str, name: &str, limit: u64) -> Result<Vec<Value>, Trouble> {
    let mut found = Vec::new();
    let mut next = String::new();
    let mut left = limit;
    while left > 0 {
        let mut page = client.get(&format!("{path}?limit={}{next}", left.min(PAGE)))?;
        let Value::Array(entries) = page[name].take() else { break };
        left = left.saturating_sub(u64::try_from(entries.len()).unwrap_or(u64::MAX));
        found.extend(entries);
        match page["continue"].as_str() {
            Some(text) => next = format!("&continue={}", encode(text)),
            None => break,
        }
    }
    Ok(found)
}

/// A text as one part of a path or query (RFC 3986 section 2.3).
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => encoded.push(byte.into()),
            _ => encoded.extend(["%", &format!("{byte:02X}")]),
        }
    }
    encoded
}
