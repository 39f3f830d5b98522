//! Does what the command line asks for.

use crate::app::{App, Shared};
use crate::background::forever;
use crate::cli::{AgentGateway, Arguments, Load, Serve, Sign, Task, Token, TokenTask};
use crate::contacts::Contacts;
use crate::failure::Failure;
use crate::instance::Instance;
use crate::issue::{self, Request};
use crate::keys::{Secrets, ServerKey};
use crate::limits::{Kept, Limits};
use crate::operator::cli::Form;
use crate::operator::show;
use crate::questions::Questions;
use crate::serve::{Port, files_of};
use crate::signing::{random_text, sha256_hex};
use crate::stop::Stop;
use crate::store::{ClusterKey, Database, Store, postgres, tokens};
use crate::tls::Clients;
use crate::wake::Wake;
use crate::{clock, files, gateway, open_files, operator, rest};
use navin_cluster_agent::rules::json::parse;
use navin_cluster_agent::rules::names::Label;
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Random bytes of a bearer token.
const TOKEN_BYTES: usize = 32;

/// How often the server certificate's files are looked at.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// How often what is wrong with them is told again.
const TOLD_EVERY: Duration = Duration::from_hours(24);

/// Most bytes of a file of arguments: more would never fit into an envelope.
const MAX_ARGUMENTS_BYTES: usize = 1024 * 1024;

/// Runs the task to its end.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let task = match arguments.task {
        Task::Operator(task) => return Ok(operator::run(task)?),
        task => task,
    };
    let runtime =
        Runtime::new().map_err(|error| Failure::System(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        match task {
            Task::Serve(task) => serve(task).await,
            Task::AgentGateway(task) => agent_gateway(task).await,
            Task::Token(task) => token(task).await,
            Task::Sign(task) => sign(task).await,
            Task::Operator(task) => Ok(operator::run(task)?),
        }
    })
}

async fn serve(task: Serve) -> Result<(), Failure> {
    let stop = Stop::on_signal()?;
    let max_agents = open_files::fit(task.load.max_agents, files_of(rest::MAX_CONNECTIONS))?;
    let tls = task.folders.tls_dir()?;
    let secrets = Secrets::open(&tls)?;
    let server = ServerKey::open(&tls, &task.server_names, Some(Arc::clone(&secrets.authority)))?;
    let store = Store::make(&task.folders.place.database()?).await?;
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

async fn agent_gateway(task: AgentGateway) -> Result<(), Failure> {
    let stop = Stop::on_signal()?;
    let max_agents = open_files::fit(task.load.max_agents, 0)?;
    let server = ServerKey::open(&task.folders.tls_dir()?, &task.server_names, None)?;
    let store = Store::open(&task.folders.place.database()?).await?;
    let app = start(store, server, (&task.load, 0), stop.clone()).await?;
    let gateway = bind_gateway(SocketAddr::new(task.host, task.port), &app, max_agents)?;
    print_line(&json!({ "gateway": gateway.url() }))?;
    gateway.serve(gateway::router(&app), stop).await;
    app.contacts.write(&app.store).await;
    app.store.close().await;
    Ok(())
}

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
    if let Database::Postgres(url) = database {
        let told = Arc::clone(&app);
        forever("listening to the database", move || {
            let told = Arc::clone(&told);
            postgres::listen(url.clone(), move |cluster| told.wake.notify(cluster))
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

async fn token(task: Token) -> Result<(), Failure> {
    let database = task.place.database()?;
    match (task.task, task.tenant) {
        (Some(TokenTask::List { tenant, output }), _) => {
            list_tokens(&Store::open(&database).await?, tenant, output).await
        }
        (Some(TokenTask::Revoke { token_id }), _) => {
            revoke_token(&Store::open(&database).await?, &token_id).await
        }
        (None, tenant) => make_token(&database, &tenant.unwrap_or_default(), task.create).await,
    }
}

async fn list_tokens(store: &Store, tenant: Option<String>, output: Form) -> Result<(), Failure> {
    let tokens: Vec<Value> = store.tokens(tenant.as_deref()).await?.iter().map(listed).collect();
    store.close().await;
    Ok(show::print(output, &json!({ "tokens": tokens }), &tokens, &show::TOKENS)?)
}

fn listed(token: &tokens::Listed) -> Value {
    json!({
        "token_id": token.token_id,
        "tenant_id": token.tenant_id,
        "created_at": clock::text(token.created_at),
        "revoked_at": token.revoked_at.map(clock::text),
    })
}

async fn revoke_token(store: &Store, token_id: &str) -> Result<(), Failure> {
    let revoked = store.revoke_token(token_id).await?;
    store.close().await;
    let problem = || format!("token {token_id:?}: there is none, or it is revoked already");
    if revoked { Ok(()) } else { Err(Failure::System(problem())) }
}

async fn make_token(database: &Database, tenant: &str, create: bool) -> Result<(), Failure> {
    let tenant_id = label("--tenant", tenant)?;
    let store = if create { Store::make(database).await? } else { Store::open(database).await? };
    let secret = format!("navin_{}", random_text::<TOKEN_BYTES>()?);
    let token = tokens::Token { token_id: uuid::Uuid::new_v4().to_string(), tenant_id, revoked_at: None };
    store.add_token(&token, &sha256_hex(secret.as_bytes())).await?;
    store.close().await;
    print(&format!("{secret}\n"))
}

async fn sign(task: Sign) -> Result<(), Failure> {
    let cluster = ClusterKey {
        tenant_id: label("--tenant", &task.tenant)?,
        cluster_id: label("--cluster", &task.cluster)?,
    };
    let arguments = read_arguments(&task.arguments)?;
    let signer = Secrets::open_signer(&task.folders.tls_dir()?)?;
    let store = Store::open(&task.folders.place.database()?).await?;
    let request = Request {
        cluster: &cluster,
        operation: &task.operation,
        arguments,
        valid_for_s: task.valid_for_s,
        actor: "cli",
    };
    let command_id = issue::command(&store, &signer, request).await?;
    let envelope = store.envelope(&command_id).await?;
    store.close().await;
    match task.out {
        Some(path) => files::replace(&path, envelope.as_bytes(), files::PUBLIC),
        None => print(&format!("{envelope}\n")),
    }
}

fn label(option: &str, text: &str) -> Result<String, Failure> {
    match Label::parse(text) {
        Some(label) => Ok(label.as_str().to_owned()),
        None => Err(Failure::Argument(format!(
            "{option}: expected an RFC 1123 label (1 to 63 of a-z, 0-9 and -)"
        ))),
    }
}

/// Strict JSON, given as such or in a file.
fn read_arguments(text: &str) -> Result<Map<String, Value>, Failure> {
    let mut bytes = Vec::new();
    if let Some(path) = text.strip_prefix('@') {
        let path = std::path::Path::new(path);
        let limit = u64::try_from(MAX_ARGUMENTS_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        std::fs::File::open(path)
            .and_then(|file| file.take(limit).read_to_end(&mut bytes))
            .map_err(|error| Failure::file(path, error))?;
    } else {
        bytes.extend_from_slice(text.as_bytes());
    }
    match parse(&bytes, MAX_ARGUMENTS_BYTES) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(Failure::Argument("--arguments: expected an object".to_owned())),
        Err(error) => Err(Failure::Argument(format!("--arguments: not strict JSON: {error}"))),
    }
}

fn print_line(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::System(format!("standard output: {error}")))
}
