//! Waiting for something to become true, with a bound.

use std::thread;
use std::time::{Duration, Instant};

/// Between two looks: short against anything that a test measures, long against a core.
const PAUSE: Duration = Duration::from_millis(15);

/// Calls `look` until it answers `Some`, and returns that.
///
/// After `bound` it panics with `what`, which therefore reads as the thing awaited: "the first leader".
#[track_caller]
pub fn until<T>(what: &str, bound: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        // Judged before the look: whatever became true within the bound is seen by one more look.
        let over = started.elapsed() > bound;
        if let Some(found) = look() {
            return found;
        }
        assert!(!over, "waited {bound:?} for {what}");
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_true_is_returned() {
        let mut looks = 0;
        let found = until("the third look", Duration::from_secs(5), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
    }

    #[test]
    #[should_panic(expected = "waited 20ms for godot")]
    fn what_never_comes_is_named() {
        until("godot", Duration::from_millis(20), || None::<()>);
    }
}
