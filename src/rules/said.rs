//! Whether something that was said is worth saying again: a trouble that lasts is met at each try.

use std::time::Duration;

/// How often the same is said.
const AGAIN: Duration = Duration::from_mins(1);

/// What was said last, and when.
#[derive(Clone, Debug, Default)]
pub struct Said(Option<(String, Duration)>);

impl Said {
    /// Whether `text` is to be said at `now`: at once where it is something new, else once a minute. Numbers
    /// make nothing new of it: times and durations differ at each try.
    #[must_use]
    pub fn is_news(&mut self, text: &str, now: Duration) -> bool {
        let shape: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        let same = |(said, at): &(String, Duration)| *said == shape && now.saturating_sub(*at) < AGAIN;
        if self.0.as_ref().is_some_and(same) {
            return false;
        }
        self.0 = Some((shape, now));
        true
    }

    /// It is over: what comes next is new.
    pub fn over(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_that_lasts_is_said_once_a_minute_whatever_numbers_are_in_it() {
        let mut said = Said::default();
        let mut at = |text: &str, seconds: u64| said.is_news(text, Duration::from_secs(seconds));
        assert!(at("not valid before 1796027974 (9 seconds in future)", 0));
        assert!(!at("not valid before 1796027974 (8 seconds in future)", 1));
        assert!(!at("not valid before 1796027974 (7 seconds in future)", 59));
        assert!(at("not valid before 1796027974 (6 seconds in future)", 60));
        assert!(at("connection refused", 61));
        assert!(at("not valid before 1796027974 (4 seconds in future)", 62));
        assert!(!at("not valid before 1796027974 (3 seconds in future)", 63));
        said.over();
        assert!(said.is_news("not valid before 1796027974 (2 seconds in future)", Duration::from_secs(64)));
    }
}
