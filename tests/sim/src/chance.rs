//! Chance that depends on the seed and on a key alone, never on what was drawn before: a fault that is
//! switched off changes no other decision.

use fastrand::Rng;

/// Mixes two numbers (the finaliser of SplitMix64 over their sum).
#[must_use]
pub fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b).wrapping_add(0x6a09_e667_f3bc_c909);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A generator for `key`.
#[must_use]
pub fn keyed(seed: u64, key: u64) -> Rng {
    Rng::with_seed(mix(seed, key))
}

/// True in `per_mille` of a thousand cases.
pub fn happens(rng: &mut Rng, per_mille: u32) -> bool {
    rng.u32(0..1000) < per_mille
}
