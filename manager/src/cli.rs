//! The command line.

use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The exit codes, as `--help` tells them.
const EXIT_CODES: &str = "\
Exit codes:
  0   done; for the servers: stopped by SIGTERM or SIGINT
  1   failed: the database, the network, or a request that is refused
  2   the command line is wrong
  78  a key or certificate file is damaged, or does not fit the others

Logs go to standard error; NAVIN_LOG sets the filter (default: info).";

/// The control plane of Navin cluster agents.
#[derive(Debug, Parser)]
#[command(name = "navin-manager", version, about, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
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
    /// Makes a bearer token for a tenant's operators, and prints it once
    ///
    /// Only its SHA-256 is kept.
    #[command(after_help = EXIT_CODES)]
    Token(Token),
    /// Registers, signs and queues a command, and writes its envelope for an inbox
    #[command(after_help = EXIT_CODES)]
    Sign(Sign),
}

/// Where the manager keeps what it must remember.
#[derive(Debug, Args)]
pub(crate) struct Folders {
    /// Folder of manager.db; made when it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Folder of the keys and certificates, made at the first start [default: DATA/tls]
    ///
    /// ca.crt, ca.key, server.crt, server.key, signing.key (Ed25519, PKCS#8) and manager.pem (its
    /// public key; more PUBLIC KEY blocks may be added there to rotate it).
    #[arg(long, value_name = "DIR")]
    pub(crate) tls_dir: Option<PathBuf>,
}

impl Folders {
    /// The folder of the keys.
    pub(crate) fn tls_dir(&self) -> PathBuf {
        self.tls_dir.clone().unwrap_or_else(|| self.data.join("tls"))
    }
}

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where things are.
    #[command(flatten)]
    pub(crate) folders: Folders,
    /// Address of the REST API; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8461")]
    pub(crate) listen: SocketAddr,
    /// Address of the gateway; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "0.0.0.0:8462")]
    pub(crate) gateway_listen: SocketAddr,
    /// DNS name or IP address that the server certificate is for; may be repeated
    ///
    /// localhost, 127.0.0.1 and `::1` are always among them. A certificate that lacks a name is made
    /// anew from the same key.
    #[arg(long = "server-name", value_name = "NAME")]
    pub(crate) server_names: Vec<String>,
}

/// `agent-gateway`.
#[derive(Debug, Args)]
pub(crate) struct AgentGateway {
    /// Where things are.
    #[command(flatten)]
    pub(crate) folders: Folders,
    /// IP address to listen on
    #[arg(long, default_value = "0.0.0.0")]
    pub(crate) host: std::net::IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 8462)]
    pub(crate) port: u16,
    /// DNS name or IP address that the server certificate is for; may be repeated
    #[arg(long = "server-name", value_name = "NAME")]
    pub(crate) server_names: Vec<String>,
}

/// `token`.
#[derive(Debug, Args)]
pub(crate) struct Token {
    /// Folder of manager.db; made when it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The tenant: an RFC 1123 label
    #[arg(long)]
    pub(crate) tenant: String,
}

/// `sign`.
#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// Where things are.
    #[command(flatten)]
    pub(crate) folders: Folders,
    /// The tenant
    #[arg(long)]
    pub(crate) tenant: String,
    /// The cluster, registered before
    #[arg(long)]
    pub(crate) cluster: String,
    /// managedcomponent.apply, managedcomponent.delete or inventory.report
    #[arg(long)]
    pub(crate) operation: String,
    /// The arguments as a JSON object, or @FILE to read them from a file
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) arguments: String,
    /// Seconds from now until the command expires
    #[arg(long, value_name = "N", default_value_t = crate::issue::DEFAULT_VALID_FOR_S)]
    pub(crate) valid_for_s: u64,
    /// File to write the envelope to; standard output when absent
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
