//! A report that the gateway takes: at most 8 MiB (CONTRACT section 4). What would not fit says so.
//!
//! An inventory is the largest thing that the agent ever holds: it is kept as the text that is sent, once,
//! whoever has a copy of it.

use super::json::length;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The `type` of a report.
pub const REPORT_TYPE: &str = "navin.report/v1";

/// Largest report, in bytes.
pub const LIMIT: usize = 8 * 1024 * 1024;

/// What the report's `inventory` holds (CONTRACT section 5). Clones share the objects.
#[derive(Clone, Debug, Default)]
pub struct Inventory(BTreeMap<&'static str, Part>);

#[derive(Clone, Debug)]
enum Part {
    /// A member that is no list.
    Value(Value),
    /// A list: its state, and its objects as they are sent.
    Kind { state: &'static str, items: Arc<Vec<Box<RawValue>>> },
}

impl Inventory {
    /// Adds a member that is no list.
    pub fn set(&mut self, name: &'static str, value: Value) {
        self.0.insert(name, Part::Value(value));
    }

    /// Adds a list. `state` is `ok` where it is whole.
    pub fn list(&mut self, name: &'static str, state: &'static str, items: Vec<Box<RawValue>>) {
        self.0.insert(name, Part::Kind { state, items: Arc::new(items) });
    }

    /// How many objects of each kind it holds, for the result of `inventory.report`; null where the kind could
    /// not be read whole.
    #[must_use]
    pub fn counts(&self) -> Value {
        let count = |(name, part): (&&str, &Part)| match part {
            Part::Value(_) => None,
            Part::Kind { state, items } => {
                Some(((*name).to_owned(), json!((*state == "ok").then_some(items.len()))))
            }
        };
        Value::Object(self.0.iter().filter_map(count).collect())
    }

    /// Leaves the largest kind out, and has it say so; false where there is none left.
    fn drop_largest_kind(&mut self) -> bool {
        let listed =
            self.0.values_mut().filter(|part| matches!(part, Part::Kind { items, .. } if !items.is_empty()));
        let Some(part) = listed.max_by_key(length) else { return false };
        *part = Part::Kind { state: "too_large", items: Arc::default() };
        true
    }
}

impl Serialize for Inventory {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(&self.0)
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(to),
            Self::Kind { state, items } => {
                let mut members = to.serialize_map(Some(2))?;
                members.serialize_entry("items", items.as_slice())?;
                members.serialize_entry("state", state)?;
                members.end()
            }
        }
    }
}

/// An object that may carry an inventory: a report, or the result of `inventory.report` in the inbox.
#[derive(Clone, Debug, Default)]
pub struct Carrier {
    /// Its other members.
    pub members: Map<String, Value>,
    /// Its `inventory`, left out where there is none.
    pub inventory: Option<Inventory>,
}

impl Carrier {
    /// The members of an object, and an inventory.
    #[must_use]
    pub fn new(object: Value, inventory: Option<Inventory>) -> Self {
        match object {
            Value::Object(members) => Self { members, inventory },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Self { members: Map::new(), inventory }
            }
        }
    }

    /// Takes out what exceeds `limit`: first the status of the components, then the largest kinds of the
    /// inventory.
    pub fn fit(&mut self, limit: usize) {
        if length(self) > limit {
            drop_statuses(&mut self.members);
        }
        while length(self) > limit && self.inventory.as_mut().is_some_and(Inventory::drop_largest_kind) {}
    }

    /// Its text.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(length(self));
        // Nothing in it can fail to be written, and memory takes everything.
        serde_json::to_writer(&mut text, self).unwrap_or_default();
        text
    }
}

impl Serialize for Carrier {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut members = to.serialize_map(None)?;
        for (name, member) in &self.members {
            members.serialize_entry(name, member)?;
        }
        if let Some(inventory) = &self.inventory {
            members.serialize_entry("inventory", inventory)?;
        }
        members.end()
    }
}

fn drop_statuses(report: &mut Map<String, Value>) {
    let rows = report.get_mut("components").and_then(Value::as_array_mut);
    for row in rows.into_iter().flatten().filter_map(Value::as_object_mut) {
        if row.remove("status").is_some() {
            row.entry("reason").or_insert_with(|| json!("status_too_large"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[String]) -> Vec<Box<RawValue>> {
        texts.iter().map(|text| serde_json::value::to_raw_value(text).unwrap()).collect()
    }

    fn report() -> Carrier {
        let members = json!({
            "type": "navin.report/v1",
            "components": [
                { "name": "a", "in_sync": true, "status": { "text": "x".repeat(1_000) } },
                { "name": "b", "in_sync": false, "reason": "absent" },
            ],
        });
        let mut inventory = Inventory::default();
        inventory.set("version", json!({}));
        inventory.list("nodes", "ok", rows(&["n".repeat(3_000)]));
        inventory.list("crds", "ok", rows(&["c".repeat(1_000), "d".repeat(1_000)]));
        inventory.list("namespaces", "forbidden", vec![]);
        Carrier::new(members, Some(inventory))
    }

    fn value(report: &Carrier) -> Value {
        serde_json::from_slice(&report.to_json()).unwrap()
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let mut fitting = report();
        fitting.fit(report().to_json().len());
        assert_eq!(value(&fitting), value(&report()));
        let inventory = &value(&fitting)["inventory"];
        assert_eq!(inventory["nodes"], json!({ "state": "ok", "items": ["n".repeat(3_000)] }));
        assert_eq!(inventory["namespaces"], json!({ "state": "forbidden", "items": [] }));
        let counts = report().inventory.unwrap().counts();
        assert_eq!(counts, json!({ "nodes": 1, "crds": 2, "namespaces": null }));
        assert_eq!(value(&Carrier { inventory: None, ..report() }).get("inventory"), None);
    }

    #[test]
    fn statuses_go_first_and_then_the_largest_kinds_and_each_says_so() {
        let mut smaller = report();
        smaller.fit(report().to_json().len() - 1);
        let mut wanted = value(&report());
        wanted["components"][0] = json!({ "name": "a", "in_sync": true, "reason": "status_too_large" });
        assert_eq!(value(&smaller), wanted);

        smaller.fit(3_000);
        wanted["inventory"]["nodes"] = json!({ "state": "too_large", "items": [] });
        assert_eq!(value(&smaller), wanted);

        smaller.fit(10);
        wanted["inventory"]["crds"] = json!({ "state": "too_large", "items": [] });
        assert_eq!(value(&smaller), wanted, "and nothing else is ever left out");
    }
}
