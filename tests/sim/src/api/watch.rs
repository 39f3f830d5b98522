//! Lists in pages, and watches.

use super::{Api, Kind, Reply, status};
use serde_json::{Value, json};

/// How a watch from a version begins.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened {
    /// What has happened since, each with its version.
    Lines(Vec<(u64, String)>),
    /// The version is too old: as the one line of the stream.
    Expired(String),
}

impl Api {
    pub(super) fn record(&mut self, kind: Kind, what: &str, object: &Value) {
        if matches!(kind, Kind::Component | Kind::Lease) {
            self.log.push((self.version, kind, line(what, object)));
        }
    }

    /// The current version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Forgets what happened before now, continue tokens included.
    pub fn compact(&mut self) {
        self.compacted = self.version;
        self.log.clear();
        self.pages.clear();
    }

    /// Opens a watch of the components, or of the one Lease.
    #[must_use]
    pub fn watch(&self, kind: Kind, version: u64) -> Opened {
        if version < self.compacted {
            let body = status::expired("too old resource version").json();
            return Opened::Expired(line("ERROR", &body));
        }
        Opened::Lines(self.since(kind, version).map(|(at, line)| (at, line.to_owned())).collect())
    }

    /// What has happened since a version.
    pub fn since(&self, kind: Kind, version: u64) -> impl Iterator<Item = (u64, &str)> {
        let from = self.log.partition_point(|(at, _, _)| *at <= version);
        let later = self.log.get(from..).unwrap_or(&[]).iter();
        later.filter(move |(_, of, _)| *of == kind).map(|(at, _, line)| (*at, line.as_str()))
    }

    /// The line of a bookmark.
    #[must_use]
    pub fn bookmark(&self) -> String {
        line(
            "BOOKMARK",
            &json!({
                "kind": "ManagedComponent", "apiVersion": "platform.navin.ai/v1",
                "metadata": { "resourceVersion": self.version.to_string(), "creationTimestamp": null },
            }),
        )
    }

    pub(super) fn list(&mut self, kind: Kind, query: &str) -> Reply {
        let token = query.split('&').find_map(|part| part.strip_prefix("continue="));
        let (mut items, version) = match token {
            None => (self.all(kind).map(|(_, object)| object.clone()).collect(), self.version),
            Some(token) => match self.pages.remove(token) {
                Some(rest) => rest,
                None => return status::expired("The provided continue parameter is too old"),
            },
        };
        let rest: Vec<Value> = items.split_off(items.len().min(self.page));
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if !rest.is_empty() {
            let token = format!("t{}-{}", self.version, self.pages.len());
            metadata["continue"] = json!(token);
            metadata["remainingItemCount"] = json!(rest.len());
            self.pages.insert(token, (rest, version));
        }
        Reply::of(&json!({
            "apiVersion": kind.api_version(), "kind": format!("{}List", kind.name()),
            "metadata": metadata, "items": items,
        }))
    }
}

fn line(what: &str, object: &Value) -> String {
    format!("{}\n", json!({ "type": what, "object": object }))
}
