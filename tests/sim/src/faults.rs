//! What goes wrong, and when: a plan of the run's larger troubles, and the fault of a single call. Each has a
//! number by which it can be switched off, so that a failing run can be shrunk.

use crate::chance::{happens, keyed, mix};
use crate::thread::Peer;
use std::collections::BTreeSet;

/// One second, in microseconds.
pub const SECOND: u64 = 1_000_000;

/// Which faults and items of the workload may happen.
#[derive(Clone, Debug, Default)]
pub enum Allowed {
    /// All.
    #[default]
    All,
    /// These alone.
    Only(BTreeSet<u64>),
}

impl Allowed {
    /// Whether the one with this number may.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::Only(numbers) => numbers.contains(&number),
        }
    }
}

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The process ends before the request leaves.
    CrashBefore,
    /// The process ends when the request has had its effect.
    CrashAfter,
    /// The process ends, and the request lands this much later.
    CrashThenLands(u64),
    /// The request never arrives.
    RequestLost,
    /// The answer never arrives.
    AnswerLost,
    /// The request lands this much later.
    RequestDelayed(u64),
    /// The request lands once more, this much later.
    RequestDoubled(u64),
    /// The answer arrives this much later.
    AnswerDelayed(u64),
    /// The whole process stands still for so long, before the request leaves.
    Paused(u64),
    /// The whole process stands still for so long, when the request has left: its answer waits for it.
    PausedAfter(u64),
    /// The server answers with this status, and does nothing.
    Refused(u16),
    /// The server does it, and answers 500 all the same.
    DoneThenError,
    /// The answer's body is cut.
    BodyCut,
    /// No connection comes about.
    Unsent,
}

/// The kinds of [`CallFault`], for the summary.
pub const CALL_KINDS: [&str; 14] = [
    "crash before",
    "crash after",
    "crash, lands later",
    "request lost",
    "answer lost",
    "request delayed",
    "request doubled",
    "answer delayed",
    "paused",
    "refused",
    "done, then 500",
    "body cut",
    "unsent",
    "paused after",
];

impl CallFault {
    /// Whether the whole process stands still.
    #[must_use]
    pub fn pauses(self) -> bool {
        matches!(self, Self::Paused(_) | Self::PausedAfter(_))
    }

    /// Its index in [`CALL_KINDS`].
    #[must_use]
    pub fn kind(self) -> usize {
        match self {
            Self::CrashBefore => 0,
            Self::CrashAfter => 1,
            Self::CrashThenLands(_) => 2,
            Self::RequestLost => 3,
            Self::AnswerLost => 4,
            Self::RequestDelayed(_) => 5,
            Self::RequestDoubled(_) => 6,
            Self::AnswerDelayed(_) => 7,
            Self::Paused(_) => 8,
            Self::Refused(_) => 9,
            Self::DoneThenError => 10,
            Self::BodyCut => 11,
            Self::Unsent => 12,
            Self::PausedAfter(_) => 13,
        }
    }
}

/// How often each kind happens in this run, in thousandths of the calls. A run has some kinds and not others.
#[derive(Clone, Debug)]
pub struct Rates([u32; CALL_KINDS.len()]);

impl Rates {
    /// None at all.
    #[must_use]
    pub fn none() -> Self {
        Self([0; CALL_KINDS.len()])
    }

    /// The rates of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut rng = keyed(seed, 0x1_0001);
        Self(std::array::from_fn(|kind| {
            let most = if kind <= 2 { 12 } else { 40 };
            if rng.u32(0..100) < 45 { rng.u32(1..=most) } else { 0 }
        }))
    }

    /// The fault of a call, if it has one. Renewals and looks at the Lease are most of the calls: they fail more
    /// rarely.
    #[must_use]
    pub fn draw(&self, seed: u64, number: u64, peer: Peer, path: &str, method: &str) -> Option<CallFault> {
        let mut rng = keyed(seed, number);
        let rare = path.contains("/leases") && rng.u32(0..8) != 0;
        if rare {
            return None;
        }
        let kind = (0..CALL_KINDS.len()).find(|kind| happens(&mut rng, self.0[*kind]))?;
        let later = |rng: &mut fastrand::Rng| {
            let most = [2, 20, 120][rng.usize(0..3)];
            rng.u64(1_000..most * SECOND)
        };
        Some(match kind {
            0 => CallFault::CrashBefore,
            1 => CallFault::CrashAfter,
            2 => CallFault::CrashThenLands(later(&mut rng)),
            3 => CallFault::RequestLost,
            4 => CallFault::AnswerLost,
            5 => CallFault::RequestDelayed(later(&mut rng)),
            6 => CallFault::RequestDoubled(later(&mut rng)),
            7 => CallFault::AnswerDelayed(later(&mut rng)),
            8 => CallFault::Paused(rng.u64(0..60 * SECOND)),
            9 => CallFault::Refused(refusal(&mut rng, peer, method)),
            10 => CallFault::DoneThenError,
            11 => CallFault::BodyCut,
            12 => CallFault::Unsent,
            _ => CallFault::PausedAfter(rng.u64(0..60 * SECOND)),
        })
    }
}

