//! What the PostgreSQL of the tests expects beside it.

use std::time::Duration;

/// Waits, with a bound.
pub(crate) fn until<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    navin_test_support::until(what, Duration::from_secs(45), condition)
}
