//! The identity of an agent, as the manager issues it and as a Secret mounts it.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The answer of the manager to "issue an identity"; it is given once.
#[derive(Clone)]
pub struct Identity(Value);

impl Identity {
    pub(crate) fn new(issued: Value) -> Self {
        Self(issued)
    }

    /// The whole answer.
    pub fn document(&self) -> &Value {
        &self.0
    }

    /// The payload of the signed configuration.
    pub fn config(&self) -> &Value {
        &self.0["config"]["payload"]
    }

    /// Writes the five files of an identity folder, and makes the folder.
    ///
    /// Each is renamed into place, the configuration last: a running agent that looks in between sees a
    /// half-swapped identity, which it must refuse and look at again, but never half a file.
    pub fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).expect("the identity folder");
        for (member, name) in [
            ("manager_pem", "manager.pem"),
            ("ca_crt", "ca.crt"),
            ("tls_crt", "tls.crt"),
            ("tls_key", "tls.key"),
            ("config", "config.json"),
        ] {
            let text = match &self.0[member] {
                Value::String(text) => text.clone(),
                Value::Null => panic!("the issued identity has no {member}"),
                other => other.to_string(),
            };
            let temporary = folder.join(format!(".{name}"));
            fs::write(&temporary, text).expect("a file of the identity");
            fs::rename(&temporary, folder.join(name)).expect("a file of the identity");
        }
    }
}
