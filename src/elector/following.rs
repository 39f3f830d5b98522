//! A follower: looks at the Lease, or watches it, until it may be taken.
//!
//! What is seen is no permission: that follows from the answer to the take.

use super::Elector;
use crate::kube::{Object, lease, state as configmap};
use crate::rules::election::Action;
use crate::threads::LONGEST_WAIT;
use std::time::Duration;

/// A watch that ended sooner is not followed by another at once.
const SHORT: Duration = Duration::from_secs(1);

impl Elector {
    pub(super) fn follow(&mut self) -> Duration {
        let found = match lease::get(&self.kube) {
            Ok(found) => found,
            Err(error) => {
                self.trouble("lease not readable", &error);
                return self.look();
            }
        };
        self.observe(found.as_ref());
        let state_exists = found.is_some() || !matches!(configmap::get(&self.kube), Ok(None));
        match self.observer.decide(&self.me, None, state_exists, self.clock.monotonic()) {
            Action::Create => self.take(None, 0, !state_exists),
            Action::Take { transitions } => self.take(found.as_ref(), transitions, false),
            Action::Wait(rest) => self.linger(found.as_ref(), rest),
            Action::Renew | Action::StepDown => self.look(),
        }
    }

    /// Watches the Lease until there may be something to do, or for the `rest` of its holder's time, a minute of
    /// it at a time.
    fn linger(&mut self, found: Option<&Object>, rest: Duration) -> Duration {
        let (began, look) = (self.clock.monotonic(), rest.min(self.look()));
        let Some(version) = found.and_then(Object::resource_version) else { return look };
        if rest.as_secs() == 0 {
            return rest;
        }
        let mut watch = match lease::watch(&self.kube, version, rest.min(LONGEST_WAIT).as_secs()) {
            Ok(watch) => watch,
            Err(error) => {
                let text = format!("lease not watched, read instead error={:?}", error.to_string());
                self.say(log::Level::Info, &text);
                return look;
            }
        };
        loop {
            match watch.read() {
                Ok(Some(lease)) => {
                    self.observe(Some(&lease));
                    let now = self.clock.monotonic();
                    if !matches!(self.observer.decide(&self.me, None, true, now), Action::Wait(_)) {
                        return Duration::ZERO;
                    }
                }
                Ok(None) if self.clock.monotonic().saturating_sub(began) >= SHORT => return Duration::ZERO,
                Ok(None) => return look,
                Err(error) => {
                    self.say(log::Level::Info, &format!("lease watch broke error={error:?}"));
                    return look;
                }
            }
            if self.permit.closing() {
                return Duration::ZERO;
            }
        }
    }
}
