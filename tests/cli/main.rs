//! The real binary by its command line: what it takes, what it refuses, how it ends and what it says.
//!
//! In reading order: `identity` issues what a manager would; `agent` runs the binary, and
//! `server` answers it where it must get answers; then the tests.

mod agent;
mod identity;
mod server;

mod accepted;
mod command_line;
mod doctor;
mod documents;
mod proxies;
mod refused;
mod rooms;
mod secrets;
mod submit;
mod verify;
