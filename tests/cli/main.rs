//! The real binary by its command line: what it takes, what it refuses, how it ends and what it says.
//!
//! In reading order: `identity` issues what a manager would; `agent` runs the binary; then the tests.

mod agent;
mod identity;

mod accepted;
mod command_line;
mod doctor;
mod refused;
mod secrets;
mod submit;
mod verify;
