//! What the handlers of both ports share: the parts of a running manager, and of each connection its [`peer`].
//! None of it outlives the process. For polls, [`wake`] ends their wait, [`questions`] are what they ask, and
//! [`delivered`] is what one brought; [`instance`] is this process among the gateways, and [`contacts`] when
//! agents were heard; [`http`] is how all calls are read and answered.
//!
//! Imports the rooms below ([`limits`](crate::limits), [`keys`](crate::keys), [`store`](crate::store),
//! [`process`](crate::process)); the ports, the gateway, the REST API and the command line may import it.
//! [`peer`] and [`delivered`] take the parts as [`Shared`], and are none of them.

pub(crate) mod contacts;
pub(crate) mod delivered;
pub(crate) mod http;
pub(crate) mod instance;
pub(crate) mod peer;
pub(crate) mod questions;
pub(crate) mod wake;

use crate::keys::server::ServerKey;
use crate::limits::callers::{Checks, Kept, Limits};
use crate::limits::room::Room;
use crate::process::stop::Stop;
use crate::store::Store;
use contacts::Contacts;
use instance::Instance;
use questions::Questions;
use std::sync::Arc;
use tokio::sync::Semaphore;
use wake::Wake;

/// The parts of a running manager.
pub(crate) struct App {
    /// What must outlive the process.
    pub(crate) store: Store,
    /// The server's certificate and key.
    pub(crate) server: Arc<ServerKey>,
    /// The long polls that wait.
    pub(crate) wake: Wake,
    /// What polls ask when they begin.
    pub(crate) questions: Questions,
    /// This process among the gateways.
    pub(crate) instance: Instance,
    /// When agents were heard, until it is written.
    pub(crate) contacts: Contacts,
    /// What reports may take in memory.
    pub(crate) reports: Room,
    /// What receipts may, which wait for no report.
    pub(crate) receipts: Room,
    /// Reports that are parsed at once.
    pub(crate) parsing: Semaphore,
    /// What each agent's certificate has open, and how often it calls.
    pub(crate) agents: Arc<Limits>,
    /// What each operator's token has open, and how often it calls.
    pub(crate) operators: Arc<Limits>,
    /// The connections that operators keep.
    pub(crate) kept: Kept,
    /// The kubeconfigs that are being looked at.
    pub(crate) checks: Checks,
    /// Whether the process is to end.
    pub(crate) stop: Stop,
}

/// The parts, as each handler holds them.
pub(crate) type Shared = Arc<App>;
