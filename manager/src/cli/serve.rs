//! `serve` and `agent-gateway`: puts the parts of a running manager together, and runs it.

use super::arguments::{AgentGateway, Load, Serve};
use super::print::print_line;
use crate::app::contacts::Contacts;
use crate::app::instance::Instance;
use crate::app::questions::Questions;
use crate::app::wake::Wake;
use crate::app::{App, Shared};
use crate::keys::secrets::Secrets;
use crate::keys::server::ServerKey;
use crate::limits::callers::{Checks, Kept, Limits};
use crate::ports::open_files;
use crate::ports::serve::{Port, files_of};
use crate::ports::tls::Clients;
use crate::process::background::forever;
use crate::process::failure::Failure;
use crate::process::stop::Stop;
use crate::store::{Database, Store, postgres};
use crate::{gateway, rest};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How often the server certificate's files are looked at.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// How often what is wrong with them is told again.
const TOLD_EVERY: Duration = Duration::from_hours(24);

/// Serves both ports, until it is to stop.
pub(super) async fn serve(task: Serve) -> Result<(), Failure> {
    let stop = Stop::on_signal()?;
    // Before anything is made: the command line is whole.
    let (place, tls) = (task.folders.place.database()?, task.folders.tls_dir()?);
    let max_agents = open_files::fit(task.load.max_agents, files_of(rest::MAX_CONNECTIONS))?;
    let secrets = Secrets::open(&tls)?;
    let server = ServerKey::open(&tls, &task.server_names, Some(Arc::clone(&secrets.authority)))?;
    let store = Store::make(&place).await?;
    let app = start(store, server, (&task.load, task.token_rate), stop.clone()).await?;
    let rest = Port::bind(task.listen, &app.server, Clients::Any, rest::MAX_CONNECTIONS)?;
    let gateway = bind_gateway(task.gateway_listen, &app, max_agents)?;
    print_line(&json!({ "rest": rest.url(), "gateway": gateway.url() }))?;
    let router = rest::router(&app, secrets);
    tokio::join!(rest.serve(router, stop.clone()), gateway.serve(gateway::router(&app), stop));
    app.contacts.write(&app.store).await;
    app.store.close().await;
    Ok(())
}

/// Serves the gateway alone, until it is to stop.
pub(super) async fn agent_gateway(task: AgentGateway) -> Result<(), Failure> {
    let stop = Stop::on_signal()?;
    let (place, tls) = (task.folders.place.database()?, task.folders.tls_dir()?);
    let max_agents = open_files::fit(task.load.max_agents, 0)?;
    let server = ServerKey::open(&tls, &task.server_names, None)?;
    let store = Store::open(&place).await?;
    let app = start(store, server, (&task.load, 0), stop.clone()).await?;
    let gateway = bind_gateway(SocketAddr::new(task.host, task.port), &app, max_agents)?;
    print_line(&json!({ "gateway": gateway.url() }))?;
    gateway.serve(gateway::router(&app), stop).await;
    app.contacts.write(&app.store).await;
    app.store.close().await;
    Ok(())
}

/// Makes what the handlers share, and starts what goes on beside them.
async fn start(
    store: Store,
    server: ServerKey,
    (load, token_rate): (&Load, u32),
    stop: Stop,
) -> Result<Shared, Failure> {
    let database = store.database().clone();
    let instance = Instance::register(&store).await?;
    let app = Arc::new(App {
        store,
        server: Arc::new(server),
        wake: Wake::default(),
        questions: Questions::default(),
        instance,
        contacts: Contacts::default(),
        reports: gateway::room_for_reports(),
        receipts: gateway::room_for_receipts(),
        parsing: Semaphore::new(gateway::PARSING),
        agents: Limits::with_rate(gateway::MAX_OPEN, load.agent_rate),
        operators: Limits::with_rate(rest::MAX_OPEN, token_rate),
        kept: Kept::new(),
        checks: Checks::new(),
        stop,
    });
    let [renewed, looked, asked, noted] = [(); 4].map(|()| Arc::clone(&app));
    forever("renewal of the server certificate", move || renew(Arc::clone(&renewed)));
    forever("look at what polls wait for", move || gateway::look(Arc::clone(&looked)));
    forever("answering of polls", move || {
        let app = Arc::clone(&asked);
        async move { app.questions.answer(&app.store).await }
    });
    forever("writing of when agents were heard", move || {
        let app = Arc::clone(&noted);
        async move { app.contacts.keep(&app.store).await }
    });
    if let Database::Postgres(server) = database {
        let told = Arc::clone(&app);
        forever("listening to the database", move || {
            let told = Arc::clone(&told);
            postgres::listen(server.clone(), move |cluster| told.wake.notify(cluster))
        });
    }
    Ok(app)
}

/// Takes a server certificate that was replaced, and replaces one that ends soon. A file that cannot
/// be used is told once a day.
async fn renew(app: Shared) {
    let (mut told, mut told_at) = (String::new(), Instant::now());
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        let of = Arc::clone(&app);
        let renewed = tokio::task::spawn_blocking(move || of.server.renew()).await;
        let problem = match renewed {
            Ok(Ok(())) => String::new(),
            Ok(Err(failure)) => failure.to_string(),
            Err(error) => error.to_string(),
        };
        if !problem.is_empty() && (problem != told || told_at.elapsed() > TOLD_EVERY) {
            tracing::warn!(problem, "the server certificate stays as it is");
            told_at = Instant::now();
        }
        told = problem;
    }
}

fn bind_gateway(address: SocketAddr, app: &Shared, max_agents: usize) -> Result<Port, Failure> {
    Port::bind(address, &app.server, Clients::Certified, max_agents)
}
