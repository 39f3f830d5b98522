//! What a run is about beside its random troubles: most are ordinary; some are without the manager for up to an
//! hour, some have a hand that does not stop, some a state that is nearly full.

use crate::chance::{keyed, mix};
use crate::faults::{SECOND, Trouble};
use crate::workload::{Item, name};
use fastrand::Rng;

const MINUTE: u64 = 60 * SECOND;

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Season {
    /// Nothing in particular.
    Ordinary,
    /// The gateway is away, from and until these times.
    Away(u64, u64),
    /// A hand changes one component again and again, from and until these times.
    Contested(u64, u64),
    /// Large specs: the state is near its limits.
    Large,
}

impl Season {
    /// The season of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut rng = keyed(seed, 0x1_0005);
        let from = rng.u64(10 * SECOND..60 * SECOND);
        match rng.u32(0..100) {
            0..3 => Self::Away(from, from + rng.u64(2 * MINUTE..10 * MINUTE)),
            3..6 => Self::Away(from, from + rng.u64(10 * MINUTE..60 * MINUTE)),
            6..9 => Self::Contested(from, from + rng.u64(2 * MINUTE..20 * MINUTE)),
            9..11 => Self::Large,
            _ => Self::Ordinary,
        }
    }

    /// When the troubles end that would otherwise end at `end`.
    #[must_use]
    pub fn end(self, end: u64) -> u64 {
        match self {
            Self::Ordinary | Self::Large => end,
            Self::Away(_, until) | Self::Contested(_, until) => end.max(until + MINUTE),
        }
    }

    /// The trouble of it, with its number and time.
    #[must_use]
    pub fn trouble(self) -> Option<(u64, u64, Trouble)> {
        match self {
            Self::Away(from, until) => Some((mix(0x9_0000, 0), from, Trouble::GatewayAway(until - from))),
            Self::Ordinary | Self::Contested(..) | Self::Large => None,
        }
    }

    /// What is done by hand in it, each with its number and time.
    #[must_use]
    pub fn items(self, seed: u64) -> Vec<(u64, u64, Item)> {
        let mut rng = keyed(seed, 0x1_0006);
        match self {
            Self::Contested(from, until) => hand(&mut rng, from, until, 2 * SECOND..8 * SECOND),
            Self::Away(from, until) if rng.bool() => hand(&mut rng, from, until, 5 * SECOND..5 * MINUTE),
            Self::Ordinary | Self::Away(..) | Self::Large => Vec::new(),
        }
    }
}

/// A component that is changed, and at times deleted, again and again.
fn hand(rng: &mut Rng, from: u64, until: u64, pause: std::ops::Range<u64>) -> Vec<(u64, u64, Item)> {
    let (mut items, mut at) = (Vec::new(), from);
    while at < until {
        let item = if rng.u32(0..8) == 0 {
            Item::Delete(name(0))
        } else {
            Item::EditSpec(name(0), rng.i64(0..1000))
        };
        items.push((mix(0xa_0000, items.len() as u64), at, item));
        at += rng.u64(pause.clone());
    }
    items
}
