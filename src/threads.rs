//! The only place that starts a thread; what threads share; and how long one may be silent.

#![expect(clippy::disallowed_methods, reason = "the only place that starts a thread")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Longest wait of a thread that has nothing to do, before it looks again.
pub const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Starts a named thread.
///
/// # Errors
///
/// What the operating system says, for example that the limit of processes is reached.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(body)
}

/// What threads share. Several may wait for what they want to see there, and one of them for news: only that one may
/// [`Shared::heed`] it. No lock is held over a call that blocks.
#[derive(Default)]
pub struct Shared<T> {
    value: Mutex<T>,
    news: AtomicBool,
    changed: Condvar,
}

impl<T> Shared<T> {
    /// What is shared: to look at it, or for a change that is no news.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A change that is news.
    pub fn tell(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.lock());
        self.notify();
    }

    /// There is news.
    pub fn notify(&self) {
        // Under the lock: whoever is about to wait has seen it, or is woken.
        let held = self.lock();
        self.news.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        drop(held);
    }

    /// Before a look: what is told after it is news.
    pub fn heed(&self) {
        self.news.store(false, Ordering::Relaxed);
    }

    /// Whether there is news since the last look.
    #[must_use]
    pub fn news(&self) -> bool {
        self.news.load(Ordering::Relaxed)
    }

    /// Waits for news, at most `limit`, and no longer than a thread may be silent.
    pub fn wait(&self, limit: Duration) {
        self.wait_while(limit, |_| !self.news());
    }

    /// Waits while `idle` holds of what is shared, at most as long.
    pub fn wait_while(&self, limit: Duration, idle: impl Fn(&T) -> bool) {
        let limit = limit.min(LONGEST_WAIT);
        drop(self.changed.wait_timeout_while(self.lock(), limit, |value| idle(value)));
    }
}

/// What is in use now, and another may take the place of; whoever uses the former goes on to the end with it.
pub struct Slot<T: ?Sized>(Mutex<Arc<T>>);

impl<T: ?Sized> Slot<T> {
    /// Begins with this one.
    #[must_use]
    pub fn new(first: Arc<T>) -> Self {
        Self(Mutex::new(first))
    }

    /// The one in use now.
    #[must_use]
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on this one.
    pub fn set(&self, next: Arc<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_what_was_told_since_the_last_look_and_lasts_its_time_without() {
        let shared: Arc<Shared<u32>> = Arc::default();
        let waits = |limit: Duration| {
            let began = std::time::Instant::now();
            shared.wait(limit);
            began.elapsed()
        };
        let (long, short) = (Duration::from_secs(30), Duration::from_millis(20));
        shared.tell(|value| *value = 1);
        assert!(waits(long) < long, "it was told before");
        shared.heed();
        *shared.lock() = 2;
        assert!(waits(short) >= short && !shared.news(), "a change that is no news");
        let teller = Arc::clone(&shared);
        let told = spawn("teller", move || teller.tell(|value| *value = 3)).unwrap();
        assert!(waits(long) < long);
        shared.wait_while(long, |value| *value < 3);
        told.join().unwrap();
    }
}
