//! What was said of late, so that what goes on and on is said once a minute.

use std::collections::VecDeque;
use std::time::Duration;

/// How long the same is not said again.
const AGAIN: Duration = Duration::from_mins(1);
/// Most that is remembered; then the oldest is forgotten.
const MOST: usize = 256;
/// What is remembered of each, in characters.
const KEPT: usize = 200;

/// What was said in the last minute.
#[derive(Debug, Default)]
pub struct Said(VecDeque<(String, Duration)>);

impl Said {
    /// How much was said of late.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether `what` is to be said at `now` (monotonic): the first time, and then once a minute. Numbers make
    /// nothing new of it: times and durations differ at each try.
    pub fn is_news(&mut self, what: &str, now: Duration) -> bool {
        let what: String = what.chars().filter(|c| !c.is_ascii_digit()).take(KEPT).collect();
        while self.0.front().is_some_and(|(_, at)| now.saturating_sub(*at) >= AGAIN) {
            self.0.pop_front();
        }
        if self.0.iter().any(|(said, _)| *said == what) {
            return false;
        }
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((what, now));
        true
    }

    /// It is over: what comes next is new.
    pub fn over(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_a_minute_and_what_alternates_with_it_too() {
        let mut said = Said::default();
        let mut times = 0;
        for second in 0..600 {
            for what in ["broken", "again", "broken"] {
                times += u32::from(said.is_news(what, Duration::from_secs(second)));
            }
        }
        assert_eq!(times, 20);
    }

    #[test]
    fn numbers_make_nothing_new_of_it_and_after_its_end_it_is_new() {
        let mut said = Said::default();
        let mut at = |text: &str, seconds: u64| said.is_news(text, Duration::from_secs(seconds));
        assert!(at("not valid before 1796027974 (9 seconds in future)", 0));
        assert!(!at("not valid before 1796027974 (8 seconds in future)", 59));
        assert!(at("not valid before 1796027974 (7 seconds in future)", 60));
        said.over();
        assert!(said.is_news("not valid before 1796027974 (6 seconds in future)", Duration::from_secs(61)));
    }

    #[test]
    fn of_what_always_differs_no_more_than_a_bound_is_remembered() {
        let mut said = Said::default();
        for letter in ('a'..).take(1_000) {
            assert!(said.is_news(&letter.to_string().repeat(100_000), Duration::ZERO));
        }
        assert_eq!(said.0.len(), MOST);
        assert!(said.0.iter().all(|(what, _)| what.chars().count() <= KEPT));
    }
}
