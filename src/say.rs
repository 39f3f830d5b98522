//! Lines of the log that may come again and again: each is said once a minute, and no more than so many in all, whatever
//! others send; the rest at DEBUG.

use crate::rules::said::{News, Said};
use log::Level;
use std::fmt::Display;
use std::time::Duration;

/// Says `line` at `level`, where `what` is news at `now` (monotonic).
pub fn say(said: &mut Said, now: Duration, level: Level, what: &str, line: &dyn Display) {
    match said.news(what, now) {
        News::Yes => log::log!(level, "{line}"),
        News::No => log::debug!("{line}"),
        News::TooMuch => {
            log::log!(level, "more of this kind than is said in a minute, the rest at DEBUG: {line}");
        }
    }
}
