//! The Kubernetes API by hand: the client, then one file per kind that the agent touches.
//!
//! This is the only room that knows API paths. Objects stay JSON: what the agent does not know is kept as
//! it was read, so a write never drops somebody else's member.

mod client;
pub mod components;
pub mod events;
pub mod inventory;
pub mod lease;
mod list;
pub mod review;
mod shell;
pub mod state;
mod stream;
pub mod watch;

pub use crate::rules::kubernetes::{KubeError, Object};
pub use client::{Kube, longest_call};
