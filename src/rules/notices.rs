//! How much people are told by Events: how often of one kind, how often in all, and how long a text.
//! CONTRACT section 6, "Events".

use std::collections::VecDeque;
use std::time::Duration;

/// Most writes of Events in a minute.
pub const WRITES: usize = 30;
/// See [`WRITES`].
const WINDOW: Duration = Duration::from_mins(1);
/// Shortest time between two writes for one kind of notice.
const SHORTEST: Duration = Duration::from_secs(30);
/// Longest time between two, however often it was written.
const LONGEST: Duration = Duration::from_mins(2);
/// Longest message, in bytes (what the API takes).
const MESSAGE_BYTES: usize = 1024;

/// The writes of the last minute.
#[derive(Debug, Default)]
pub struct Ration(VecDeque<Duration>);

impl Ration {
    /// When the next write may be, seen from `now`.
    pub fn next(&mut self, now: Duration) -> Duration {
        while self.0.front().is_some_and(|at| now.saturating_sub(*at) >= WINDOW) {
            self.0.pop_front();
        }
        match self.0.front() {
            Some(oldest) if self.0.len() >= WRITES => oldest.saturating_add(WINDOW),
            Some(_) | None => now,
        }
    }

    /// Notes a write, also one that was refused.
    pub fn spend(&mut self, now: Duration) {
        self.0.push_back(now);
    }
}

/// How long one kind of notice is gathered after its `writes`: what goes on and on is written more and more
/// seldom.
#[must_use]
pub fn gather(writes: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(writes.saturating_sub(1));
    SHORTEST.saturating_mul(doubled).min(LONGEST)
}

/// A message that the API takes: cut to its limit at a character's end.
#[must_use]
pub fn cut(message: &str) -> &str {
    message.split_at(message.floor_char_boundary(MESSAGE_BYTES)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_sees_more_than_thirty_writes() {
        let (mut ration, mut now, mut written) = (Ration::default(), Duration::ZERO, Vec::new());
        while now < Duration::from_mins(10) {
            let next = ration.next(now);
            if next > now {
                now = next;
            } else {
                ration.spend(now);
                written.push(now);
                now += Duration::from_millis(70);
            }
        }
        for from in &written {
            assert!(written.iter().filter(|at| *at >= from && **at < *from + WINDOW).count() <= WRITES);
        }
        assert!(written.len() >= 290, "and nearly as many are allowed: {}", written.len());
    }

    #[test]
    fn a_message_is_cut_at_a_characters_end_to_what_the_api_takes() {
        for (message, bytes) in [
            ("é".repeat(600), 1_024),
            ("😀".repeat(400), 1_024),
            (format!("a{}", "😀".repeat(400)), 1_021),
            ("a".repeat(1_024), 1_024),
            ("a".repeat(1_025), 1_024),
            (String::new(), 0),
        ] {
            let text = cut(&message);
            assert_eq!(text.len(), bytes);
            assert!(message.starts_with(text));
        }
    }

    #[test]
    fn the_time_between_two_writes_of_one_kind_grows_to_two_minutes() {
        let seconds = [0, 1, 2, 3, 4, u32::MAX].map(|writes| gather(writes).as_secs());
        assert_eq!(seconds, [30, 30, 60, 120, 120, 120]);
    }
}
