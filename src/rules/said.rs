//! What was said of late, so that what goes on and on is said once a minute.

use std::collections::VecDeque;
use std::time::Duration;

/// How long the same is not said again.
const AGAIN: Duration = Duration::from_mins(1);
/// Most that is said within that time: what others can make differ at each try must not fill a log.
const MOST: usize = 64;
/// What is remembered of each, in characters.
const KEPT: usize = 200;

/// Whether a line is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It is new.
    Yes,
    /// It was said within the last minute, or is one of too many.
    No,
    /// It is the first of too many.
    TooMuch,
}

/// What was said in the last minute.
#[derive(Debug, Default)]
pub struct Said {
    lines: VecDeque<(String, Duration)>,
    /// When it was said last that there is too much.
    too_much: Option<Duration>,
}

impl Said {
    /// How much was said of late.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether `what` is to be said at `now` (monotonic): the first time, and then once a minute. Numbers make
    /// nothing new of it: times and durations differ at each try.
    pub fn news(&mut self, what: &str, now: Duration) -> News {
        let old = |at: Duration| now.saturating_sub(at) >= AGAIN;
        let what: String = what.chars().filter(|c| !c.is_ascii_digit()).take(KEPT).collect();
        while self.lines.front().is_some_and(|(_, at)| old(*at)) {
            self.lines.pop_front();
        }
        if self.lines.iter().any(|(said, _)| *said == what) {
            return News::No;
        }
        if self.lines.len() < MOST {
            self.lines.push_back((what, now));
            return News::Yes;
        }
        if self.too_much.is_some_and(|at| !old(at)) {
            return News::No;
        }
        self.too_much = Some(now);
        News::TooMuch
    }

    /// It is over: what comes next is new.
    pub fn over(&mut self) {
        *self = Self::default();
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
                times += u32::from(said.news(what, Duration::from_secs(second)) == News::Yes);
            }
        }
        assert_eq!(times, 20);
    }

    #[test]
    fn numbers_make_nothing_new_of_it_and_after_its_end_it_is_new() {
        let mut said = Said::default();
        let mut at = |text: &str, seconds: u64| said.news(text, Duration::from_secs(seconds)) == News::Yes;
        assert!(at("not valid before 1796027974 (9 seconds in future)", 0));
        assert!(!at("not valid before 1796027974 (8 seconds in future)", 59));
        assert!(at("not valid before 1796027974 (7 seconds in future)", 60));
        said.over();
        assert_eq!(
            said.news("not valid before 1796027974 (6 seconds in future)", Duration::from_secs(61)),
            News::Yes
        );
    }

    #[test]
    fn of_what_always_differs_no_more_than_a_bound_is_said_in_a_minute_and_that_there_is_more() {
        let mut said = Said::default();
        for minute in 0..3 {
            let at = Duration::from_mins(minute);
            let letters = ('a'..).take(1_000);
            let news: Vec<News> =
                letters.map(|letter| said.news(&letter.to_string().repeat(100_000), at)).collect();
            let count = |wanted| news.iter().filter(|news| **news == wanted).count();
            assert_eq!([count(News::Yes), count(News::TooMuch)], [MOST, 1]);
            assert!(said.lines.iter().all(|(what, _)| what.chars().count() <= KEPT));
        }
    }
}
