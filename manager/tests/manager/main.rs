//! The real program, on a free port and a folder of its own, over real TLS; its database is a file.
//! `tests/postgres` runs the same on a server.

mod bodies;
#[path = "../both/mod.rs"]
mod both;
mod certificate;
mod kubeconfig;
mod raw;
mod restore;
mod shedding;
mod sqlite;

use both::support;

/// The database of a test's folder: the file in it.
fn database(_: &str) -> Option<String> {
    None
}
