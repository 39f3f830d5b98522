//! Whether the running agent is alive, by what it wrote of its threads: one that goes round in its own time is,
//! whether it leads, and whomever it reaches. What is wrong outside the process is no reason to start it again.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Where the agent writes it, in its run folder.
pub const HEALTH_NAME: &str = ".health.json";
/// How often the agent writes its heartbeat.
pub const WRITE_EVERY: Duration = Duration::from_secs(10);
/// Largest heartbeat that is read, in bytes.
pub const MAX_HEALTH_BYTES: usize = 4 * 1024;
/// The age at which it is not believed any more.
const STALE: Duration = Duration::from_secs(30);
/// How long before the leader took its events a thread may have begun to wait for that.
const HANDING: Duration = Duration::from_secs(1);

/// What the running agent writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// When, in milliseconds since the machine started.
    pub written_at_ms: u64,
    /// Its threads.
    pub threads: Vec<Heard>,
}

/// What was heard of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Its name.
    pub name: String,
    /// How long ago, in milliseconds.
    pub silent_ms: u64,
    /// How long it may be silent, in milliseconds.
    pub limit_ms: u64,
    /// It may be waiting for the leader thread, whose own silence then counts.
    pub excused: bool,
}

/// Whether a thread that was heard at `heard` may be waiting for the leader thread, which took its events last at
/// `taken`: whoever waited before that waits no more.
#[must_use]
pub fn may_wait(heard: Duration, taken: Duration) -> bool {
    taken <= heard.saturating_add(HANDING)
}

/// Why an agent is not healthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unhealthy {
    /// What it wrote is not to be read.
    Garbled,
    /// It was written by an agent before the machine started anew.
    OtherBoot,
    /// It has written nothing for so long.
    Stale(Duration),
    /// A thread is silent.
    Silent(Heard),
}

impl fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Garbled => f.write_str("not a heartbeat of this version"),
            Self::OtherBoot => f.write_str("written before this machine started"),
            Self::Stale(age) => {
                let (age, limit) = (age.as_secs(), STALE.as_secs());
                write!(f, "no heartbeat for {age} s, where one comes every {} s: ", WRITE_EVERY.as_secs())?;
                write!(f, "the process is stopped, or cannot write there (limit {limit} s)")
            }
            Self::Silent(Heard { name, silent_ms, limit_ms, .. }) => {
                let seconds = |ms: &u64| ms.div_euclid(1_000);
                write!(
                    f,
                    "thread {name}: silent for {} s, its limit is {} s",
                    seconds(silent_ms),
                    seconds(limit_ms)
                )
            }
        }
    }
}

impl Health {
    /// The text of the file.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the file, and judges at `now` (since the machine started): its age, if all is well.
    ///
    /// # Errors
    ///
    /// What is not well; of several threads the one that is silent for longest.
    pub fn judge(text: &[u8], now: Duration) -> Result<(Self, Duration), Unhealthy> {
        let health: Self = serde_json::from_slice(text).map_err(|_| Unhealthy::Garbled)?;
        let age = now.checked_sub(Duration::from_millis(health.written_at_ms)).ok_or(Unhealthy::OtherBoot)?;
        if age > STALE {
            return Err(Unhealthy::Stale(age));
        }
        let silent = |thread: &&Heard| thread.silent_ms > thread.limit_ms && !thread.excused;
        match health.threads.iter().filter(silent).max_by_key(|thread| thread.silent_ms) {
            Some(thread) => Err(Unhealthy::Silent(thread.clone())),
            None => Ok((health, age)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(name: &str, silent_ms: u64, excused: bool) -> Heard {
        Heard { name: name.into(), silent_ms, limit_ms: 91_000, excused }
    }

    fn verdict(threads: &[Heard], written_at_ms: u64, now_s: u64) -> Result<Duration, String> {
        let text = Health { written_at_ms, threads: threads.to_vec() }.to_json();
        let verdict = Health::judge(text.as_bytes(), Duration::from_secs(now_s));
        verdict.map(|(_, age)| age).map_err(|why| why.to_string())
    }

    #[test]
    fn a_thread_is_silent_beyond_its_limit_unless_it_may_wait_for_the_leader() {
        assert_eq!(verdict(&[heard("lease", 91_000, false)], 0, 0), Ok(Duration::ZERO));
        let silent = Err("thread lease: silent for 91 s, its limit is 91 s".to_owned());
        assert_eq!(verdict(&[heard("lease", 91_001, false)], 0, 0), silent);
        assert_eq!(verdict(&[heard("poll", 900_000, true)], 0, 0), Ok(Duration::ZERO));
        let two = [heard("lease", 95_000, false), heard("poll", 99_000, false), heard("watch", 1, false)];
        assert!(verdict(&two, 0, 0).is_err_and(|line| line.contains("thread poll: silent for 99 s")));
    }

    #[test]
    fn a_heartbeat_is_believed_for_30_seconds_of_the_boot_that_it_was_written_in() {
        assert_eq!(verdict(&[], 5_000, 35), Ok(Duration::from_secs(30)));
        assert!(verdict(&[], 4_999, 35).is_err_and(|line| line.contains("no heartbeat for 30 s")));
        assert!(verdict(&[], 36_000, 35).is_err_and(|line| line.contains("before this machine started")));
        for garbage in ["", "{}", "[]", "null", "{\"written_at_ms\":-1,\"threads\":[]}"] {
            assert_eq!(
                Health::judge(garbage.as_bytes(), Duration::ZERO),
                Err(Unhealthy::Garbled),
                "{garbage}"
            );
        }
    }

    #[test]
    fn whoever_was_heard_after_the_leader_took_its_events_or_just_before_may_wait_for_it() {
        let s = Duration::from_secs;
        assert!(may_wait(s(10), s(5)) && may_wait(s(10), s(10)) && may_wait(s(10), s(11)));
        assert!(!may_wait(s(10), Duration::from_millis(11_001)));
    }
}
