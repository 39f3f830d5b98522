//! The machine that a process runs on: virtual time, its two clocks, and whether the process lives.

use jiff::{SignedDuration, Timestamp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// When every run begins, in true time.
pub const EPOCH: &str = "2026-11-30T12:00:00Z";

/// Microseconds since the beginning of the run, in true time.
#[derive(Clone, Default)]
pub struct Now(Arc<AtomicU64>);

impl Now {
    /// The moment.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Moves on to `moment`.
    pub fn set(&self, moment: u64) {
        self.0.store(moment, Relaxed);
    }
}

/// The true time of a moment.
///
/// # Panics
///
/// Never: the moments of a run lie within years of [`EPOCH`].
#[must_use]
pub fn true_time(moment: u64) -> Timestamp {
    static START: LazyLock<Timestamp> = LazyLock::new(|| EPOCH.parse().expect("a time"));
    *START + SignedDuration::from_micros(moment.cast_signed())
}

/// A clock that runs at a rate of its own since it was last set.
#[derive(Clone, Copy, Debug)]
struct Dial {
    anchor: u64,
    shows: i64,
    rate: f64,
}

impl Dial {
    fn at(&self, moment: u64) -> i64 {
        let passed = moment.saturating_sub(self.anchor);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "hours in microseconds"
        )]
        let scaled = (passed as f64 * self.rate) as i64;
        self.shows + scaled
    }

    fn turn(&mut self, moment: u64, step: i64, rate: f64) {
        *self = Self { anchor: moment, shows: self.at(moment) + step, rate };
    }
}

/// The clocks of one machine; they outlive the processes on it.
pub struct Host {
    now: Now,
    wall: Mutex<Dial>,
    monotonic_rate: f64,
}

impl Host {
    /// A machine whose monotonic clock runs at `monotonic_rate` for ever.
    #[must_use]
    pub fn new(now: Now, monotonic_rate: f64) -> Self {
        let wall = Mutex::new(Dial { anchor: 0, shows: 0, rate: 1.0 });
        Self { now, wall, monotonic_rate }
    }

    fn dial(&self) -> MutexGuard<'_, Dial> {
        self.wall.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wall clock.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        let shows = self.dial().at(self.now.get());
        true_time(0) + SignedDuration::from_micros(shows)
    }

    /// The wall clock steps by `step` microseconds and runs at `rate` from now on.
    pub fn turn(&self, step: i64, rate: f64) {
        self.dial().turn(self.now.get(), step, rate);
    }

    /// The wall clock is right again.
    pub fn set_right(&self) {
        let moment = self.now.get();
        *self.dial() = Dial { anchor: moment, shows: moment.cast_signed(), rate: 1.0 };
    }

    /// Monotonic time since the true moment `since`.
    #[must_use]
    pub fn elapsed(&self, since: u64) -> Duration {
        let passed = self.now.get().saturating_sub(since);
        Duration::from_micros(scale(passed, self.monotonic_rate))
    }

    /// How long `pause` of the monotonic clock takes in true microseconds, rounded up.
    #[must_use]
    pub fn true_length(&self, pause: Duration) -> u64 {
        let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        scale(micros, 1.0 / self.monotonic_rate).saturating_add(1)
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "hours in microseconds, and positive"
)]
fn scale(micros: u64, rate: f64) -> u64 {
    (micros as f64 * rate) as u64
}

/// What all threads of one process share with the scheduler.
pub struct Life {
    /// Its machine.
    pub host: Arc<Host>,
    /// The true moment at which it began.
    pub born: u64,
    dead: AtomicBool,
}

impl Life {
    /// A process that begins now.
    #[must_use]
    pub fn new(host: Arc<Host>) -> Self {
        let born = host.now.get();
        Self { host, born, dead: AtomicBool::new(false) }
    }

    /// Whether it has ended: from then on no call of it has any effect.
    #[must_use]
    pub fn dead(&self) -> bool {
        self.dead.load(Relaxed)
    }

    /// Ends it.
    pub fn end(&self) {
        self.dead.store(true, Relaxed);
    }

    /// Its monotonic clock.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        self.host.elapsed(self.born)
    }
}
