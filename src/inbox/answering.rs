//! What the leader says about a file, and the answer beside it.

use super::{AGAIN, File, Inbox, REWRITE, Reply, Stage};
use crate::event::Ticket;
use crate::rules::inbox::receipt_name;
use crate::say::say;
use std::time::Duration;

/// When a file whose command is being executed is looked at again, should the end have been missed.
const MISSED: Duration = Duration::from_secs(30);
/// Most answers that are written in one step.
const ANSWERS_A_STEP: usize = 64;

impl Inbox {
    pub(super) fn replied(&mut self, ticket: Ticket, reply: Reply, now: Duration) {
        let open = |stage: &Stage| match stage {
            Stage::Handed(open) | Stage::UnderWay(open) => *open == ticket,
            Stage::Ready | Stage::Answered(_) => false,
        };
        let Some(file) = self.files.values_mut().find(|file| open(&file.stage)) else { return };
        match reply {
            Reply::Answer(answer) => {
                self.desk.close(ticket);
                file.stage = Stage::Answered(answer);
                file.due = now;
            }
            Reply::UnderWay(_) => {
                file.stage = Stage::UnderWay(ticket);
                file.due = now.saturating_add(MISSED);
            }
            Reply::Later if self.desk.is_under_way(ticket) => {
                file.stage = Stage::UnderWay(ticket);
                file.due = now.saturating_add(AGAIN);
            }
            Reply::Later => {
                self.desk.close(ticket);
                file.stage = Stage::Ready;
                file.due = now.saturating_add(AGAIN);
            }
        }
    }

    pub(super) fn write_answers(&mut self, now: Duration) {
        let due = |file: &File| matches!(file.stage, Stage::Answered(_)) && file.due <= now;
        let names = self.files.iter().filter(|(_, file)| due(file)).map(|(name, _)| name.clone());
        for name in names.take(ANSWERS_A_STEP).collect::<Vec<_>>() {
            if !self.is_as_seen(&name) {
                continue;
            }
            let Some(file) = self.files.get(&name) else { continue };
            let (Stage::Answered(answer), Some(receipt)) = (&file.stage, receipt_name(&name)) else {
                continue;
            };
            match self.folder.write(&receipt, &answer.to_json(), true) {
                Ok(()) => {
                    log::debug!("inbox answered file={name:?}");
                    self.files.remove(&name);
                }
                Err(error) => {
                    let line =
                        format!("inbox answer not written file={receipt:?} error={:?}", error.to_string());
                    say(&mut self.said, now, log::Level::Warn, "inbox answer not written", &line);
                    if let Some(file) = self.files.get_mut(&name) {
                        file.due = now.saturating_add(REWRITE);
                    }
                }
            }
        }
    }
}
