//! Connections that have not sent a request yet: who they are is not known, so they may not crowd out those
//! that have, nor each other. All are let in; when there are too many, one is cut, of those whose network
//! has the most here: first one that had its time, which is longer for one whose TLS has come further (its
//! whole first message is there; its handshake is done), else the one that came last.
//!
//! So a flood from one network keeps out its own neighbours at most. What remains: one from as many networks
//! as there are places keeps out some of the others, and agents behind one address, as of a balancer that
//! does not pass addresses on, share what that address has. Both find a place by coming again.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How far a newcomer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// Nothing, or a part of the first message.
    Connected,
    /// The first message of TLS is there: it is our turn.
    Hello,
    /// The handshake is done.
    Secured,
}

impl Progress {
    /// So many times the fair time.
    fn times(self) -> u32 {
        match self {
            Self::Connected => 1,
            Self::Hello => 2,
            Self::Secured => 3,
        }
    }
}

/// All newcomers of a port.
pub(crate) struct Newcomers {
    most: usize,
    /// How long after its coming one is not the first to be cut.
    fair: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    here: BTreeMap<u64, Known>,
    /// How many each network has here.
    of: HashMap<IpAddr, usize>,
}

/// What is known of a newcomer.
struct Known {
    network: IpAddr,
    since: Instant,
    progress: Progress,
    cut: oneshot::Sender<()>,
}

/// One newcomer, until it is dropped.
pub(crate) struct Newcomer {
    all: Arc<Newcomers>,
    number: u64,
}

impl Newcomers {
    /// At most so many at once, of which each has a time.
    pub(crate) fn new(most: usize, fair: Duration) -> Arc<Self> {
        Arc::new(Self { most, fair, state: Mutex::default() })
    }

    /// A place, at the cost of another's or of this one's. What comes with it is an error when it is to be
    /// cut.
    pub(crate) fn enter(self: &Arc<Self>, from: IpAddr) -> (Newcomer, oneshot::Receiver<()>) {
        let (cut, is_cut) = oneshot::channel();
        let (network, since) = (network(from), Instant::now());
        let mut state = self.state();
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.here.insert(number, Known { network, since, progress: Progress::Connected, cut });
        let count = state.of.entry(network).or_default();
        *count = count.saturating_add(1);
        if state.here.len() > self.most
            && let Some(victim) = state.victim(since, self.fair)
        {
            // Dropped with its sender: which tells it.
            state.remove(victim);
        }
        (Newcomer { all: Arc::clone(self), number }, is_cut)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Who is to be cut.
    fn victim(&self, now: Instant, fair: Duration) -> Option<u64> {
        let (network, _) = self.of.iter().max_by_key(|(_, count)| **count)?;
        let there = self.here.iter().filter(|(_, known)| known.network == *network);
        there
            .min_by_key(|(number, known)| {
                let is_over = known.since + fair * known.progress.times() <= now;
                let age = if is_over { **number } else { u64::MAX.saturating_sub(**number) };
                (!is_over, known.progress, age)
            })
            .map(|(number, _)| *number)
    }

    fn remove(&mut self, number: u64) -> Option<Known> {
        let known = self.here.remove(&number)?;
        if let Some(count) = self.of.get_mut(&known.network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of.remove(&known.network);
            }
        }
        Some(known)
    }
}

/// What one client may have of addresses: a /24, or a /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & !0xff).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

impl Newcomer {
    /// It has come further.
    pub(crate) fn made(&self, progress: Progress) {
        if let Some(known) = self.all.state().here.get_mut(&self.number) {
            known.progress = progress;
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let known = self.all.state().remove(self.number);
        if let Some(known) = known {
            // Where nobody listens the connection is gone.
            known.cut.send(()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oneshot::error::TryRecvError;

    const LONG: Duration = Duration::from_mins(1);

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Which of them are cut.
    fn cut(of: &mut [(Newcomer, oneshot::Receiver<()>)]) -> Vec<bool> {
        of.iter_mut().map(|(_, cut)| cut.try_recv() == Err(TryRecvError::Closed)).collect()
    }

    #[test]
    fn when_there_are_too_many_one_of_the_network_with_the_most_is_cut() {
        let all = Newcomers::new(3, LONG);
        let from = ["10.0.0.1", "10.0.0.200", "10.0.1.1", "10.9.9.9", "10.9.9.9"];
        let mut here: Vec<_> = from.map(|from| all.enter(ip(from))).into();
        // The later one of the first network, at once; then the later one of the last.
        assert_eq!(cut(&mut here), [false, true, false, false, true]);
        assert_eq!(all.state().of.len(), 3);
        drop(here);
        assert!(all.state().of.is_empty() && all.state().here.is_empty());
    }

    #[test]
    fn one_that_had_its_time_is_cut_before_one_that_came_last() {
        let all = Newcomers::new(2, Duration::ZERO);
        let mut here: Vec<_> = [(); 3].map(|()| all.enter(ip("10.0.0.1"))).into();
        assert_eq!(cut(&mut here), [true, false, false]);
    }

    #[test]
    fn one_that_came_further_has_more_time() {
        let all = Newcomers::new(2, LONG);
        let mut here: Vec<_> = [(); 2].map(|()| all.enter(ip("10.0.0.1"))).into();
        here[0].0.made(Progress::Hello);
        let over = Instant::now() + LONG;
        assert_eq!(all.state().victim(over, LONG), Some(1));
        here[1].0.made(Progress::Secured);
        assert_eq!(all.state().victim(over, LONG), Some(0), "nobody's time is over");
        assert_eq!(all.state().victim(over + 2 * LONG, LONG), Some(0), "everybody's is");
        here.push(all.enter(ip("10.0.0.1")));
        assert_eq!(cut(&mut here), [false, false, true]);
    }

    #[test]
    fn who_leaves_makes_room_and_is_not_cut() {
        let all = Newcomers::new(1, LONG);
        let (first, mut cut_first) = all.enter(ip("10.0.0.1"));
        drop(first);
        assert_eq!(cut_first.try_recv(), Ok(()));
        let mut here = [all.enter(ip("10.0.0.1"))];
        assert_eq!(cut(&mut here), [false]);
    }

    #[test]
    fn neighbours_are_one_network() {
        assert_eq!(network(ip("::ffff:10.0.0.7")), network(ip("10.0.0.9")));
        assert_eq!(network(ip("2001:db8::1")), network(ip("2001:db8::2:0:0:1")));
        assert_ne!(network(ip("2001:db8::1")), network(ip("2001:db8:0:1::1")));
    }
}
