//! `sign`: a command that is registered, signed, and written for an inbox.

use super::arguments::{Sign, label};
use super::print::print;
use crate::keys::issue::{self, Request};
use crate::keys::secrets::Secrets;
use crate::process::failure::Failure;
use crate::process::files;
use crate::store::{ClusterKey, Store};
use navin_cluster_agent::rules::json::parse;
use serde_json::{Map, Value};
use std::io::Read;

/// Most bytes of a file of arguments: more would never fit into an envelope.
const MAX_ARGUMENTS_BYTES: usize = 1024 * 1024;

/// Signs the command, queues it, and writes its envelope.
pub(super) async fn sign(task: Sign) -> Result<(), Failure> {
    let cluster = ClusterKey {
        tenant_id: label("--tenant", &task.tenant)?,
        cluster_id: label("--cluster", &task.cluster)?,
    };
    let arguments = read_arguments(&task.arguments)?;
    let signer = Secrets::open_signer(&task.folders.tls_dir()?)?;
    let store = Store::open(&task.folders.place.database()?).await?;
    let request = Request {
        cluster: &cluster,
        operation: &task.operation,
        arguments,
        valid_for_s: task.valid_for_s,
        actor: "cli",
    };
    let command_id = issue::command(&store, &signer, request).await?;
    let envelope = store.envelope(&command_id).await?;
    store.close().await;
    match task.out {
        Some(path) => files::replace(&path, envelope.as_bytes(), files::PUBLIC),
        None => print(&format!("{envelope}\n")),
    }
}

/// Strict JSON, given as such or in a file.
fn read_arguments(text: &str) -> Result<Map<String, Value>, Failure> {
    let mut bytes = Vec::new();
    if let Some(path) = text.strip_prefix('@') {
        let path = std::path::Path::new(path);
        let limit = u64::try_from(MAX_ARGUMENTS_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        std::fs::File::open(path)
            .and_then(|file| file.take(limit).read_to_end(&mut bytes))
            .map_err(|error| Failure::file(path, error))?;
    } else {
        bytes.extend_from_slice(text.as_bytes());
    }
    match parse(&bytes, MAX_ARGUMENTS_BYTES) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(Failure::Argument("--arguments: expected an object".to_owned())),
        Err(error) => Err(Failure::Argument(format!("--arguments: not strict JSON: {error}"))),
    }
}
