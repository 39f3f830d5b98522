//! What wakes the leader thread: the one closed list of it, so that nothing else can.

use crate::kube::watch::Sighting;
use crate::rules::names::Nonce;
use crate::rules::report::Inventory;
use crate::rules::verdict::Trust;
use serde_json::Value;
use std::sync::mpsc::SyncSender;

/// All that can wake the leader thread.
#[derive(Debug)]
pub enum Event {
    /// The permission to act came or went.
    Leadership,
    /// Envelopes came from the gateway, each with its own bytes.
    Delivered {
        /// The envelopes.
        envelopes: Vec<Vec<u8>>,
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
        /// All of it, for the inbox.
        whole: Inventory,
    },
    /// Files of the inbox; each is answered, at once or later, at the inbox's desk.
    Filed(Vec<Filed>),
    /// Another identity is in use: its keys and its configuration count from now on.
    Trust(Box<Trust>),
    /// All components that commands know of, as the watch found them: what is not among them is not there.
    Listed(Vec<Sighting>),
    /// One component was made or changed.
    Seen(Sighting),
    /// One component is gone: its name.
    Gone(String),
}

/// One handing over of one file of the inbox, by which the leader's answer finds it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A file of the inbox.
#[derive(Debug)]
pub struct Filed {
    /// For the answer.
    pub ticket: Ticket,
    /// What it holds, or why that cannot be read.
    pub content: Result<Vec<u8>, String>,
}
