//! A file of the break-glass folder: its name up to the first line break, then its content.
//!
//! - A name is a command or it is not; an answer is never a command.
//! - What is JSON is not cut off; each beginning of it that leaves an array, object or text open is.
//! - A command is handed over once, with its own bytes: after a second, or after ten where it is cut off.
//! - Its answer lies beside it, whole, can be read again, and ends it; nothing else in the folder changes.
//! - What others leave there for `submit` and `health` is believed or not, and kills nobody.

use crate::envelope::stamp;
use crate::keys::VECTORS_TRUST;
use jiff::Timestamp;
use navin_cluster_agent::clock::Clock;
use navin_cluster_agent::event::{Event, Filed};
use navin_cluster_agent::folder::{Entry, Folder, Stamp};
use navin_cluster_agent::inbox::{Answer, Desk, Inbox, Reply};
use navin_cluster_agent::leadership::Permit;
use navin_cluster_agent::rules::election::Tenure;
use navin_cluster_agent::rules::health::Health;
use navin_cluster_agent::rules::inbox::{STATUS_NAME, Status, is_cut_off, is_receipt, receipt_name};
use navin_cluster_agent::rules::json::{MAX_ENVELOPE_BYTES, parse};
use navin_cluster_agent::rules::link::Link;
use navin_cluster_agent::rules::messages::Receipt;
use navin_cluster_agent::rules::state::State;
use navin_cluster_agent::rules::verdict::{Verdict, judge};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Checks bytes as a file.
pub fn check(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let content = bytes.get(end + 1..).unwrap_or_default();
    cut_off(content);
    others(content);
    let Ok(name) = str::from_utf8(&bytes[..end]) else { return };
    // A name that a file can have.
    if name.is_empty() || name.len() > 255 || name.contains(['/', '\0']) {
        return;
    }
    if let Some(receipt) = receipt_name(name) {
        assert!(receipt.len() <= 255 && is_receipt(&receipt) && receipt_name(&receipt).is_none());
        assert!(
            !name.starts_with('.') && receipt.strip_suffix(".receipt.json") == name.strip_suffix(".json")
        );
    }
    handed_over(name, content);
}

fn cut_off(content: &[u8]) {
    if parse(content, MAX_ENVELOPE_BYTES).is_err() {
        return;
    }
    assert!(!is_cut_off(content));
    let text = content.trim_ascii();
    if matches!(text.first(), Some(b'{' | b'[' | b'"')) {
        let step = (text.len() / 48).max(1);
        for end in (0..text.len()).rev().step_by(step) {
            // A character may be cut too.
            let cut = &text[..end];
            assert!(is_cut_off(cut) || str::from_utf8(cut).is_err(), "{}", cut.escape_ascii());
        }
    }
}

fn others(content: &[u8]) {
    let now = "2026-11-30T12:00:00Z".parse().expect("a time");
    if let Some(status) = Status::read(content, now) {
        assert_eq!(Status::read(status.to_json().as_bytes(), now), Some(status));
    }
    if let Ok((health, age)) = Health::judge(content, Duration::from_secs(1_000)) {
        let again = Health::judge(health.to_json().as_bytes(), Duration::from_secs(1_000));
        assert_eq!(again, Ok((health, age)));
    }
}

