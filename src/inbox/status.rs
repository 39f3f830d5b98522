//! What `submit` is told: who leads.

use super::{Inbox, REWRITE};
use crate::rules::inbox::{STATUS_EVERY, STATUS_NAME, Status, pod_of};
use crate::say::say;
use std::time::Duration;

impl Inbox {
    /// Says for `submit` who leads: when that changes, and every now and then.
    pub(super) fn show_status(&mut self, leads: bool, now: Duration) {
        let other = || {
            let pod = self.permit.holder().map(|holder| pod_of(&holder).to_owned());
            pod.filter(|pod| *pod != self.replica)
        };
        let leader = if leads { Some(self.replica.clone()) } else { other() };
        let shown = Some((leads, leader.clone()));
        if shown == self.status && now < self.status_at {
            return;
        }
        let status = Status { replica: self.replica.clone(), leads, leader, written_at: self.clock.wall() };
        match self.folder.write(STATUS_NAME, status.to_json().as_bytes(), false) {
            Ok(()) => {
                self.status = shown;
                self.status_at = now.saturating_add(STATUS_EVERY);
            }
            Err(error) => {
                let line = format!("inbox not writable error={:?}", error.to_string());
                say(&mut self.said, now, log::Level::Warn, "inbox not writable", &line);
                self.status = shown;
                self.status_at = now.saturating_add(REWRITE);
            }
        }
    }
}
