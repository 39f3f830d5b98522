//! navin-manager.
fn main() {}
