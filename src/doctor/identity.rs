//! The identity's files: there, signed, of this namespace; and the certificate, against its key, its issuer and
//! the clock.

use super::{Examination, Finding, Options};
use crate::clock;
use crate::files::{self, MAX_FILE_BYTES};
use crate::http;
use crate::identity::{FILES, Identity, load_signed};
use crate::rules::certificate;
use crate::rules::config::Configuration;
use crate::rules::json::{MAX_ENVELOPE_BYTES, parse_foreign};
use crate::rules::names::format_time;
use jiff::Timestamp;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const MOUNT: &str =
    "mount the Secret navin-cluster-agent-identity there, with all five files, readable by the pod";
const ISSUE: &str = "have the manager issue a new identity, and apply its Secret";
/// A day, in seconds.
const DAY_S: i64 = 24 * 60 * 60;

/// What is known then.
#[derive(Default)]
pub(super) struct Known {
    /// Whole and usable.
    pub(super) identity: Option<Identity>,
    pub(super) namespace: Option<String>,
}

pub(super) fn examine(options: &Options, found: &mut Examination) -> Known {
    let dir = &options.identity_dir;
    found.add(readable(dir));
    let mut known = Known::default();
    match load_signed(dir) {
        Ok((_, config)) => {
            known.namespace = Some(config.namespace.as_str().to_owned());
            found.config = payload(dir);
            found.add(configuration(&config, options.pod_namespace.as_deref()));
        }
        Err(error) => found.add(Finding::wrong("configuration", error.to_string(), ISSUE)),
    }
    found.add(certificate(dir, clock::now()));
    known.identity = Identity::load(dir).ok();
    known
}

fn readable(dir: &Path) -> Finding {
    let failed =
        |name: &&str| files::read(&dir.join(name), MAX_FILE_BYTES).err().map(|e| format!("{name} ({e})"));
    let missing: Vec<String> = FILES.iter().filter_map(failed).collect();
    if missing.is_empty() {
        return Finding::ok("identity files", format!("all five are readable in {}", dir.display()));
    }
    let text = format!("not readable in {}: {}", dir.display(), missing.join(", "));
    Finding::wrong("identity files", text, MOUNT)
}

/// The payload of the configuration that was verified.
fn payload(dir: &Path) -> Option<Value> {
    let bytes = files::read(&dir.join("config.json"), MAX_FILE_BYTES).ok()?;
    parse_foreign(&bytes, MAX_ENVELOPE_BYTES).ok()?.get("payload").cloned()
}

fn configuration(config: &Configuration, pod_namespace: Option<&str>) -> Finding {
    let namespace = config.namespace.as_str();
    if let Some(pod) = pod_namespace.filter(|pod| *pod != namespace) {
        let text = format!("it is for the namespace {namespace:?}, and the pod is in {pod:?}");
        let advice = "run the agent there, or register this namespace under another cluster name, for an identity of its own";
        return Finding::wrong("configuration", text, advice);
    }
    let (tenant, cluster, identity) = (&config.tenant_id, &config.cluster_id, &config.identity_id);
    let text = format!("signed by the manager: tenant {tenant}, cluster {cluster}, identity {identity}");
    Finding::ok("configuration", text)
}

fn certificate(dir: &Path, now: Timestamp) -> Finding {
    const NAME: &str = "certificate";
    let file = |name: &str| files::read(&dir.join(name), MAX_FILE_BYTES);
    let (Ok(ca), Ok(chain), Ok(key)) = (file("ca.crt"), file("tls.crt"), file("tls.key")) else {
        return Finding::unknown(NAME, "its files are not all readable");
    };
    if let Err(problem) = http::check_issuers(&ca) {
        return Finding::wrong(NAME, format!("ca.crt: {problem}"), ISSUE);
    }
    if let Err((name, problem)) = http::check_key_pair(&chain, &key) {
        return Finding::wrong(NAME, format!("{name}: {problem}"), ISSUE);
    }
    let Some(end) = http::not_after(&chain, &ca) else {
        return Finding::warning(NAME, "tls.crt: it does not say when it ends", ISSUE);
    };
    let left = end.as_second().saturating_sub(now.as_second());
    let expiring = certificate::is_expiring(end, now);
    let end = format_time(end);
    if left < 0 {
        return Finding::wrong(NAME, format!("tls.crt: it ended {end}, by this clock"), ISSUE);
    }
    let since = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
    if let Err(problem) = http::check_issued(&chain, &ca, since) {
        let advice =
            "one identity's five files belong together: mount them from one Secret, or issue a new one";
        return Finding::wrong(NAME, format!("tls.crt: {problem}"), advice);
    }
    let text = format!("it fits its key and ca.crt, and ends {end}, in {} days", left.div_euclid(DAY_S));
    if expiring { Finding::warning(NAME, text, ISSUE) } else { Finding::ok(NAME, text) }
}
