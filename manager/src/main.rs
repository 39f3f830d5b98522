//! `navin-manager`: identities, signed commands, the agents' gateway, audit.
//!
//! Rooms, in reading order; each imports only those that stand below it:
//!
//! 1. [`cli`] says what can be asked for, and does it.
//! 2. [`ports`] takes the connections; [`gateway`] speaks to agents, [`rest`] to operators; [`operator`] is the REST API's
//!    command line.
//! 3. [`app`] is what the handlers of both ports share while the process lives.
//! 4. [`keys`] holds the manager's keys, and makes commands and identities.
//! 5. [`store`] is all that must outlive the process; [`limits`] how much is let in.
//! 6. [`process`] is what the process has of its system, and why it ends.

// A panic ends the process, and with it every tenant's gateway: none from outside. What the agent denies besides (src/lib.rs:
// sums that may overflow, matches on whatever else there is) is left here to the eye. Tests may do what they like.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]
#![cfg_attr(not(test), deny(clippy::todo, clippy::indexing_slicing, clippy::string_slice))]
#![cfg_attr(
    not(test),
    deny(clippy::as_conversions, clippy::exit, clippy::print_stdout, clippy::print_stderr)
)]

mod app;
mod cli;
mod gateway;
mod keys;
mod limits;
mod operator;
mod ports;
mod process;
mod rest;
mod store;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    start_log();
    match cli::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The program is ending; where standard error is gone too there is nobody to tell.
            drop(writeln!(std::io::stderr(), "navin-manager: {failure}"));
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Logs go to standard error: standard output belongs to results.
fn start_log() {
    let usual = "info,sqlx=warn,rustls=warn,hyper=warn,kube_client=off";
    let wanted = std::env::var("NAVIN_LOG").ok();
    // A word that is no level would be taken for a module, and nothing told.
    let ours = |part: &str| part.contains("navin_manager") || part.trim().parse::<LevelFilter>().is_ok();
    let filter = wanted.as_deref().filter(|text| text.split(',').any(ours));
    let filter = filter.and_then(|text| EnvFilter::try_new(text).ok());
    let wrong = wanted.is_some() && filter.is_none();
    let filter = filter.unwrap_or_else(|| EnvFilter::new(usual));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    if wrong {
        tracing::warn!("NAVIN_LOG: expected a filter such as info or navin_manager=debug; info is taken");
    }
}
