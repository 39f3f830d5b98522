//! The same tests as on a file, and what only a database of several machines has to show.

#[path = "../both/mod.rs"]
mod both;
mod scale;

use both::support;
use navin_test_support::Postgres;

/// The database of a test's folder: a new one on the server that all tests share.
#[expect(clippy::unnecessary_wraps, reason = "a test on a file has none")]
fn database(name: &str) -> Option<String> {
    Some(Postgres::shared().database(name))
}
