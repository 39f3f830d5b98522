//! The operator commands' part of the command line.

use super::trouble::Trouble;
use crate::process::failure::EXIT_CODES;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Where and how to call.
#[derive(Args)]
pub(crate) struct Server {
    /// Address of the REST API: https://HOST:PORT
    #[arg(
        long = "server",
        value_name = "URL",
        env = "NAVIN_SERVER",
        default_value = "https://127.0.0.1:8461"
    )]
    pub(crate) url: String,
    /// File of the certificate authority that the server is known by: DATA/tls/ca.crt of the manager
    #[arg(long, value_name = "FILE", env = "NAVIN_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// File of the bearer token; without it, NAVIN_TOKEN holds the token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// What to print
    #[arg(long, short, value_name = "FORM", default_value = "table")]
    pub(crate) output: Form,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Table,
    /// As the API answers.
    Json,
    /// The same in YAML.
    Yaml,
}

/// A server and one of its clusters.
#[derive(Args)]
pub(crate) struct Target {
    /// The server.
    #[command(flatten)]
    pub(crate) server: Server,
    /// The cluster's name, as it is registered
    #[arg(long, env = "NAVIN_CLUSTER")]
    cluster: Option<String>,
}

/// Whether to wait for the outcome.
#[derive(Args)]
pub(crate) struct Sending {
    /// Seconds until the command expires [default: 900]
    #[arg(long, value_name = "N")]
    pub(crate) valid_for_s: Option<u64>,
    /// Wait for the outcome, and tell on standard error how it goes
    #[arg(long)]
    pub(crate) wait: bool,
    /// Seconds to wait at most [default: until the command expires]
    #[arg(long, value_name = "N", requires = "wait")]
    pub(crate) timeout: Option<u64>,
}

/// What operators do.
#[derive(Subcommand)]
pub(crate) enum OperatorTask {
    /// Lists clusters, shows one, or registers one
    #[command(after_help = EXIT_CODES)]
    Clusters {
        /// The server.
        #[command(flatten)]
        server: Server,
        /// The cluster to show, with its components; all when absent
        name: Option<String>,
        /// Register it, with this managed namespace
        #[arg(long, value_name = "NAMESPACE", requires = "name")]
        register: Option<String>,
        /// File of a kubeconfig with which the manager shall look at it (- for standard input)
        #[arg(long, value_name = "FILE", requires = "register")]
        kubeconfig: Option<PathBuf>,
    },
    /// Prints the YAML of what the manager's import may do in the cluster, for kubectl apply -f - (-o changes nothing)
    #[command(after_help = EXIT_CODES)]
    ImportRbac(Target),
    /// Issues the agent's identity, and prints its Secret as YAML; any before is revoked
    #[command(after_help = EXIT_CODES)]
    Identity {
        /// Whose.
        #[command(flatten)]
        target: Target,
        /// Where the agent calls: https://HOST:PORT
        #[arg(long, value_name = "URL")]
        gateway_url: String,
        /// Another number of the agent's configuration: lease_duration_s, offline_after_s, poll_wait_s,
        /// report_interval_s or max_validity_s; may be repeated
        #[arg(long = "set", value_name = "NAME=N")]
        settings: Vec<String>,
    },
    /// Prints the YAML of all that the agent needs but its identity, for kubectl apply -f - (-o changes nothing)
    #[command(after_help = EXIT_CODES)]
    Manifests {
        /// Whose.
        #[command(flatten)]
        target: Target,
        /// The agent's image: name@sha256:…
        #[arg(long)]
        image: String,
    },
    /// Creates or replaces a component
    #[command(after_help = EXIT_CODES)]
    Apply {
        /// Where.
        #[command(flatten)]
        target: Target,
        /// The component's name
        name: String,
        /// File of the spec in YAML or JSON, or of a whole ManagedComponent (- for standard input)
        #[arg(long, short, value_name = "FILE")]
        file: PathBuf,
        /// How.
        #[command(flatten)]
        sending: Sending,
    },
    /// Deletes a component
    #[command(after_help = EXIT_CODES)]
    Delete {
        /// Where.
        #[command(flatten)]
        target: Target,
        /// The component's name
        name: String,
        /// How.
        #[command(flatten)]
        sending: Sending,
    },
    /// Shows the last inventory
    #[command(after_help = EXIT_CODES)]
    Inventory(Target),
    /// Lists the newest commands, or shows one with its receipts
    #[command(after_help = EXIT_CODES)]
    Commands {
        /// Whose.
        #[command(flatten)]
        target: Target,
        /// The identifier of the command to show
        command: Option<String>,
        /// How many to list
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u64,
    },
    /// Waits for a command's outcome
    #[command(after_help = EXIT_CODES)]
    Wait {
        /// Whose.
        #[command(flatten)]
        target: Target,
        /// The command's identifier, as `commands` lists it
        command: String,
        /// Seconds to wait at most [default: until the command expires]
        #[arg(long, value_name = "N")]
        timeout: Option<u64>,
    },
    /// Lists who did what, and what was refused
    #[command(after_help = EXIT_CODES)]
    Audit {
        /// The server.
        #[command(flatten)]
        server: Server,
        /// How many entries, newest first
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u64,
    },
}

impl OperatorTask {
    /// The cluster that it is about, where it is about one that is said.
    pub(super) fn cluster(&self) -> Option<&str> {
        match self {
            Self::Clusters { name, .. } => name.as_deref(),
            Self::ImportRbac(target)
            | Self::Identity { target, .. }
            | Self::Manifests { target, .. }
            | Self::Apply { target, .. }
            | Self::Delete { target, .. }
            | Self::Inventory(target)
            | Self::Commands { target, .. }
            | Self::Wait { target, .. } => target.cluster.as_deref(),
            Self::Audit { .. } => None,
        }
    }
}

impl Target {
    /// The cluster's name.
    pub(super) fn cluster(&self) -> Result<&str, Trouble> {
        let expected = || Trouble::Usage("expected --cluster or NAVIN_CLUSTER".to_owned());
        self.cluster.as_deref().ok_or_else(expected)
    }
}
