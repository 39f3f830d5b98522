//! Is the manager within reach? CONTRACT section 7.

use std::time::Duration;

/// How long a leader stays offline before it gives the Lease up, should another replica have a way out.
pub const HAND_OVER_AFTER: Duration = Duration::from_mins(10);

/// How old a reading of the gateway's clock may be to count.
const OFFSET_AGE: Duration = Duration::from_mins(1);
/// Largest offset from another's clock with which ours is trusted, in milliseconds. CONTRACT section 2.
const OFFSET_TRUSTED_MS: i64 = 60_000;

/// Whether two clocks are further apart than may be, by the offset of one from the other.
#[must_use]
pub fn is_apart(offset_ms: i64) -> bool {
    offset_ms.unsigned_abs() > OFFSET_TRUSTED_MS.unsigned_abs()
}

/// Whether our clock is trusted, so that records may be dropped: the gateway's was read `age` ago, this far from it.
#[must_use]
pub fn clock_trusted(offset_ms: i64, age: Duration) -> bool {
    age <= OFFSET_AGE && !is_apart(offset_ms)
}

/// Such an offset in words: how far the other clock is from this machine's.
#[must_use]
pub fn apart(offset_ms: i64) -> String {
    let how = if offset_ms < 0 { "behind" } else { "ahead of" };
    format!("{} s {how} this one", offset_ms.unsigned_abs().div_euclid(1_000))
}

/// What the leader knows of the way to the manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// No answer yet, and not long a leader: sensitive commands wait.
    Connecting,
    /// The gateway answered lately.
    Online,
    /// It did not: sensitive commands are refused.
    Offline,
}

impl Link {
    /// Judges the link from moments on the monotonic clock: `answered` is when the latest request
    /// that the gateway answered with 200 was *sent*. A refusal is not an answer.
    #[must_use]
    pub fn judge(
        now: Duration,
        leader_since: Duration,
        answered: Option<Duration>,
        offline_after: Duration,
    ) -> Self {
        let lately = |moment: Duration| now.saturating_sub(moment) < offline_after;
        let since_leader = answered.filter(|sent| *sent >= leader_since);
        match (answered, since_leader) {
            (Some(sent), _) if lately(sent) => Self::Online,
            (_, None) if lately(leader_since) => Self::Connecting,
            (_, _) => Self::Offline,
        }
    }

    /// The text of it in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Online => "online",
            Self::Offline => "offline",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_online_while_an_answer_is_recent_and_connecting_only_at_first() {
        let s = Duration::from_secs;
        for (now, leader_since, answered, wanted) in [
            (100, 100, None, Link::Connecting),
            (219, 100, None, Link::Connecting),
            (220, 100, None, Link::Offline),
            (120, 100, Some(110), Link::Online),
            (229, 100, Some(110), Link::Online),
            (230, 100, Some(110), Link::Offline),
            (150, 100, Some(40), Link::Online),
            (170, 100, Some(40), Link::Connecting),
            (230, 100, Some(40), Link::Offline),
            (100, 100, Some(101), Link::Online),
        ] {
            let link = Link::judge(s(now), s(leader_since), answered.map(s), s(120));
            assert_eq!(link, wanted, "{now} {leader_since} {answered:?}");
        }
    }
}