fn refusal(rng: &mut fastrand::Rng, peer: Peer, method: &str) -> u16 {
    let usual = [429, 500, 503];
    let writes = [429, 500, 503, 504, 403, 422, 409];
    match (peer, method) {
        (Peer::Kube, "POST" | "PUT" | "DELETE") => writes[rng.usize(0..writes.len())],
        _ => usual[rng.usize(0..usual.len())],
    }
}

/// A larger trouble.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    /// No request reaches the gateway for so long.
    GatewayAway(u64),
    /// The gateway answers everything with this status for so long.
    GatewayAnswers(u16, u64),
    /// The manager starts again.
    ManagerRestarts,
    /// No request reaches the API server for so long.
    ApiAway(u64),
    /// The API server answers everything with this status for so long.
    ApiAnswers(u16, u64),
    /// This replica reaches nobody for so long.
    CutOff(usize, u64),
    /// This machine's wall clock steps by so many microseconds and runs at this rate.
    Clock(usize, i64, f64),
    /// SIGTERM for this replica; it comes back as another pod or as the same.
    Terminated(usize),
    /// This replica is killed; it comes back as another pod or as the same.
    Killed(usize),
    /// The API server forgets old versions and continue tokens.
    Compacted,
    /// This replica's inbox cannot be listed or written for so long.
    FolderBroken(usize, u64),
    /// Everybody is killed at once.
    AllKilled,
    /// The state is deleted.
    StateDeleted,
    /// The state is overwritten with something else.
    StateEdited,
    /// The Lease is deleted.
    LeaseDeleted,
    /// The Lease's holder is cleared by hand.
    LeaseCleared,
}

impl Trouble {
    /// Its name in the summary.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::GatewayAway(_) => "gateway away",
            Self::GatewayAnswers(..) => "gateway refuses",
            Self::ManagerRestarts => "manager restarts",
            Self::ApiAway(_) => "API server away",
            Self::ApiAnswers(..) => "API server refuses",
            Self::CutOff(..) => "replica cut off",
            Self::Clock(..) => "wall clock",
            Self::Terminated(..) => "SIGTERM",
            Self::Killed(..) => "killed",
            Self::Compacted => "compacted",
            Self::FolderBroken(..) => "inbox broken",
            Self::AllKilled => "all killed",
            Self::StateDeleted => "state deleted",
            Self::StateEdited => "state edited",
            Self::LeaseDeleted => "lease deleted",
            Self::LeaseCleared => "lease cleared",
        }
    }

    /// Whether a run with it is counted apart: what a person deletes or overwrites can be lost.
    #[must_use]
    pub fn loses(&self) -> bool {
        matches!(self, Self::StateDeleted | Self::StateEdited | Self::LeaseDeleted | Self::LeaseCleared)
    }
}

/// The troubles of a run that has `replicas` replicas and ends at `end`, each with its number and time.
#[must_use]
pub fn plan(seed: u64, replicas: usize, end: u64) -> Vec<(u64, u64, Trouble)> {
    let mut rng = keyed(seed, 0x1_0002);
    let mut plan = Vec::new();
    let losing = rng.u32(0..100) < 12;
    let count = rng.u64(0..12);
    for index in 0..count {
        let at = rng.u64(SECOND..end);
        let most = [5, 40, 150][rng.usize(0..3)];
        let long = rng.u64(SECOND..most * SECOND);
        let who = rng.usize(0..replicas);
        let kind = rng.u32(0..if losing { 19 } else { 15 });
        let trouble = match kind {
            0 => Trouble::GatewayAway(long),
            1 => Trouble::GatewayAnswers([403, 500, 503, 429][rng.usize(0..4)], long),
            2 => Trouble::ManagerRestarts,
            3 => Trouble::ApiAway(long),
            4 => Trouble::ApiAnswers([403, 500, 503, 429][rng.usize(0..4)], long),
            5 => Trouble::CutOff(who, long),
            6 | 7 => clock(&mut rng, who),
            8 | 9 => Trouble::Terminated(who),
            10 | 11 => Trouble::Killed(who),
            12 => Trouble::AllKilled,
            13 => Trouble::Compacted,
            14 => Trouble::FolderBroken(who, long),
            15 => Trouble::StateDeleted,
            16 => Trouble::StateEdited,
            17 => Trouble::LeaseDeleted,
            _ => Trouble::LeaseCleared,
        };
        plan.push((mix(0x2_0000, index), at, trouble));
    }
    plan
}

fn clock(rng: &mut fastrand::Rng, who: usize) -> Trouble {
    let most = [2, 90, 3_600, 86_400][rng.usize(0..4)] * SECOND.cast_signed();
    let rate = if rng.bool() { 1.0 } else { 0.7 + 0.7 * rng.f64() };
    Trouble::Clock(who, rng.i64(-most..=most), rate)
}

/// The rates of the monotonic clocks.
#[must_use]
pub fn monotonic_rates(seed: u64, replicas: usize) -> Vec<f64> {
    let mut rng = keyed(seed, 0x1_0003);
    let odd = rng.u32(0..100) < 25;
    (0..replicas).map(|_| if odd { 0.7 + 0.7 * rng.f64() } else { 1.0 }).collect()
}
