//! How much of the state may be written: each write is kept by etcd until it is compacted. CONTRACT section 6.

use super::state::STATE_LIMIT;
use std::collections::VecDeque;
use std::time::Duration;

/// The time over which the average counts, in seconds.
const WINDOW_S: u64 = 60;
/// Most bytes written within [`WINDOW_S`]: 1 MiB a second.
const LIMIT: usize = 60 * 1024 * 1024;

/// The bytes of the last minute, second by second.
#[derive(Debug, Default)]
pub struct Pace(VecDeque<(u64, usize)>);

impl Pace {
    /// Notes a write of `bytes`.
    pub fn spend(&mut self, bytes: usize, now: Duration) {
        let second = now.as_secs();
        self.forget(second);
        match self.0.back_mut() {
            Some((last, sum)) if *last == second => *sum = sum.saturating_add(bytes),
            Some(_) | None => self.0.push_back((second, bytes)),
        }
    }

    /// How long until there is room for a write of any size; zero where there is.
    pub fn pause(&mut self, now: Duration) -> Duration {
        self.forget(now.as_secs());
        let spent = self.0.iter().fold(STATE_LIMIT, |sum, (_, bytes)| sum.saturating_add(*bytes));
        match self.0.front() {
            Some((oldest, _)) if spent > LIMIT => {
                let room = Duration::from_secs(oldest.saturating_add(WINDOW_S).saturating_add(1));
                room.saturating_sub(now)
            }
            Some(_) | None => Duration::ZERO,
        }
    }

    fn forget(&mut self, second: u64) {
        self.0.retain(|(then, _)| second.saturating_sub(*then) <= WINDOW_S);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_sees_more_than_sixty_mebibytes() {
        let mut pace = Pace::default();
        let (mut now, mut written) = (Duration::from_secs(7), Vec::new());
        while now < Duration::from_mins(10) {
            let pause = pace.pause(now);
            if pause.is_zero() {
                pace.spend(STATE_LIMIT, now);
                written.push(now);
                now += Duration::from_millis(13);
            } else {
                now += pause;
            }
        }
        let minute = Duration::from_mins(1);
        let most = written
            .iter()
            .map(|from| written.iter().filter(|at| **at >= *from && **at < *from + minute).count());
        assert_eq!(most.max(), Some(60));
        let minutes = written.len() / 60;
        assert!((9..=10).contains(&minutes), "and nearly as much is allowed: {}", written.len());
    }

    #[test]
    fn small_writes_are_never_held_back() {
        let mut pace = Pace::default();
        for ms in (0..120_000).step_by(20) {
            let now = Duration::from_millis(ms);
            assert_eq!(pace.pause(now), Duration::ZERO);
            pace.spend(10 * 1024, now);
        }
    }
}
