//! Connections that have not sent a request yet: who they are is not known, so they may not crowd out
//! those that have. When there are too many, one is cut, but not before it had a fair time: less for
//! one that has not sent a byte, for a handshake may be waiting for us.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// So many times as long has one that has sent something.
const SPOKEN: u32 = 4;

/// All newcomers of a port.
pub(crate) struct Newcomers {
    most: usize,
    /// How long each of them has in any case.
    fair: Duration,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Default)]
struct State {
    next: u64,
    here: BTreeMap<u64, Known>,
}

/// What is known of a newcomer.
struct Known {
    /// Until when it is not cut.
    fair_until: Instant,
    cut: oneshot::Sender<()>,
}

/// One newcomer, until it is dropped.
pub(crate) struct Newcomer {
    all: Arc<Newcomers>,
    number: u64,
}

impl Newcomers {
    /// At most so many at once, of which each has a time in any case.
    pub(crate) fn new(most: usize, fair: Duration) -> Arc<Self> {
        Arc::new(Self { most, fair, state: Mutex::default(), left: Notify::new() })
    }

    /// Waits for a place: until one leaves, or the oldest may be cut. What comes with the place is an
    /// error when it is to be cut itself.
    pub(crate) async fn enter(self: &Arc<Self>) -> (Newcomer, oneshot::Receiver<()>) {
        loop {
            let soonest = {
                let mut state = self.state();
                let soonest = state.here.iter().map(|(number, known)| (known.fair_until, *number)).min();
                match soonest {
                    Some((fair_until, number)) if state.here.len() >= self.most => {
                        if fair_until > Instant::now() {
                            fair_until
                        } else {
                            // Dropped with its sender: which tells it.
                            state.here.remove(&number);
                            return self.place(&mut state);
                        }
                    }
                    Some(_) | None => return self.place(&mut state),
                }
            };
            drop(tokio::time::timeout_at(soonest, self.left.notified()).await);
        }
    }

    fn place(self: &Arc<Self>, state: &mut State) -> (Newcomer, oneshot::Receiver<()>) {
        let (cut, is_cut) = oneshot::channel();
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.here.insert(number, Known { fair_until: Instant::now() + self.fair, cut });
        (Newcomer { all: Arc::clone(self), number }, is_cut)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Newcomer {
    /// It has sent something.
    pub(crate) fn spoke(&self) {
        let more = self.all.fair * (SPOKEN - 1);
        if let Some(known) = self.all.state().here.get_mut(&self.number) {
            known.fair_until += more;
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        if let Some(known) = self.all.state().here.remove(&self.number) {
            // Where nobody listens the connection is gone.
            known.cut.send(()).ok();
        }
        self.all.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn when_there_are_too_many_the_oldest_is_cut_once_it_had_its_time() {
        let all = Newcomers::new(2, Duration::from_millis(50));
        let (_first, mut first_cut) = all.enter().await;
        let (_second, mut second_cut) = all.enter().await;
        let start = Instant::now();
        let (_third, _third_cut) = all.enter().await;
        assert!(start.elapsed() >= Duration::from_millis(40));
        assert_eq!(first_cut.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(second_cut.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[tokio::test]
    async fn who_has_sent_nothing_is_cut_before_who_has() {
        let all = Newcomers::new(2, Duration::from_millis(50));
        let (first, mut first_cut) = all.enter().await;
        first.spoke();
        let (_second, mut second_cut) = all.enter().await;
        let (_third, _third_cut) = all.enter().await;
        assert_eq!(first_cut.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert_eq!(second_cut.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[tokio::test]
    async fn who_leaves_makes_room_at_once() {
        let all = Newcomers::new(1, Duration::from_mins(1));
        let (first, _cut) = all.enter().await;
        let start = Instant::now();
        tokio::spawn(async move { drop(first) });
        let (_second, _cut) = all.enter().await;
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
