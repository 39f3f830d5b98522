//! The only clock and the only source of chance.
//!
//! Lease arithmetic uses [`Clock::monotonic`] alone; validity windows use [`Clock::wall`]. A step of the
//! wall clock therefore never makes a leader.

#![expect(clippy::disallowed_methods, reason = "the only clock")]

use crate::files;
use crate::rules::names::hex;
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Largest `/proc/uptime`, in bytes.
const UPTIME_BYTES: usize = 128;

/// Time and chance, as the agent sees them.
pub trait Clock: Send + Sync {
    /// The wall clock, for validity windows and what people read.
    fn wall(&self) -> Timestamp;
    /// Time since some fixed moment of this process; never steps, and stands still while the machine is suspended.
    fn monotonic(&self) -> Duration;
    /// Waits, never for an event: between two tries of one write, between two polls, and where `submit` looks again.
    fn sleep(&self, pause: Duration);
    /// Random bits for jitter and for names that only should not meet; zeros where there are none to be had.
    fn random(&self) -> u64;
}

/// The wall clock of the operating system, where no [`Clock`] is at hand.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Time since this machine started, the same for all processes; `None` where it cannot be read.
#[must_use]
pub fn uptime() -> Option<Duration> {
    let text = files::read_text(Path::new("/proc/uptime"), UPTIME_BYTES).ok()?;
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let hundredths: u64 = hundredths.parse().ok()?;
    Duration::from_secs(seconds.parse().ok()?).checked_add(Duration::from_millis(hundredths.checked_mul(10)?))
}

/// What nobody can guess or has a second time: 128 random bits in hexadecimal.
///
/// # Errors
///
/// The operating system gives no random bits.
pub fn unpredictable() -> io::Result<String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random bits"))?;
    Ok(hex(&bytes))
}

/// The operating system's clock.
pub struct SystemClock {
    start: Instant,
}

/// One whose monotonic time begins now.
impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        now()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, pause: Duration) {
        std::thread::sleep(pause);
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        // Without random bits all replicas wait alike, which is slower and no less safe.
        if SystemRandom::new().fill(&mut bytes).is_err() {
            log::warn!("no random bits from the operating system: pauses are not spread");
        }
        u64::from_le_bytes(bytes)
    }
}

/// A clock that a test holds: it moves when the test says so, or when somebody sleeps.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct HandClock {
    pub(crate) now: std::sync::Mutex<Duration>,
    pub(crate) random: u64,
}

#[cfg(test)]
impl HandClock {
    pub(crate) fn set(&self, now: Duration) {
        *self.now.lock().unwrap() = now;
    }

    pub(crate) fn advance(&self, by: Duration) {
        *self.now.lock().unwrap() += by;
    }
}

#[cfg(test)]
impl Clock for HandClock {
    fn wall(&self) -> Timestamp {
        let passed = jiff::SignedDuration::try_from(self.monotonic()).unwrap();
        "2026-11-30T12:00:00Z".parse::<Timestamp>().unwrap() + passed
    }

    fn monotonic(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn sleep(&self, pause: Duration) {
        self.advance(pause);
    }

    fn random(&self) -> u64 {
        self.random
    }
}
