//! What wakes the leader thread: the one closed list of it, so that nothing else can.

use crate::kube::watch::Sighting;
use crate::rules::messages::Source;
use crate::rules::names::Nonce;
use serde_json::Value;
use std::sync::mpsc::SyncSender;

/// All that can wake the leader thread.
#[derive(Debug)]
pub enum Event {
    /// The permission to act came or went.
    Leadership,
    /// Envelopes came, each with its own bytes.
    Delivered {
        /// The envelopes.
        envelopes: Vec<Vec<u8>>,
        /// Where they came from.
        source: Source,
        /// Dropped when they were taken: until then nothing more is fetched.
        taken: SyncSender<()>,
    },
    /// The manager has this receipt.
    Acknowledged(Nonce),
    /// An inventory that `inventory.report` commands wait for.
    Inventory {
        /// Their `result`.
        result: Value,
        /// Up to which call of [`Board::ask_inventory`](crate::board::Board::ask_inventory) it answers.
        asked: u64,
    },
    /// All components of the managed namespace, as the watch found them.
    Listed(Vec<Sighting>),
    /// One component was made or changed.
    Seen(Sighting),
    /// One component is gone: its name.
    Gone(String),
}
