//! What must hold of the link, recomputed from the gateway's answers as each process got them.

use crate::checker::Checker;
use crate::faults::SECOND;
use crate::history::Known;
use crate::sample::Sample;
use serde_json::Value;
use std::time::Duration;

const HAND_OVER: &str = "a leader that has been offline for ten minutes gives the Lease up";
const COUNTED: &str = "the report says how often the manager was out of reach";

/// How long a leader may be offline.
const OFFLINE_MOST: Duration = Duration::from_mins(10);
/// How late a thread may be whose process nothing is in the way of.
const SLACK: Duration = Duration::from_mins(1);
/// How old the numbers of a report may be.
const REPORT_AGE: Duration = Duration::from_mins(5);

/// The link, CONTRACT section 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Online,
    /// For so long.
    Offline(Duration),
}

/// What is known of the periods that a process was offline.
#[derive(Default)]
pub(crate) struct Periods {
    /// It is in one.
    inside: bool,
    /// This one has been counted as sure.
    long: bool,
    /// How many there may have been.
    most: u64,
    /// When each of those was seen that there certainly were.
    sure: Vec<Duration>,
}

impl Known {
    /// The link of a leader since `since` at `now`.
    pub(crate) fn link(&self, since: Duration, now: Duration, offline_after: Duration) -> Link {
        let lately = |moment: Duration| now.saturating_sub(moment) < offline_after;
        match self.answered {
            Some(sent) if lately(sent) => Link::Online,
            Some(sent) if sent >= since => Link::Offline(now.saturating_sub(sent + offline_after)),
            _ if lately(since) => Link::Connecting,
            _ => Link::Offline(now.saturating_sub(since + offline_after)),
        }
    }

    /// Takes note of whether it is offline at `now`.
    pub(crate) fn count(&mut self, since: Duration, now: Duration, offline_after: Duration) {
        let offline = matches!(self.link(since, now, offline_after), Link::Offline(_));
        if offline && !self.periods.inside {
            self.periods.most += 1;
            self.periods.inside = true;
        }
        // One that goes on in another reign is the same.
        if self.link(since, now, offline_after) == Link::Online {
            self.periods.inside = false;
            self.periods.long = false;
        }
    }
}

impl Checker {
    /// A process leads since `since`, at `now` (monotonic).
    pub(crate) fn leads(&mut self, process: u64, since: Duration, now: Duration) {
        let offline_after = self.offline_after();
        self.known.entry(process).or_default().count(since, now, offline_after);
    }

    pub(crate) fn link_sampled(&mut self, sample: &Sample) {
        let offline_after = self.offline_after();
        let known = self.known.entry(sample.process).or_default();
        let Link::Offline(long) = known.link(sample.since, sample.monotonic, offline_after) else { return };
        if long > SLACK && sample.calm > 120 * SECOND && !known.periods.long {
            known.periods.long = true;
            known.periods.sure.push(sample.monotonic);
        }
        if long > OFFLINE_MOST + SLACK && sample.calm > 120 * SECOND {
            self.broken(HAND_OVER, format!("process {} is offline for {long:?}", sample.process));
        }
    }

    /// A report leaves at `now` (monotonic).
    pub(crate) fn report_leaves(&mut self, process: u64, body: &[u8], now: Duration) {
        let report: Value = serde_json::from_slice(body).unwrap_or_default();
        let known = self.known.entry(process).or_default();
        let said = report["counters"]["offline_periods"].as_u64().unwrap_or(0);
        let least = known.periods.sure.iter().filter(|at| now.saturating_sub(**at) > REPORT_AGE).count();
        // What is judged when the permission has just ended, nobody else sees.
        let most = if known.disturbed { u64::MAX } else { known.periods.most };
        if said < least as u64 || said > most {
            let what = format!("{said}, not between {least} and {most}");
            self.broken(COUNTED, what);
        }
    }
}
