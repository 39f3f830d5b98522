//! What must hold of a command as a process records it for the first time.

use super::link::Link;
use super::{ALLOWED, LINKED};
use crate::checker::Checker;
use crate::host::Life;
use crate::identity::CLUSTER;
use crate::manager::{Issued, Manager};
use crate::stored::{Entry, Stored};
use jiff::Timestamp;
use navin_cluster_agent::rules::names::parse_time;
use serde_json::Value;
use std::time::Duration;

/// How long after its file was taken back the word of it may be on its way.
const ON_ITS_WAY: i64 = 10;

impl Checker {
    /// 2: as a process of `life`, which leads since `since`, sends `next` to the state.
    pub(crate) fn accepting(
        &mut self,
        life: &Life,
        process: u64,
        next: &Stored,
        manager: &Manager,
        since: Option<Duration>,
    ) {
        let offline_after = self.offline_after();
        let known = self.known.entry(process).or_default();
        let link = since.map(|since| known.link(since, life.monotonic(), offline_after));
        let view = known.view.clone();
        let was = |nonce: &str| view.as_ref().is_some_and(|view| view.commands.contains_key(nonce));
        let mut new: Vec<(&String, &Entry)> = next.commands.iter().filter(|(nonce, _)| !was(nonce)).collect();
        new.retain(|(nonce, _)| known.accepting.insert((*nonce).clone()));
        for (nonce, entry) in new {
            match (&entry.envelope, &entry.receipt) {
                (Some(envelope), _) => self.begins(envelope, (nonce, entry), link, life.host.wall(), manager),
                (None, Some(receipt)) if receipt["reason"] == "manager_unreachable" => {
                    self.refused_as_unreachable(link, nonce);
                }
                (None, _) => {}
            }
        }
    }

    fn begins(
        &mut self,
        envelope: &Value,
        (nonce, entry): (&String, &Entry),
        link: Option<Link>,
        wall: Timestamp,
        manager: &Manager,
    ) {
        let issued = manager.command(&entry.id).filter(|command| command.nonce == *nonce);
        let signed =
            |issued: &&Issued| serde_json::from_str::<Value>(&issued.envelope).is_ok_and(|e| e == *envelope);
        let Some(issued) = issued.filter(signed) else {
            self.broken(ALLOWED, format!("{nonce}: the manager never signed this"));
            return;
        };
        let payload = &envelope["payload"];
        let time = |member: &str| payload[member].as_str().and_then(parse_time);
        if payload["target"]["id"] != CLUSTER
            || time("not_before") > Some(wall)
            || time("not_after") < Some(wall)
        {
            self.broken(ALLOWED, format!("#{}: not in its window at {wall}", issued.sequence));
        }
        if issued.name.is_some() && link != Some(Link::Online) {
            self.broken(LINKED, format!("#{}: accepted while {link:?}", issued.sequence));
        }
        let long = |since: u64| self.now.duration_since(crate::host::true_time(since)).as_secs() > ON_ITS_WAY;
        if self.hinted && self.nobody_was_paused() && issued.taken_back.is_some_and(long) {
            self.begun_although_taken_back(nonce);
        }
    }
}
