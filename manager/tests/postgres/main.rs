//! The same tests as on a file, and what only a database of several machines has to show.

#[path = "../manager/calls.rs"]
mod calls;
#[path = "../manager/delivery.rs"]
mod delivery;
#[path = "../manager/hostile.rs"]
mod hostile;
#[path = "../manager/identities.rs"]
mod identities;
#[path = "../manager/openapi.rs"]
mod openapi;
#[path = "../manager/operator.rs"]
mod operator;
#[path = "../manager/process.rs"]
mod process;
#[path = "../manager/receipts.rs"]
mod receipts;
#[path = "../manager/rest.rs"]
mod rest;
mod scale;
mod server;
#[path = "../manager/support.rs"]
mod support;
#[path = "../manager/walk.rs"]
mod walk;

/// The database of a test's folder: a new one on the server that all tests share.
#[expect(clippy::unnecessary_wraps, reason = "a test on a file has none")]
fn database(name: &str) -> Option<String> {
    Some(server::Server::shared().database(name))
}
