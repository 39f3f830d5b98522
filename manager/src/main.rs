//! `navin-manager`: identities, signed commands, the agents' gateway, audit.
//!
//! In reading order: [`cli`] says what can be asked for and [`run`] does it; [`keys`],
//! [`authority`] and [`signing`] hold the manager's keys; [`store`] is all that must outlive the
//! process; [`issue`] makes commands and identities; [`rest`] speaks to operators, [`gateway`] to
//! agents, both over the connections of [`serve`]. [`operator`] is the REST API's command line.

mod app;
mod authority;
mod background;
mod cli;
mod clock;
mod contacts;
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
