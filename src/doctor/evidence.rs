//! What goes into a bundle, member by member: what is not named here stays out, so that no spec, signature, key
//! or token can get in.

use super::Examination;
use super::tar::archive;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

const README: &str = "\
What navin-cluster-agent doctor --bundle saw. No key, token, signature or spec is in it.

doctor.json   what was checked, and what to do
version.txt   of the agent
config.json   the configuration's payload
lease.json    who leads
state.json    what was decided: without envelopes, and without the messages of receipts

Not in it, since the agent may not read it: its Events and its log.
  kubectl get events -n NAMESPACE --field-selector reason!=Scheduled
  kubectl logs -n NAMESPACE -l app.kubernetes.io/name=navin-cluster-agent --prefix --tail=1000
";

/// The bundle.
pub(super) fn bundle(examination: &Examination, version: &str, now: Timestamp) -> Vec<u8> {
    let text = |value: &Value| format!("{value:#}\n");
    let mut files = vec![
        ("README.txt", README.to_owned()),
        ("doctor.json", text(&examination.to_json(now))),
        ("version.txt", version.to_owned()),
    ];
    let found = [
        ("config.json", &examination.config),
        ("lease.json", &examination.lease),
        ("state.json", &examination.state),
    ];
    files.extend(found.into_iter().filter_map(|(name, found)| Some((name, text(found.as_ref()?)))));
    archive(&files, now.as_second())
}

/// The members of an object that have these names.
fn pick(value: &Value, names: &[&str]) -> Value {
    let found = |name: &&str| Some(((*name).to_owned(), value.get(*name)?.clone()));
    Value::Object(names.iter().filter_map(found).collect())
}

/// The Lease without its annotations and managed fields.
pub(super) fn lease(object: &Value) -> Value {
    let member = |name: &str| object.get(name).unwrap_or(&Value::Null);
    json!({
        "metadata": pick(member("metadata"), &["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]),
        "spec": pick(
            member("spec"),
            &["holderIdentity", "leaseDurationSeconds", "leaseTransitions", "acquireTime", "renewTime"],
        ),
    })
}

/// `state.json` without its envelopes, and without what receipts say in words: the API server's own may name a
/// value of a spec.
pub(super) fn state(document: &Value) -> Value {
    let names = ["version", "term", "holder", "unfinished", "floor", "lost_at", "highest_sequence"];
    let mut state = pick(document, &names);
    if let Value::Object(state) = &mut state {
        state.insert("commands".to_owned(), each(document.get("commands"), command));
        state.insert("components".to_owned(), each(document.get("components"), component));
    }
    state
}

fn each(members: Option<&Value>, cut: fn(&Value) -> Value) -> Value {
    let members = members.and_then(Value::as_object).into_iter().flatten();
    Value::Object(members.map(|(name, value)| (name.clone(), cut(value))).collect::<Map<_, _>>())
}

fn command(record: &Value) -> Value {
    let mut command = pick(record, &["command_id", "sequence", "not_after", "source"]);
    let phase = record.get("phase").unwrap_or(&Value::Null);
    let phase = if let Some(done) = phase.get("done") {
        let receipt = done.get("receipt").unwrap_or(&Value::Null);
        json!({ "done": {
            "receipt": pick(receipt, &["status", "reason", "executed_at", "replica", "source"]),
            "acknowledged": done.get("acknowledged"),
        } })
    } else {
        let operation = phase.pointer("/accepted/envelope/payload/operation");
        json!({ "accepted": { "operation": operation } })
    };
    if let Value::Object(command) = &mut command {
        command.insert("phase".to_owned(), phase);
    }
    command
}

fn component(component: &Value) -> Value {
    let mut cut = pick(component, &["succeeded", "mark"]);
    if let (Value::Object(cut), Some(desired)) = (&mut cut, component.get("desired")) {
        cut.insert("desired".to_owned(), pick(desired, &["sequence", "uid", "generation"]));
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_state_nothing_goes_into_a_bundle_that_a_spec_or_a_signature_can_be_in() {
        let envelope = json!({ "signature": "SECRET", "key_id": "SECRET", "payload": {
            "operation": "managedcomponent.apply", "nonce": "SECRET", "arguments": { "name": "a", "spec": "SECRET" } } });
        let receipt = json!({ "status": "failed", "reason": "kubernetes_refused", "message": "SECRET",
            "executed_at": "2026-11-30T12:00:00Z", "result": { "SECRET": 1 } });
        let document = json!({
            "version": 1, "term": 3, "holder": "a_1", "other": "SECRET",
            "commands": {
                "n1": { "sequence": 1, "phase": { "accepted": { "envelope": envelope } } },
                "n2": { "sequence": 2, "phase": { "done": { "receipt": receipt, "acknowledged": false } } },
            },
            "components": { "a": { "succeeded": 1, "desired": { "envelope": envelope, "sequence": 1, "uid": "u",
                "generation": 2 } } },
        });
        assert_eq!(
            state(&document),
            json!({
                "version": 1, "term": 3, "holder": "a_1",
                "commands": {
                    "n1": { "sequence": 1, "phase": { "accepted": { "operation": "managedcomponent.apply" } } },
                    "n2": { "sequence": 2, "phase": { "done": { "acknowledged": false, "receipt": {
                        "status": "failed", "reason": "kubernetes_refused",
                        "executed_at": "2026-11-30T12:00:00Z" } } } },
                },
                "components": { "a": { "succeeded": 1, "desired": { "sequence": 1, "uid": "u", "generation": 2 } } },
            })
        );
        assert_eq!(state(&Value::Null), json!({ "commands": {}, "components": {} }));
        let annotated =
            json!({ "metadata": { "name": "l", "annotations": { "a": "SECRET" } }, "spec": { "x": 1 } });
        assert_eq!(lease(&annotated), json!({ "metadata": { "name": "l" }, "spec": {} }));
    }
}
