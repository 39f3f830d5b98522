//! What was counted, in the units of the table.

use std::fmt::Debug;
use std::time::Duration;

/// A count as a figure; none that is measured reaches 2^32.
pub(crate) fn figure<N: TryInto<u32, Error: Debug>>(count: N) -> f64 {
    f64::from(count.try_into().expect("less than 2^32"))
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Of nanoseconds, as the kernel counts processor time: milliseconds.
pub(crate) fn milliseconds_of(nanoseconds: f64) -> f64 {
    nanoseconds / 1e6
}

/// Bytes in kB.
pub(crate) fn kilobytes(bytes: f64) -> f64 {
    bytes / 1e3
}

/// Bytes in MB.
pub(crate) fn megabytes(bytes: f64) -> f64 {
    bytes / 1e6
}

/// Bytes in MiB.
pub(crate) fn mebibytes(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// The kernel's "kB" of memory, which are KiB, in bytes.
pub(crate) fn bytes(kib: f64) -> f64 {
    kib * 1024.0
}
