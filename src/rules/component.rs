//! The ManagedComponent as the agent writes it (CONTRACT section 6, "Components").
//!
//! The whole `spec` is ours; of the metadata up to two labels and three annotations. Everything else is
//! carried as it was read: to leave out another's finalizer would remove the object.

use super::json::{UNIT, length, weight};
use super::kubernetes::Object;
use super::messages::Command;
use super::names::{CommandId, ComponentName, Sequence};
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Annotation: the command that wrote this spec; a label where the annotations are full.
pub const COMMAND_ID: &str = "platform.navin.ai/command-id";
/// Annotation: the `sequence` of that command.
pub const SEQUENCE: &str = "platform.navin.ai/sequence";
/// Annotation: the `sequence` of the command that created the object; set by a POST only.
pub const CREATED: &str = "platform.navin.ai/created";
/// Label: the command whose lost write was made to conflict, and the version it was settled at ("an
/// unanswered write"). A label, since somebody may have filled the annotations.
pub const SETTLED: &str = "platform.navin.ai/settled";
/// Conflicts of one write that are answered at once; somebody who writes all the time is met with pauses.
pub(super) const CONFLICTS: u32 = 3;
/// Label of everything that the agent keeps.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "navin-cluster-agent");

/// Who writes: the command's identifier and sequence.
#[derive(Clone, Debug)]
pub struct Author {
    /// The command.
    pub command_id: CommandId,
    /// Its sequence.
    pub sequence: Sequence,
}

impl Author {
    /// Of what `command` asks for.
    #[must_use]
    pub fn of(command: &Command) -> Self {
        Self { command_id: command.command_id.clone(), sequence: command.sequence }
    }
}

/// A write to one component.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// POST; has no precondition.
    Create(Object),
    /// PUT of the signed spec.
    Replace(Object),
    /// PUT of the spec as read, so that a lost write conflicts.
    Settle(Object),
    /// DELETE of exactly this object.
    Delete {
        /// `metadata.uid` as read.
        uid: String,
        /// `metadata.resourceVersion` as read.
        resource_version: String,
    },
}

/// The object to POST.
#[must_use]
pub fn created(namespace: &str, name: &ComponentName, spec: &Map<String, Value>, author: &Author) -> Object {
    let mut object = Object(json!({
        "apiVersion": "platform.navin.ai/v1",
        "kind": "ManagedComponent",
        "metadata": { "name": name.as_str(), "namespace": namespace },
        "spec": spec,
    }));
    sign(&mut object, author);
    object.set_metadata_entry("annotations", CREATED, &author.sequence.to_string());
    object
}

/// The object to PUT over `live`. Where its annotations take nothing of ours (`bare`), whose the spec is stands in
/// a label.
#[must_use]
pub fn replaced(live: &Object, spec: &Map<String, Value>, author: &Author, bare: bool) -> Object {
    let mut object = live.clone();
    object.set("spec", Value::Object(spec.clone()));
    if bare {
        object.set_metadata_entry("labels", COMMAND_ID, author.command_id.as_str());
    } else {
        object.remove_metadata_entry("labels", COMMAND_ID);
        sign(&mut object, author);
    }
    object
}

/// `live` with nothing but one label of ours changed: once this PUT is answered, no write that was
/// based on an earlier reading can land any more.
#[must_use]
pub fn settled(live: &Object, author: &Author) -> Object {
    let mut object = live.clone();
    // The version makes each settling another value: a PUT that changes nothing would settle nothing.
    let version = live.resource_version().unwrap_or("");
    let value = format!("{}.{version}", author.command_id);
    object.set_metadata_entry("labels", SETTLED, &value);
    object
}

fn sign(object: &mut Object, author: &Author) {
    object.set_metadata_entry("labels", MANAGED_BY.0, MANAGED_BY.1);
    object.set_metadata_entry("annotations", COMMAND_ID, author.command_id.as_str());
    object.set_metadata_entry("annotations", SEQUENCE, &author.sequence.to_string());
}

impl Write {
    /// What it takes of memory in bytes, its texts among them, for a bound on what is held at once.
    #[must_use]
    pub fn memory(&self) -> usize {
        match self {
            Self::Create(object) | Self::Replace(object) | Self::Settle(object) => {
                weight(&object.0).saturating_mul(UNIT).saturating_add(length(&object.0))
            }
            Self::Delete { .. } => UNIT,
        }
    }
}

/// Whether `live` was last written by this command and still holds its name: in the label of a bare write, or
/// else in the annotation.
#[must_use]
pub fn written_by(live: &Object, author: &Author) -> bool {
    live.label(COMMAND_ID).or_else(|| live.annotation(COMMAND_ID)) == Some(author.command_id.as_str())
}

/// The sequence in [`CREATED`], where the object was made by the agent.
#[must_use]
pub fn created_by(live: &Object) -> Option<u64> {
    live.annotation(CREATED)?.parse().ok()
}

/// Whether `live` was made by an earlier command than this.
#[must_use]
pub fn is_older_create(live: &Object, author: &Author) -> bool {
    created_by(live).is_some_and(|created| created < author.sequence.get())
}

/// Whether the live `spec` is the signed one. Equal numbers are equal here: both were read by [`super::json`].
#[must_use]
pub fn same_spec(live: &Object, spec: &Map<String, Value>) -> bool {
    live.0.get("spec").and_then(Value::as_object) == Some(spec)
}
