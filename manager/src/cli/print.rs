//! Standard output: results, and nothing else.

use crate::process::failure::Failure;
use serde_json::Value;
use std::io::Write;

/// Prints a document in one line.
pub(super) fn print_line(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

/// Prints a text.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::System(format!("standard output: {error}")))
}