/// The way of the file through the inbox, up to its answer.
fn handed_over(name: &str, content: &[u8]) {
    let (folder, clock, permit) = (Held::default(), Arc::new(Hand::default()), Arc::new(Permit::default()));
    let (desk, (leader, events)) = (Arc::new(Desk::default()), sync_channel(4));
    let tenure = Tenure {
        holder: "agent-0_u1".to_owned(),
        transitions: 1,
        lease_uid: "u".to_owned(),
        first_start: false,
        since: Duration::ZERO,
    };
    permit.grant(&Arc::new(tenure), Duration::from_hours(1));
    folder.put(name, content);
    let seen: Arc<dyn Clock> = Arc::<Hand>::clone(&clock);
    let mut inbox =
        Inbox::new(Box::new(folder.clone()), &seen, &permit, Arc::clone(&desk), leader, "agent-0");
    inbox.step();
    assert_eq!(next(&events).map(|_| ()), None, "handed over at once");
    let mut filed = None;
    for second in 1..=12 {
        *clock.0.lock().unwrap_or_else(PoisonError::into_inner) = Duration::from_secs(second);
        inbox.step();
        let waits = is_cut_off(content) && second < 10;
        match next(&events) {
            Some(file) if filed.is_none() => {
                assert!(!waits, "one that is cut off after {second} s");
                filed = Some(file);
            }
            Some(_) => panic!("handed over twice"),
            None => {}
        }
    }
    assert_eq!(filed.is_some(), receipt_name(name).is_some(), "{name:?} in ten seconds");
    let Some(Filed { ticket, content: given }) = filed else { return };
    assert_eq!(given.as_deref(), Ok(content), "other bytes");
    let Verdict::Refuse(refused) =
        judge(content, &VECTORS_TRUST, &State::new(1, "a"), Link::Online, clock.wall())
    else {
        return;
    };
    let receipt = Receipt::refused(&stamp(), &refused.refusal, refused.record.is_some(), None);
    desk.reply(ticket, Reply::Answer(Box::new(Answer { receipt: receipt.clone(), inventory: None })));
    inbox.step();
    let answer = receipt_name(name).expect("it is a command");
    let mut names: Vec<String> = folder.lock().keys().cloned().collect();
    names.sort();
    let mut wanted = vec![STATUS_NAME.to_owned(), answer.clone(), name.to_owned()];
    wanted.sort();
    assert_eq!(names, wanted);
    assert_eq!(serde_json::from_slice::<Receipt>(&folder.lock()[&answer].1).ok(), Some(receipt));
    assert_eq!(folder.lock()[name].1, content, "the file was changed");
    *clock.0.lock().unwrap_or_else(PoisonError::into_inner) = Duration::from_mins(1);
    inbox.step();
    assert!(next(&events).is_none(), "handed over again, though it is answered");
}

fn next(events: &Receiver<Event>) -> Option<Filed> {
    match events.try_recv() {
        Ok(Event::Filed(mut files)) => {
            assert_eq!(files.len(), 1);
            files.pop()
        }
        Ok(event) => panic!("{event:?} of an inbox"),
        Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
    }
}

/// A clock that is set by hand.
#[derive(Default)]
struct Hand(Mutex<Duration>);

impl Clock for Hand {
    fn wall(&self) -> Timestamp {
        "2026-11-30T12:00:00Z".parse().expect("a time")
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, _: Duration) {}

    fn random(&self) -> u64 {
        0
    }
}

type Files = BTreeMap<String, (Entry, Vec<u8>)>;

/// A folder that is held in memory.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<Files>>);

impl Held {
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let mut files = self.lock();
        let at = (i64::try_from(files.len()).unwrap_or(i64::MAX), 0);
        let stamp = Stamp { modified: at, changed: at, file: (1, 1), size: bytes.len() };
        files.insert(
            name.to_owned(),
            (Entry { name: name.to_owned(), stamp, unreadable: None }, bytes.to_vec()),
        );
    }
}

impl Folder for Held {
    fn path(&self) -> Option<&Path> {
        None
    }

    fn list(&self, most: usize) -> io::Result<Vec<Entry>> {
        let files = self.lock();
        let waits = |name: &str| receipt_name(name).is_some_and(|receipt| !files.contains_key(&receipt));
        Ok(files
            .values()
            .map(|(entry, _)| entry)
            .filter(|entry| waits(&entry.name))
            .take(most)
            .cloned()
            .collect())
    }

    fn look(&self, name: &str) -> Option<Entry> {
        self.lock().get(name).map(|(entry, _)| entry.clone())
    }

    fn read(&self, entry: &Entry, _: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(self.lock().get(&entry.name).filter(|(found, _)| found == entry).map(|(_, bytes)| bytes.clone()))
    }

    fn write(&self, name: &str, bytes: &[u8], _: bool) -> io::Result<()> {
        self.put(name, bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.lock().remove(name);
        Ok(())
    }
}
