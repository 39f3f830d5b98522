//! What must hold after every step: eight invariants, the texts below, and what follows from them. Each file checks those
//! that it imports.

mod accept;
mod component;
mod end;
mod inbox;
mod keep;
pub(crate) mod link;
mod state;
pub(crate) mod writes;

use crate::api::Schema;
use serde_json::Value;

/// Largest value of a ConfigMap, in bytes.
const STATE_LIMIT: usize = 1_048_576;

const NONCE: &str =
    "1: a nonce is executed for at most one command, and its first recorded receipt never changes";
const ALLOWED: &str = "2: no command changes anything that was not, when accepted, authentic, in its window and allowed by the link";
const STATUS: &str =
    "3: every command ends with one recorded status at the manager, and that is what happened in the cluster";
const SPEC: &str = "4: each component is as the highest sequence that succeeded for its name says";
const ONE: &str = "5: with clocks of equal rate no two replicas believe at once that they may act";
const FENCED: &str = "5: no write of a former leader takes effect after the next leader's first write";
const KEPT: &str = "6: what was recorded is kept until the manager acknowledged it and its window is past";
const SIZE: &str = "7: the state never exceeds its limit, and nothing recorded is dropped to make room";
const OTHERS: &str = "labels, annotations, finalizers and status of others stay as they are";
const KEEPS: &str = "what was changed by hand is restored, online and offline";
const LINKED: &str = "2: a sensitive command is accepted while online alone, and refused as manager_unreachable while offline alone";
const NAMED: &str = "8: a component that no command ever named is never written";

fn spec(object: Option<&Value>) -> Option<Value> {
    object.map(|object| object["spec"].clone())
}

fn created_of(object: &Value) -> Option<u64> {
    object.pointer("/metadata/annotations/platform.navin.ai~1created")?.as_str()?.parse().ok()
}

/// A spec as the cluster makes it.
fn shaped(mut spec: Value, schema: Schema) -> Value {
    if schema.default && spec.get("replicas").is_none() {
        spec["replicas"] = Value::from(1);
    }
    if schema.admission {
        spec["admitted"] = Value::from(true);
    }
    spec
}
