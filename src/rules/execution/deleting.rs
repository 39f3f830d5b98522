//! A delete on its way: by uid and `resourceVersion`, until the object is gone or a finalizer is known to hold it.

use super::{Ending, Execution, LOOK_AGAIN, Step, failed};
use crate::rules::component::Write;
use crate::rules::kubernetes::Object;
use serde_json::json;
use std::time::Duration;

/// How long a delete waits for the object to be gone before it says that a finalizer holds it.
const FINALIZE_FOR: Duration = Duration::from_secs(10);
/// How many finalizers a message names.
const NAMED: usize = 5;

impl Execution {
    pub(super) fn next_delete(&mut self, live: Option<&Object>, at: Duration) -> Step {
        let Some(live) = live else { return self.deleted(None) };
        let (Some(uid), Some(resource_version)) = (live.uid(), live.resource_version()) else {
            "the API server gave an object without uid".clone_into(&mut self.trouble);
            return Step::Retry(None);
        };
        self.existed = true;
        if let Some((deleting, since)) = &self.deleting {
            if deleting != uid {
                return self.deleted(None);
            }
            if live.terminating() && at.saturating_sub(*since) >= FINALIZE_FOR {
                return self.deleted(Some(live));
            }
        }
        if live.terminating() {
            self.deleting.get_or_insert_with(|| (uid.to_owned(), at));
            return Step::Wait(LOOK_AGAIN);
        }
        match &self.failing {
            None => Step::Write(Write::Delete {
                uid: uid.to_owned(),
                resource_version: resource_version.to_owned(),
            }),
            Some(failure) if !self.unanswered => failed(failure, false),
            Some(_) => self.settle(live),
        }
    }

    /// The API server has taken the delete; what could not be read is whether something still holds the object.
    pub(super) fn going(&self) -> Step {
        let result = json!({ "name": self.name.as_str(), "existed": true, "finalizing": true });
        let message = format!("is being deleted; not readable any more: {}", self.trouble);
        Step::End(Ending::Deleted { result, message })
    }

    fn deleted(&self, held_by: Option<&Object>) -> Step {
        let result = json!({
            "name": self.name.as_str(),
            "existed": self.existed || self.deleting.is_some(),
            "finalizing": held_by.is_some(),
        });
        let message = held_by.map_or_else(String::new, |live| held("is being deleted", live));
        Step::End(Ending::Deleted { result, message })
    }
}

pub(super) fn held(what: &str, live: &Object) -> String {
    let finalizers = live.finalizers();
    let named: Vec<&str> = finalizers.iter().copied().take(NAMED).collect();
    let more = if finalizers.len() > NAMED { ", ..." } else { "" };
    format!("{what}; finalizers: {}{more}", named.join(", "))
}
