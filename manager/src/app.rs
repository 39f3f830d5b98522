//! What the handlers of both ports share.

use crate::contacts::Contacts;
use crate::instance::Instance;
use crate::keys::ServerKey;
use crate::limits::{Kept, Limits};
use crate::questions::Questions;
use crate::room::Room;
use crate::stop::Stop;
use crate::store::Store;
use crate::wake::Wake;
use std::sync::Arc;
use tokio::sync::Semaphore;

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
    /// Whether the process is to end.
    pub(crate) stop: Stop,
}

/// The parts, as each handler holds them.
pub(crate) type Shared = Arc<App>;
