//! How much one caller may have open at once in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What is open, by caller.
pub(crate) struct Limits {
    most: usize,
    open: Mutex<HashMap<String, usize>>,
}

/// One thing that is open, until it is dropped.
pub(crate) struct Place {
    limits: Arc<Limits>,
    caller: String,
}

impl Limits {
    /// At most so many for each caller.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// A place for one more; `None` where the caller has all of theirs.
    pub(crate) fn enter(self: &Arc<Self>, caller: &str) -> Option<Place> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(caller.to_owned()).or_default();
        if *count >= self.most {
            return None;
        }
        *count = count.saturating_add(1);
        Some(Place { limits: Arc::clone(self), caller: caller.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.limits.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.caller) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_places_of_its_own_and_gets_them_back() {
        let limits = Limits::new(2);
        let held = [limits.enter("a"), limits.enter("a"), limits.enter("b")];
        assert!(held.iter().all(Option::is_some) && limits.enter("a").is_none());
        drop(held);
        assert!(limits.enter("a").is_some());
        assert!(limits.open.lock().expect("open").is_empty());
    }
}
