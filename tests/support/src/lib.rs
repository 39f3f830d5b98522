//! A real kube-apiserver, the real manager and the real agent, as processes, for tests and the demo.
//!
//! In reading order: [`World`] is all of it for one scenario; [`Cluster`] is etcd and kube-apiserver;
//! [`Namespace`] is a fresh namespace with what `deploy/` puts into it; [`Manager`] and [`Agent`] are
//! the two programs, [`Postgres`] is the database of several managers; [`Process`] is what they all are;
//! [`Proxy`] breaks what goes between them, and [`TlsServer`] takes the place of one; [`SigningKey`]
//! signs what no manager would; [`until`] is how a test waits.
//!
//! Everything here panics with a message when the world is not as a test needs it: there is nobody
//! above a test who could do better. Everything that waits has a bound.
//!
//! The crate does not link the agent or the manager: it builds them with Cargo and runs them.

#![expect(clippy::missing_panics_doc, reason = "a failed test is a panic; it is said once, above")]
#![expect(clippy::must_use_candidate, reason = "every accessor of a test helper would carry it")]

mod agent;
mod api;
mod binaries;
mod cluster;
mod cluster_binary;
mod cluster_flags;
mod credentials;
mod folder;
mod identity;
mod manager;
mod measure;
mod namespace;
mod postgres;
mod process;
mod proxy;
mod reaper;
mod signing;
mod tls_server;
mod wait;
mod world;

pub use agent::{Agent, AgentOptions};
pub use api::{Answer, Api};
pub use binaries::{cargo_binary, other_agent, without_cargo};
pub use cluster::Cluster;
pub use folder::{RunFolder, say, target_dir, workspace_dir};
pub use identity::Identity;
pub use manager::Manager;
pub use measure::Reading;
pub use namespace::Namespace;
pub use postgres::Postgres;
pub use process::{Launch, Process};
pub use proxy::{Call, Door, Exchange, Fate, Gate, Proxy, Raw, Reply, Server, Wire, client_config};
pub use signing::SigningKey;
pub use tls_server::{Request, TlsServer};
pub use wait::until;
pub use world::World;
