//! The state as the ConfigMap holds it, read without the agent's own code.

use serde_json::Value;
use std::collections::BTreeMap;

/// One record of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// `term`
    pub term: u64,
    /// `holder`
    pub holder: String,
    /// `floor`
    pub floor: Option<String>,
    /// `commands`, by nonce.
    pub commands: BTreeMap<String, Entry>,
    /// `components`, as they are.
    pub components: Value,
    /// Length of the text.
    pub bytes: usize,
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// `command_id`
    pub id: String,
    /// `not_after`
    pub not_after: String,
    /// The envelope while it is accepted.
    pub envelope: Option<Value>,
    /// The receipt when it is done.
    pub receipt: Option<Value>,
    /// Whether the manager acknowledged it.
    pub acknowledged: bool,
}

impl Entry {
    /// The component that an accepted command is about.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.envelope.as_ref()?.pointer("/payload/arguments/name")?.as_str()
    }
}

impl Stored {
    /// Reads the ConfigMap; None for what is no state.
    #[must_use]
    pub fn read(object: &Value) -> Option<Self> {
        let text = object.get("data")?.get("state.json")?.as_str()?;
        let mut state: Value = serde_json::from_str(text).ok()?;
        let string = |value: &Value| value.as_str().map(str::to_owned);
        let mut commands = BTreeMap::new();
        for (nonce, record) in state["commands"].as_object_mut()? {
            let take = |value: Option<&mut Value>| value.map(Value::take).filter(|value| !value.is_null());
            let entry = Entry {
                id: string(&record["command_id"])?,
                not_after: string(&record["not_after"])?,
                envelope: take(record.pointer_mut("/phase/accepted/envelope")),
                receipt: take(record.pointer_mut("/phase/done/receipt")),
                acknowledged: record.pointer("/phase/done/acknowledged") == Some(&Value::Bool(true)),
            };
            commands.insert(nonce.clone(), entry);
        }
        Some(Self {
            term: state["term"].as_u64()?,
            holder: string(&state["holder"])?,
            floor: string(&state["floor"]),
            commands,
            components: state["components"].take(),
            bytes: text.len(),
        })
    }

    /// The accepted commands that are about this component.
    pub fn accepted<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Entry> {
        self.commands.values().filter(move |entry| entry.name() == Some(name))
    }
}
