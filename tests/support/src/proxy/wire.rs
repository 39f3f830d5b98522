//! What went over the proxies of one scenario, and the rule that decides on each call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::call::{Call, Exchange, Fate, Raw, Reply};

/// Most calls that are recorded; a scenario with more is not what this is for.
const RECORDED_MOST: usize = 100_000;
/// Larger bodies are shown to the rule, but not recorded, in bytes.
const RECORDED_BODY: usize = 256 * 1024;
/// How long a call is held at most; then it is cut.
const HELD_MOST: Duration = Duration::from_mins(2);
/// Between two looks of a call that is held or delayed.
const LOOK: Duration = Duration::from_millis(10);

/// What the proxies of one scenario share: its record and its rule. Clones are the same wire.
#[derive(Clone, Default)]
pub struct Wire(Arc<Inner>);

type Rule = Box<dyn FnMut(&Call, Option<&Reply>) -> Fate + Send>;

#[derive(Default)]
struct Inner {
    record: Mutex<Vec<Exchange>>,
    changed: Condvar,
    rule: Mutex<Option<Rule>>,
}

/// What a rule's fate comes to, when the waiting is over.
pub(super) enum Verdict {
    Pass,
    Cut,
    Answer { status: u16, kind: &'static str, retry_after: Option<String>, body: String },
    Raw(Raw),
    Bent(fn(&[u8]) -> Raw),
}

impl Wire {
    /// A wire that passes everything and records it.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on `rule` decides: before a call is passed on, and again with its answer. It is asked
    /// about one call at a time, and must not wait.
    pub fn rule(&self, rule: impl FnMut(&Call, Option<&Reply>) -> Fate + Send + 'static) {
        *self.0.rule.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(rule));
    }

    /// From now on everything passes. What is held stays held.
    pub fn pass_all(&self) {
        *self.0.rule.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn record(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls there were.
    pub fn len(&self) -> usize {
        self.record().len()
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.record().is_empty()
    }

    /// All calls from number `from` on, in the order in which they came.
    pub fn since(&self, from: usize) -> Vec<Exchange> {
        self.record().get(from..).unwrap_or_default().to_vec()
    }

    /// Waits for a call, from number `from` on, that is as wanted.
    #[track_caller]
    pub fn wait(
        &self,
        what: &str,
        from: usize,
        bound: Duration,
        mut wanted: impl FnMut(&Exchange) -> bool,
    ) -> Exchange {
        let started = Instant::now();
        let mut record = self.record();
        loop {
            if let Some(found) = record.iter().skip(from).find(|exchange| wanted(exchange)) {
                return found.clone();
            }
            let left = bound.saturating_sub(started.elapsed());
            assert!(!left.is_zero(), "waited {bound:?} for {what}");
            record = self.0.changed.wait_timeout(record, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn called(&self, mut call: Call) -> Call {
        let mut record = self.record();
        assert!(record.len() < RECORDED_MOST, "more calls than a scenario has");
        call.number = record.len();
        let kept = Call { body: kept(&call.body), ..call.clone() };
        record.push(Exchange { call: kept, forwarded: None, reply: None, given: false });
        self.0.changed.notify_all();
        call
    }

    pub(super) fn note(&self, number: usize, change: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.record().get_mut(number) {
            change(exchange);
        }
        self.0.changed.notify_all();
    }

    pub(super) fn replied(&self, number: usize, reply: &Reply) {
        let reply = Reply { body: kept(&reply.body), ..reply.clone() };
        self.note(number, |exchange| exchange.reply = Some(reply));
    }

    /// Asks the rule, and does the waiting that it asks for; what is left when `closed` is cut.
    pub(super) fn judge(&self, call: &Call, reply: Option<&Reply>, closed: &AtomicBool) -> Verdict {
        let fate = match &mut *self.0.rule.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(rule) => rule(call, reply),
            None => Fate::Pass,
        };
        let started = Instant::now();
        let wait = |mut over: Box<dyn FnMut() -> Option<bool>>| loop {
            match over() {
                Some(true) => return Verdict::Pass,
                Some(false) => return Verdict::Cut,
                None if closed.load(Ordering::Relaxed) || started.elapsed() > HELD_MOST => {
                    return Verdict::Cut;
                }
                None => thread::sleep(LOOK),
            }
        };
        match fate {
            Fate::Pass => Verdict::Pass,
            Fate::Cut => Verdict::Cut,
            Fate::Answer { status, body, retry_after_s } => {
                let retry_after = retry_after_s.map(|seconds| seconds.to_string());
                Verdict::Answer { status, kind: "application/json", retry_after, body }
            }
            Fate::Page { status, kind, retry_after, body } => {
                Verdict::Answer { status, kind, retry_after, body }
            }
            Fate::Raw(raw) => Verdict::Raw(raw),
            Fate::Bent(bend) => Verdict::Bent(bend),
            Fate::Delay(pause) => wait(Box::new(move || (started.elapsed() >= pause).then_some(true))),
            Fate::Hold(gate) => {
                gate.reach();
                wait(Box::new(move || gate.verdict()))
            }
        }
    }
}

fn kept(body: &Arc<[u8]>) -> Arc<[u8]> {
    if body.len() > RECORDED_BODY { Arc::from([]) } else { Arc::clone(body) }
}
