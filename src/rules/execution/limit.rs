//! How long a command is tried, whatever it asks for (CONTRACT section 2, the reasons of `failed`).

use crate::rules::messages::{Command, Reason};
use jiff::Timestamp;
use std::time::Duration;

/// How long a command is tried while the API server cannot take it.
const TRY_FOR: Duration = Duration::from_mins(5);
/// A window's last moment belongs to it: it is over this much later.
const TICK: Duration = Duration::from_millis(1);

/// Why a command is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For the receipt.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// How long one command is tried.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit {
    pub(super) not_after: Timestamp,
    pub(super) began: Duration,
    recovered: bool,
}

impl TimeLimit {
    /// From `began` (monotonic) on; `recovered` where a former leader accepted it.
    #[must_use]
    pub fn new(command: &Command, began: Duration, recovered: bool) -> Self {
        Self { not_after: command.not_after, began, recovered }
    }

    /// Why it is given up, if it is; `trouble` is what was in the way.
    #[must_use]
    pub fn passed(&self, now: Timestamp, at: Duration, trouble: &str) -> Option<Failure> {
        let late = now > self.not_after;
        if !late && at.saturating_sub(self.began) < TRY_FOR {
            return None;
        }
        let (reason, message) = if late && self.recovered {
            (Reason::Expired, "found by a new leader after its window, and not done")
        } else {
            (Reason::KubernetesUnavailable, trouble)
        };
        Some(Failure { reason, message: message.to_owned() })
    }

    /// How long it is tried yet.
    #[must_use]
    pub fn rest(&self, now: Timestamp, at: Duration) -> Duration {
        let window = Duration::try_from(self.not_after.duration_since(now)).unwrap_or_default();
        self.began.saturating_add(TRY_FOR).saturating_sub(at).min(window.saturating_add(TICK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::vectors::apply;
    use serde_json::json;

    #[test]
    fn a_command_is_tried_for_five_minutes_or_until_its_window_is_over_whichever_is_sooner() {
        let s = Duration::from_secs;
        // Of a window of 100 or 900 seconds that begins with the command, at second 0 of its leader.
        for (window, recovered, at, wanted) in [
            (900, false, 299, Ok(1)),
            (900, false, 300, Err(Reason::KubernetesUnavailable)),
            (900, true, 300, Err(Reason::KubernetesUnavailable)),
            (100, false, 0, Ok(100)),
            (100, false, 100, Ok(0)),
            (100, false, 101, Err(Reason::KubernetesUnavailable)),
            (100, true, 100, Ok(0)),
            (100, true, 101, Err(Reason::Expired)),
        ] {
            let second = |second| Timestamp::from_second(1_800_000_000_i64 + second).unwrap();
            let command = Command::from_payload(&apply("a", 1, &json!({})), None).unwrap();
            let limit = TimeLimit::new(&Command { not_after: second(window), ..command }, s(0), recovered);
            let (now, at) = (second(at), s(u64::try_from(at).unwrap()));
            let found = match limit.passed(now, at, "away") {
                None => Ok(limit.rest(now, at).as_secs()),
                Some(failure) => Err(failure.reason),
            };
            assert_eq!(found, wanted, "{window} {recovered} {at:?}");
            assert!(found.is_err() || !limit.rest(now, at).is_zero());
        }
    }
}
