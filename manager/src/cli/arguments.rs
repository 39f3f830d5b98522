//! What can be asked for.

use crate::keys::issue::DEFAULT_VALID_FOR_S;
use crate::operator::cli::{Form, OperatorTask};
use crate::process::failure::{EXIT_CODES, Failure};
use crate::store::Database;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand};
use navin_cluster_agent::rules::names::Label;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The control plane of Navin cluster agents.
#[derive(Parser)]
#[command(name = "navin-manager", version, about, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// What can be asked for.
#[derive(Subcommand)]
pub(crate) enum Task {
    /// Serves the REST API and the agents' gateway
    ///
    /// Once both listen, one JSON line on standard output tells their addresses:
    /// {"rest":"https://…","gateway":"https://…"}.
    #[command(after_help = EXIT_CODES)]
    Serve(Serve),
    /// Serves the agents' gateway alone, on the same data
    ///
    /// Several may run beside `serve` on one data folder. Once it listens, one JSON line on
    /// standard output tells its address: {"gateway":"https://…"}.
    #[command(after_help = EXIT_CODES)]
    AgentGateway(AgentGateway),
    /// Makes a bearer token for a tenant's operators, and prints it once; lists and revokes them
    ///
    /// Only its SHA-256 is kept.
    #[command(after_help = EXIT_CODES)]
    Token(Token),
    /// Registers, signs and queues a command, and writes its envelope for an inbox
    #[command(after_help = EXIT_CODES)]
    Sign(Sign),
    /// What operators do, over the REST API.
    #[command(flatten)]
    Operator(OperatorTask),
}

/// Where the manager keeps what it must remember.
#[derive(Args)]
pub(crate) struct Place {
    /// Folder of manager.db
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// The database: `sqlite:FILE`, or postgres://USER:PASSWORD@HOST:PORT/NAME for several managers
    /// and gateways side by side [default: sqlite:DATA/manager.db]. A server elsewhere is known by its certificate:
    /// ?sslmode=verify-full&sslrootcert=FILE
    #[arg(long, value_name = "URL", env = "NAVIN_DATABASE", hide_env_values = true, global = true)]
    database: Option<String>,
}

impl Place {
    /// The database.
    pub(crate) fn database(&self) -> Result<Database, Failure> {
        match (&self.database, &self.data) {
            (Some(url), _) => Database::parse(url),
            (None, Some(data)) => Ok(Database::Sqlite(data.join("manager.db"))),
            (None, None) => {
                Err(Failure::Argument("expected --data, --database or NAVIN_DATABASE".to_owned()))
            }
        }
    }
}

/// Where the manager keeps what it must remember, keys included.
#[derive(Args)]
pub(crate) struct Folders {
    /// The database.
    #[command(flatten)]
    pub(crate) place: Place,
    /// Folder of the keys and certificates, made at the first start [default: DATA/tls]
    ///
    /// ca.crt, ca.key, server.crt, server.key, signing.key (Ed25519, PKCS#8) and manager.pem (its
    /// public key; more PUBLIC KEY blocks may be added there to rotate it). Managers on one database
    /// have the same files. `agent-gateway` reads ca.crt, server.crt and server.key alone, and makes none.
    #[arg(long, value_name = "DIR")]
    tls_dir: Option<PathBuf>,
}

impl Folders {
    /// The folder of the keys.
    pub(crate) fn tls_dir(&self) -> Result<PathBuf, Failure> {
        let beside = self.place.data.as_ref().map(|data| data.join("tls"));
        let given = self.tls_dir.clone().or(beside);
        given.ok_or_else(|| Failure::Argument("expected --tls-dir, where --data is not given".to_owned()))
    }
}

/// How much this process takes on.
#[derive(Args)]
pub(crate) struct Load {
    /// Connections of agents at once, 1 to 1000000; what comes above is put off until one ends. Lowered,
    /// and logged, where fewer files may be open [default: 16384]
    #[arg(long, value_name = "N", env = "NAVIN_MAX_AGENTS")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub(crate) max_agents: Option<usize>,
    /// Calls a minute of one agent's certificate, above which it is told to wait; 0 for any number
    #[arg(long, value_name = "N", env = "NAVIN_AGENT_RATE", default_value_t = 1200)]
    pub(crate) agent_rate: u32,
}

