//! What must hold of a write to a component as it leaves.

use crate::api::{Effect, Kind};
use crate::checker::Checker;
use crate::history::{Act, Sender};
use navin_cluster_agent::http::{Method, Request};
use serde_json::Value;
use std::time::Duration;

impl Checker {
    /// A write to a component leaves.
    pub(crate) fn writing(&mut self, process: u64, request: &Request, body: &[u8], sender: &mut Sender) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let path = request.path.split('?').next().unwrap_or("");
        let name = match request.method {
            Method::Post => body["metadata"]["name"].as_str().unwrap_or(""),
            _ => path.rsplit('/').next().unwrap_or(""),
        };
        let known = self.known.entry(process).or_default();
        let late =
            known.ended.is_some_and(|since| sender.sent.saturating_sub(since) > Duration::from_millis(200));
        let under: Vec<String> =
            known.view.iter().flat_map(|view| view.accepted(name)).map(|entry| entry.id.clone()).collect();
        let ordered = known.component_read.get(name).is_some_and(|read| known.lease_read >= Some(*read));
        if !ordered {
            let what = format!("{name}: the Lease was not read after it");
            self.broken("a component is written after it was read, and then the Lease", what);
        }
        if late {
            self.broken("no outcome is held back for others for more than 200 ms", name.to_owned());
        }
        if under.len() > 1 {
            self.broken("of one name one command is under way", name.to_owned());
        }
        sender.under = under.into_iter().next();
        if sender.under.is_none() {
            self.keeping(process, name, request.method, sender);
            return;
        }
        sender.ends = match request.method {
            Method::Post => true,
            Method::Put => sender.under.as_deref().is_some_and(|id| command_of(&body) == Some(id)),
            Method::Get | Method::Delete | Method::Patch => false,
        };
    }

    /// A write that belongs to no accepted command: a repair, or the removal of a late create.
    fn keeping(&mut self, process: u64, name: &str, method: Method, sender: &mut Sender) {
        let view = self.known.get(&process).and_then(|known| known.view.as_ref());
        let component = view.map(|view| view.components[name].clone()).unwrap_or_default();
        sender.mark = component.pointer("/mark/sequence").and_then(Value::as_u64).unwrap_or(0);
        let desired = component.pointer("/desired/envelope/payload/command_id").and_then(Value::as_str);
        match (method, desired) {
            (Method::Delete, _) => sender.act = Act::Sweep,
            (_, Some(id)) => {
                sender.act = Act::Repair;
                sender.under = Some(id.to_owned());
            }
            (_, None) => {
                let what = format!("{name}: neither accepted nor desired in the state as it was read");
                self.broken("a component is written only for an accepted command or what is desired", what);
            }
        }
    }
}

/// The component that a call has repaired, if this change is a repair.
pub(crate) fn repaired(effect: &Effect, sender: &Sender) -> Option<String> {
    let spec = |object: &Option<Value>| object.as_ref().map(|object| object["spec"].clone());
    let repairs = effect.kind == Kind::Component
        && sender.act == Act::Repair
        && spec(&effect.before) != spec(&effect.after);
    repairs.then(|| effect.name.clone())
}

/// The command that an object says it was written by.
pub(crate) fn command_of(object: &Value) -> Option<&str> {
    let of =
        |group: &str| object.pointer(&format!("/metadata/{group}/platform.navin.ai~1command-id"))?.as_str();
    of("labels").or_else(|| of("annotations"))
}
