//! A run that is written down instead of drawn from a seed: what was found once stays found.

use crate::faults::{CallFault, Trouble};
use crate::workload::Item;

/// Which call gets which fault. Rules are taken in order: each waits for those before it.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Not before this time.
    pub after: u64,
    /// The method of the call.
    pub method: &'static str,
    /// A part of its path.
    pub path: &'static str,
    /// What goes wrong.
    pub fault: CallFault,
    /// How many calls in a row.
    pub times: u32,
}

/// A run of two replicas, of which the first starts first, with the first of
/// [`SETTINGS`](crate::identity::SETTINGS).
#[derive(Clone, Debug)]
pub struct Script {
    /// When all troubles end.
    pub end: u64,
    /// The larger troubles and their times.
    pub troubles: Vec<(u64, Trouble)>,
    /// What people do, and when.
    pub items: Vec<(u64, Item)>,
    /// What goes wrong with single calls.
    pub rules: Vec<Rule>,
}

impl Script {
    /// The fault of a call at `now`, if it is its turn.
    pub(crate) fn draw(&mut self, now: u64, method: &str, path: &str) -> Option<CallFault> {
        let rule = self.rules.first_mut()?;
        let meant = now >= rule.after && rule.method == method && path.contains(rule.path);
        let fault = meant.then_some(rule.fault)?;
        rule.times = rule.times.saturating_sub(1);
        if rule.times == 0 {
            self.rules.remove(0);
        }
        Some(fault)
    }
}