/// `serve`.
#[derive(Args)]
pub(crate) struct Serve {
    /// Where things are.
    #[command(flatten)]
    pub(crate) folders: Folders,
    /// How much this process takes on.
    #[command(flatten)]
    pub(crate) load: Load,
    /// Calls a minute of one operator's token, above which it is told to wait; 0 for any number
    #[arg(long, value_name = "N", env = "NAVIN_TOKEN_RATE", default_value_t = 6000)]
    pub(crate) token_rate: u32,
    /// IP address and port of the REST API, an IPv6 address in brackets; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8461")]
    pub(crate) listen: SocketAddr,
    /// IP address and port of the gateway; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:8462")]
    pub(crate) gateway_listen: SocketAddr,
    /// DNS name or IP address that the server certificate is for; may be repeated
    ///
    /// localhost, 127.0.0.1 and `::1` are always among them. A certificate that lacks a name is made
    /// anew from the same key.
    #[arg(long = "server-name", value_name = "NAME")]
    pub(crate) server_names: Vec<String>,
}

/// `agent-gateway`.
#[derive(Args)]
pub(crate) struct AgentGateway {
    /// Where things are.
    #[command(flatten)]
    pub(crate) folders: Folders,
    /// How much this process takes on.
    #[command(flatten)]
    pub(crate) load: Load,
    /// IP address to listen on
    #[arg(long, default_value = "0.0.0.0")]
    pub(crate) host: std::net::IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 8462)]
    pub(crate) port: u16,
    /// DNS name or IP address that the server certificate must be for; may be repeated
    #[arg(long = "server-name", value_name = "NAME")]
    pub(crate) server_names: Vec<String>,
}

/// `token`.
#[derive(Args)]
#[command(subcommand_negates_reqs = true)]
pub(crate) struct Token {
    /// The database.
    #[command(flatten)]
    pub(crate) place: Place,
    /// The tenant: an RFC 1123 label
    #[arg(long, required = true)]
    pub(crate) tenant: Option<String>,
    /// Make the database where there is none, before `serve` does at its first start
    #[arg(long)]
    pub(crate) create: bool,
    /// What else can be done with tokens.
    #[command(subcommand)]
    pub(crate) task: Option<TokenTask>,
}

/// What else can be done with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenTask {
    /// Lists the tokens, without themselves: identifier, tenant, when made, when revoked
    #[command(after_help = EXIT_CODES)]
    List {
        /// Of this tenant only
        #[arg(long)]
        tenant: Option<String>,
        /// What to print
        #[arg(long, short, value_name = "FORM", default_value = "table")]
        output: Form,
    },
    /// Revokes a token: its next call is refused
    #[command(after_help = EXIT_CODES)]
    Revoke {
        /// The token's identifier, as `list` and the audit have it
        token_id: String,
    },
}

/// `sign`.
#[derive(Args)]
pub(crate) struct Sign {
    /// Where things are.
    #[command(flatten)]
    pub(crate) folders: Folders,
    /// The tenant
    #[arg(long)]
    pub(crate) tenant: String,
    /// The cluster's name, as it is registered
    #[arg(long)]
    pub(crate) cluster: String,
    /// managedcomponent.apply, managedcomponent.delete or inventory.report
    #[arg(long)]
    pub(crate) operation: String,
    /// The arguments as a JSON object, or @FILE to read them from a file
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) arguments: String,
    /// Seconds from now until the command expires
    #[arg(long, value_name = "N", default_value_t = DEFAULT_VALID_FOR_S)]
    pub(crate) valid_for_s: u64,
    /// File to write the envelope to; standard output when absent
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// A tenant or cluster, as such an option gives it.
pub(super) fn label(option: &str, text: &str) -> Result<String, Failure> {
    match Label::parse(text) {
        Some(label) => Ok(label.as_str().to_owned()),
        None => Err(Failure::Argument(format!(
            "{option}: expected an RFC 1123 label (1 to 63 of a-z, 0-9 and -)"
        ))),
    }
}
