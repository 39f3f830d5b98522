//! What is read when: the files whose turn it is, on their way to the leader thread.

use super::desk::Reply;
use super::{AGAIN, File, Inbox, PER_SECOND, SECOND, SETTLED, Stage};
use crate::event::{Event, Filed, Ticket};
use crate::rules::inbox::{is_cut_off, receipt_name};
use crate::rules::json::MAX_ENVELOPE_BYTES;
use std::sync::mpsc::TrySendError;
use std::time::Duration;

/// How long one that is cut off, empty or not readable is given to become better.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause where the leader's channel is full.
const BUSY: Duration = Duration::from_millis(200);

impl Inbox {
    /// Reads the files whose turn it is and hands them to the leader: the oldest first.
    pub(super) fn hand_over(&mut self, now: Duration) {
        if now.saturating_sub(self.window.0) >= SECOND {
            self.window = (now, 0);
        }
        let room = PER_SECOND.saturating_sub(self.window.1.max(self.handed()));
        let waits = |file: &File| matches!(file.stage, Stage::Ready | Stage::UnderWay(_)) && file.due <= now;
        let mut turn: Vec<_> = self.files.values().filter(|file| waits(file)).collect();
        turn.sort_by_key(|file| (file.due, file.entry.stamp.modified));
        let names: Vec<String> = turn.iter().take(room).map(|file| file.entry.name.clone()).collect();
        let filed: Vec<Filed> = names.iter().filter_map(|name| self.read(name, now)).collect();
        if filed.is_empty() {
            return;
        }
        let Err(refused) = self.leader.try_send(Event::Filed(filed)) else { return };
        let (TrySendError::Full(event) | TrySendError::Disconnected(event)) = refused;
        let Event::Filed(filed) = event else { return };
        for Filed { ticket, .. } in filed {
            self.replied(ticket, Reply::Later, now.saturating_sub(AGAIN).saturating_add(BUSY));
        }
    }

    pub(super) fn handed(&self) -> usize {
        self.files.values().filter(|file| matches!(file.stage, Stage::Handed(_))).count()
    }

    /// Reads one file; nothing where it is not to be judged now.
    fn read(&mut self, name: &str, now: Duration) -> Option<Filed> {
        self.window.1 = self.window.1.saturating_add(1);
        // Another replica may have answered it, where the folder is shared.
        if receipt_name(name).is_none_or(|receipt| self.folder.look(&receipt).is_some()) {
            self.forget(name);
            return None;
        }
        if !self.is_as_seen(name) {
            return None;
        }
        let file = self.files.get(name)?;
        let give_up = file.since.saturating_add(PATIENCE);
        let content = if let Some(why) = file.entry.unreadable {
            Err(why.to_owned())
        } else if file.entry.stamp.size > MAX_ENVELOPE_BYTES {
            Err(format!("larger than {} KiB", MAX_ENVELOPE_BYTES.div_euclid(1024)))
        } else {
            match self.folder.read(&file.entry, MAX_ENVELOPE_BYTES) {
                Ok(Some(bytes)) if is_cut_off(&bytes) && now < give_up => return self.put_off(name, give_up),
                Ok(Some(bytes)) => Ok(bytes),
                Ok(None) => return self.put_off(name, now.saturating_add(SETTLED)),
                Err(_) if now < give_up => return self.put_off(name, give_up),
                Err(error) => Err(format!("not readable: {}", error.kind())),
            }
        };
        let file = self.files.get_mut(name)?;
        // One that is under way keeps its ticket: its command may end at any moment, and answers that one.
        let ticket = if let Stage::UnderWay(ticket) = file.stage {
            ticket
        } else {
            self.last_ticket = self.last_ticket.wrapping_add(1);
            Ticket(self.last_ticket)
        };
        self.desk.open(ticket);
        file.stage = Stage::Handed(ticket);
        Some(Filed { ticket, content })
    }

    fn put_off(&mut self, name: &str, due: Duration) -> Option<Filed> {
        if let Some(file) = self.files.get_mut(name) {
            file.due = due;
        }
        None
    }
}
