//! The Navin cluster agent, in reading order.
//!
//! 1. [`rules`]: decisions. No I/O, no clock, no thread, no log.
//! 2. The seam to the world: [`http`], [`clock`], [`files`], [`say`](mod@say), the private `token`; `threads`, and
//!    [`heartbeat`], by which one is heard there.
//! 3. [`kube`] and [`gateway`]: the only rooms that know the paths of their peers.
//! 4. [`leadership`] and [`elector`]: who may act, and until when.
//! 5. [`event`] and [`leader`]: what wakes the one writer, and the writer.
//! 6. [`watch`]: what comes from the cluster; [`poll`], [`outbox`], [`board`], [`reporter`]: what comes from
//!    and goes to the manager; [`inbox`]: what comes past it, from a [`folder`]; [`notices`]: what people are
//!    told by Events.
//! 7. [`identity`], [`rotation`], [`exit`], [`cli`] and the private `agent`: how it starts and ends; the private
//!    `doctor`: what is wrong where it does not.
//!
//! # Log levels
//!
//! ERROR: something recorded cannot be used. WARN: refused or degraded. INFO: the
//! state changed. DEBUG: an attempt. No level ever shows a body, a header, a token or a key.

// No panic from outside; a new variant of ours is sorted by hand; clock, threads, files and environment have one
// place each (clippy.toml). Tests may do what they like.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::todo, clippy::indexing_slicing, clippy::string_slice))]
#![cfg_attr(not(test), deny(clippy::as_conversions, clippy::arithmetic_side_effects))]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm, clippy::exit, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::disallowed_methods))]

mod agent;
pub mod board;
pub mod cli;
pub mod clock;
mod doctor;
pub mod elector;
pub mod event;
pub mod exit;
pub mod files;
pub mod folder;
pub mod gateway;
pub mod heartbeat;
pub mod http;
pub mod identity;
pub mod inbox;
pub mod kube;
pub mod leader;
pub mod leadership;
pub mod notices;
pub mod outbox;
pub mod poll;
pub mod reporter;
pub mod rotation;
pub mod rules;
pub mod say;
pub mod threads;
mod token;
pub mod watch;
