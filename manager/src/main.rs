//! `navin-manager`: identities, signed commands, the agents' gateway, audit.
//!
//! In reading order:
//!
//! 1. [`cli`] says what can be asked for, [`run`] does it, and [`failure`] is how it ends; [`operator`] is the REST
//!    API's command line.
//! 2. [`keys`], [`authority`] and [`signing`] hold the manager's keys, by [`files`]; [`issue`] makes commands and
//!    identities.
//! 3. [`store`] is all that must outlive the process, by the [`clock`]; [`app`] what the handlers share; [`background`]
//!    what goes on beside them.
//! 4. [`serve`] takes the connections of both ports, over [`tls`]: those of [`newcomers`], and of a [`peer`] that has
//!    called, within [`limits`], [`open_files`], and the [`room`] for what is sent; until [`stop`].
//! 5. [`gateway`] speaks to agents: [`wake`] ends a poll's wait, [`questions`] are what polls ask, [`delivered`] is what one brought, [`instance`] which
//!    gateways live, [`contacts`] when an agent was heard.
//! 6. [`rest`] speaks to operators, and [`import`] looks at a cluster for them; both ports take and give [`http`] bodies.

mod app;
mod authority;
mod background;
mod cli;
mod clock;
mod contacts;
mod delivered;
mod failure;
mod files;
mod gateway;
mod http;
mod import;
mod instance;
mod issue;
mod keys;
mod limits;
mod newcomers;
mod open_files;
mod operator;
mod peer;
mod questions;
mod rest;
mod room;
mod run;
mod serve;
mod signing;
mod stop;
mod store;
mod tls;
mod wake;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    start_log();
    match run::run(arguments) {
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
    let wanted = std::env::var("NAVIN_LOG").map(EnvFilter::try_new);
    let wrong = matches!(wanted, Ok(Err(_)));
    let filter = wanted.ok().and_then(Result::ok).unwrap_or_else(|| EnvFilter::new(usual));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    if wrong {
        tracing::warn!("NAVIN_LOG: expected a filter such as info or navin_manager=debug; info is taken");
    }
}
