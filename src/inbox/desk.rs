//! Between the leader thread and the inbox thread: what becomes of each file that was handed over.
//!
//! Bounded by the files that are under way: nothing is kept of a ticket that the inbox has dropped, nor of
//! an outcome that no file waits for. The leader never waits for it.

use crate::event::Ticket;
use crate::rules::messages::Receipt;
use crate::rules::names::Nonce;
use crate::rules::report::{LIMIT, fit};
use crate::threads::Shared;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a file is answered with.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The receipt.
    pub receipt: Receipt,
    /// The whole inventory, with the success of an `inventory.report`: the inbox alone gets it.
    pub inventory: Option<Arc<Value>>,
}

impl Answer {
    /// The text of the answer file. As in a report, kinds of the inventory that are too large say so.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Neither can fail to be written: no map has other keys than texts.
        let mut receipt = serde_json::to_value(&self.receipt).unwrap_or_default();
        if let (Some(inventory), Some(Value::Object(result))) = (&self.inventory, receipt.get_mut("result")) {
            let mut part = json!({ "inventory": **inventory });
            fit(&mut part, LIMIT);
            result.insert(
                "inventory".to_owned(),
                part.get_mut("inventory").map(Value::take).unwrap_or_default(),
            );
        }
        format!("{receipt}\n")
    }
}

/// What the leader says about a file.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This is its answer.
    Answer(Box<Answer>),
    /// Its command is being executed, under this nonce: the answer comes with the end.
    UnderWay(Nonce),
    /// It cannot be judged now: hand it over again later.
    Later,
}

#[derive(Default)]
struct Inner {
    /// Those handed over and not dropped; with the nonce where the command is being executed.
    open: BTreeMap<Ticket, Option<Nonce>>,
    replies: Vec<(Ticket, Reply)>,
    /// Something may have changed in the folder.
    hint: bool,
    /// How often the leadership ended.
    reigns_ended: u64,
}

/// What is new.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) replies: Vec<(Ticket, Reply)>,
    pub(crate) hint: bool,
    pub(crate) reigns_ended: u64,
}

/// The meeting place.
#[derive(Default)]
pub struct Desk(Shared<Inner>);

impl Desk {
    /// The leader: this is what becomes of the file for now.
    pub fn reply(&self, ticket: Ticket, reply: Reply) {
        self.0.tell(|inner| {
            let Some(waiting) = inner.open.get_mut(&ticket) else { return };
            if let Reply::UnderWay(nonce) = &reply {
                *waiting = Some(nonce.clone());
            }
            inner.replies.push((ticket, reply));
        });
    }

    /// The leader: whether the file still waits, as it was handed over.
    #[must_use]
    pub fn is_open(&self, ticket: Ticket) -> bool {
        self.0.lock().open.contains_key(&ticket)
    }

    /// The leader: a command has ended; every file that waits for its nonce has its answer.
    pub fn ended(&self, receipt: &Receipt, inventory: Option<&Arc<Value>>) {
        let mut inner = self.0.lock();
        let waits = |(ticket, nonce): (&Ticket, &Option<Nonce>)| {
            (nonce.is_some() && *nonce == receipt.nonce).then_some(*ticket)
        };
        let tickets: Vec<Ticket> = inner.open.iter().filter_map(waits).collect();
        for ticket in tickets {
            let answer = Answer { receipt: receipt.clone(), inventory: inventory.map(Arc::clone) };
            inner.replies.push((ticket, Reply::Answer(Box::new(answer))));
        }
        drop(inner);
        self.0.notify();
    }

    /// The leader: the leadership began; there is something to do in the folder.
    pub fn begun(&self) {
        self.0.tell(|inner| inner.hint = true);
    }

    /// The leader: the leadership ended; what is open is open for whoever leads next.
    pub fn stepped_down(&self) {
        self.0.tell(|inner| {
            inner.open.clear();
            inner.replies.clear();
            inner.reigns_ended = inner.reigns_ended.wrapping_add(1);
        });
    }

    /// The watcher: something may have changed in the folder.
    pub fn hint(&self) {
        self.0.tell(|inner| inner.hint = true);
    }

    /// The inbox: this file is handed over, perhaps once more.
    pub(crate) fn open(&self, ticket: Ticket) {
        self.0.lock().open.entry(ticket).or_insert(None);
    }

    /// The inbox: whether the end of a command will answer this file.
    pub(super) fn is_under_way(&self, ticket: Ticket) -> bool {
        self.0.lock().open.get(&ticket).is_some_and(Option::is_some)
    }

    /// The inbox: nobody waits for this file any more.
    pub(crate) fn close(&self, ticket: Ticket) {
        self.0.lock().open.remove(&ticket);
    }

    pub(crate) fn take(&self) -> News {
        self.0.heed();
        let mut inner = self.0.lock();
        News {
            replies: std::mem::take(&mut inner.replies),
            hint: std::mem::take(&mut inner.hint),
            reigns_ended: inner.reigns_ended,
        }
    }

    /// Whether something is new since the inbox looked. For the simulation, which waits by other means.
    #[must_use]
    pub fn news(&self) -> bool {
        self.0.news()
    }

    /// Waits for news, at most `limit`.
    pub(super) fn wait(&self, limit: std::time::Duration) {
        self.0.wait(limit);
    }
}
