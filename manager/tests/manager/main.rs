//! The real program, on a free port and a folder of its own, over real TLS; its database is a file.
//! `tests/postgres` runs the same on a server.

mod bodies;
mod calls;
mod certificate;
mod delivery;
mod hostile;
mod identities;
mod kubeconfig;
mod openapi;
mod operator;
mod process;
mod raw;
mod receipts;
mod rest;
mod shedding;
mod sqlite;
mod support;
mod walk;

/// The database of a test's folder: the file in it.
fn database(_: &str) -> Option<String> {
    None
}
