//! `doctor`: looks at all that the agent rests on, changes nothing, and says what to do. One finding a line.
//!
//! It takes no command from the gateway, and asks the API server for nothing that the agent itself may not.

mod cluster;
mod evidence;
mod finding;
mod identity;
mod manager;
mod rights;
mod tar;

use finding::{Finding, Status};

use crate::agent::KubeAccess;
use crate::heartbeat::{self, NotAlive};
use crate::rules::link::{apart, is_apart};
use crate::rules::names::format_time;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::PathBuf;

/// What is looked at.
pub(crate) struct Options {
    pub(crate) identity_dir: PathBuf,
    /// The way to the API server, or why there is none.
    pub(crate) kube: Result<KubeAccess, String>,
    pub(crate) pod_namespace: Option<String>,
    pub(crate) run_dir: PathBuf,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Examination {
    findings: Vec<Finding>,
    /// For a bundle: the verified configuration's payload, the Lease, and the state, all cut down.
    config: Option<Value>,
    lease: Option<Value>,
    state: Option<Value>,
}

impl Examination {
    /// Looks at everything. It takes a second, or a minute where nobody answers.
    pub(crate) fn of(options: &Options) -> Self {
        let mut found = Self::default();
        let known = identity::examine(options, &mut found);
        let namespace = known.namespace.clone().or_else(|| options.pod_namespace.clone());
        let api_offset = cluster::examine(options, namespace.as_deref(), &mut found);
        let gateway_offset = manager::examine(known.identity.as_ref(), &mut found);
        found.add(clock(api_offset, gateway_offset));
        found.add(match heartbeat::look(&options.run_dir) {
            Ok(line) => Finding::ok("threads", line),
            Err(NotAlive::Unknown(why)) => Finding::unknown("threads", why),
            Err(NotAlive::Silent(why)) => {
                Finding::wrong("threads", why, "the kubelet restarts it; keep the log of before")
            }
        });
        found
    }

    fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_well(&self) -> bool {
        self.findings.iter().all(|finding| finding.status != Status::Wrong)
    }

    /// One line for each finding.
    pub(crate) fn to_text(&self) -> String {
        self.findings.iter().fold(String::new(), |text, finding| format!("{text}{finding}\n"))
    }

    /// The same as JSON.
    pub(crate) fn to_json(&self, now: Timestamp) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "checked_at": format_time(now),
            "well": self.is_well(),
            "findings": self.findings,
        })
    }

    /// The same and what it rests on, as a tar archive.
    pub(crate) fn to_bundle(&self, version: &str, now: Timestamp) -> Vec<u8> {
        evidence::bundle(self, version, now)
    }
}

/// The others' clocks less ours, in milliseconds.
fn clock(api_server: Option<i64>, gateway: Option<i64>) -> Finding {
    let told: Vec<String> = [("API server", api_server), ("gateway", gateway)]
        .into_iter()
        .filter_map(|(whose, offset)| Some(format!("the {whose}'s is {}", apart(offset?))))
        .collect();
    if told.is_empty() {
        return Finding::unknown("clock", "nobody answered, to compare it with");
    }
    let skewed = [api_server, gateway].into_iter().flatten().any(is_apart);
    let text = told.join(", ");
    if skewed {
        let advice =
            "set the clocks by NTP: commands are refused not_yet_valid or expired, certificates fail";
        return Finding::wrong("clock", text, advice);
    }
    Finding::ok("clock", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_wrong_where_another_is_more_than_a_minute_away() {
        for (api, gateway, status) in [
            (None, None, Status::Unknown),
            (Some(0), None, Status::Ok),
            (Some(60_000), Some(-60_000), Status::Ok),
            (Some(0), Some(60_001), Status::Wrong),
            (Some(-60_001), None, Status::Wrong),
        ] {
            assert_eq!(clock(api, gateway).status, status, "{api:?} {gateway:?}");
        }
        let told = clock(Some(70_500), Some(-70_500)).to_string();
        assert!(
            told.contains("API server's is 70 s ahead of this one, the gateway's is 70 s behind"),
            "{told}"
        );
    }
}
