//! The API server: reached, with the rights that are needed and no others; and what the agent keeps there.

use super::{Examination, Finding, Options, evidence, rights};
use crate::agent::KubeAccess;
use crate::clock;
use crate::files::{self, MAX_FILE_BYTES};
use crate::http::{HttpsClient, TlsFiles};
use crate::kube::review::{self, Right};
use crate::kube::{Kube, KubeError, lease as leases, state as states};
use crate::rules::backoff::clock_offset_ms;
use crate::rules::election::LeaseRecord;
use crate::rules::json::parse_foreign;
use crate::rules::state::{STATE_LIMIT, State, StateError};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// What each call is given at the server; it may take a second longer to arrive.
const LIMIT: Duration = Duration::from_secs(5);
const APPLY: &str = "apply the manager's manifests for this namespace (`navin-manager manifests`): the Role and its binding are in them";
const REACH: &str = "its address, a network policy, or a certificate that is not of the CA file";
const TOKEN: &str = "mount a token of this cluster for this ServiceAccount, one that has not ended";
const AGAIN: &str = "run the doctor again; where it stays so, see the API server's log, and that object";
const LOG: &str = "see the agent's log";

/// Its clock less ours, in milliseconds.
pub(super) fn examine(options: &Options, namespace: Option<&str>, found: &mut Examination) -> Option<i64> {
    let (kube, offset) = match connect(options, namespace) {
        Ok((kube, version, offset)) => {
            found.add(Finding::ok("API server", format!("it answers, version {version}")));
            (kube, offset)
        }
        Err(finding) => {
            found.add(finding);
            for name in ["permissions", "CRD", "Lease", "state"] {
                found.add(Finding::unknown(name, "not asked: see API server"));
            }
            return None;
        }
    };
    permissions(&kube, found);
    found.add(crd(&kube));
    let now = clock::now().as_millisecond().saturating_add(offset.unwrap_or(0));
    let led = match leases::get(&kube) {
        Ok(Some(object)) => {
            found.lease = Some(evidence::lease(&object.0));
            found.add(lease(&LeaseRecord::read(&object.0), now));
            true
        }
        Ok(None) => {
            found.add(Finding::wrong("Lease", "there is none: no replica has led yet", LOG));
            false
        }
        Err(error) => {
            found.add(Finding::wrong("Lease", error.to_string(), advice(&error, AGAIN)));
            true
        }
    };
    let state = states::get(&kube);
    if let Ok(Some(object)) = &state {
        let document = states::text(object).and_then(|text| parse_foreign(text.as_bytes(), STATE_LIMIT).ok());
        found.state = document.as_ref().map(evidence::state);
    }
    found.add(match &state {
        Ok(Some(object)) => judge_state(states::text(object)),
        Ok(None) if led => {
            Finding::wrong("state", "there is none, while there is a Lease: it was deleted", LOG)
        }
        Ok(None) => Finding::unknown("state", "there is none yet: no replica has led"),
        Err(error) => Finding::wrong("state", error.to_string(), advice(error, AGAIN)),
    });
    offset
}

fn connect(options: &Options, namespace: Option<&str>) -> Result<(Kube, String, Option<i64>), Finding> {
    const NAME: &str = "API server";
    let KubeAccess { url, token, ca } = options
        .kube
        .as_ref()
        .map_err(|why| Finding::wrong(NAME, why, "run it in the agent's container, or say where it is"))?;
    let mount = "mount the ServiceAccount's token and kube-root-ca.crt, as the Deployment of the manager's manifests does";
    let read = |path| {
        files::read(path, MAX_FILE_BYTES).map_err(|error| {
            Finding::wrong(NAME, format!("{}: not readable: {error}", path.display()), mount)
        })
    };
    let issuers = read(ca)?;
    read(token)?;
    let client = HttpsClient::new(url, &TlsFiles { ca: &issuers, client: None }, Some(token.clone()))
        .map_err(|error| Finding::wrong(NAME, format!("{}: {error}", ca.display()), mount))?;
    let kube = Kube::new(Arc::new(client), namespace.unwrap_or_default(), LIMIT);
    match review::version(&kube) {
        Ok((version, date)) => {
            let offset = date.and_then(|date| clock_offset_ms(&date, clock::now()));
            match namespace {
                Some(_) => Ok((kube, version, offset)),
                None => Err(Finding::unknown(NAME, format!("{url} answers; the namespace is not known"))),
            }
        }
        Err(error) => Err(Finding::wrong(NAME, format!("{url}: {error}"), advice(&error, REACH))),
    }
}

/// What to do about a call that failed: it is the rights, the token, or else `otherwise`.
fn advice(error: &KubeError, otherwise: &'static str) -> &'static str {
    match error {
        KubeError::Refused { .. } => APPLY,
        KubeError::Unavailable { status: Some(401), .. } => TOKEN,
        KubeError::NotFound(_)
        | KubeError::Conflict(_)
        | KubeError::Gone(_)
        | KubeError::Unavailable { .. }
        | KubeError::Unanswered { .. } => otherwise,
    }
}

/// Each right that is needed, and some that it must not have, one after the other; the first call that fails ends it.
fn permissions(kube: &Kube, found: &mut Examination) {
    const NAME: &str = "permissions";
    let mut lacking = Vec::new();
    let mut ask =
        |right: &Right, wanted: bool, finding: fn(&Right) -> Finding| match review::allowed(kube, right) {
            Ok(allowed) => {
                if allowed != wanted {
                    lacking.push(finding(right));
                }
                Ok(())
            }
            Err(error) => Err(Finding::unknown(NAME, format!("the API server did not say: {error}"))),
        };
    let missing = |right: &Right| Finding::wrong(NAME, format!("missing: {right}"), APPLY);
    let excess = |right: &Right| {
        let advice = "find the binding that gives it to this ServiceAccount, and take it away";
        Finding::wrong(NAME, format!("too much: {right}"), advice)
    };
    let all = rights::needed().try_for_each(|right| ask(&right, true, missing));
    let all = all.and_then(|()| rights::forbidden().try_for_each(|right| ask(&right, false, excess)));
    if let Err(finding) = all {
        lacking.push(finding);
    } else if lacking.is_empty() {
        let text =
            "all that are needed; it may neither read Secrets nor create Pods (no others were asked about)";
        lacking.push(Finding::ok(NAME, text));
    }
    found.findings.extend(lacking);
}

fn crd(kube: &Kube) -> Finding {
    match review::components_served(kube) {
        Ok(true) => Finding::ok("CRD", "managedcomponents.platform.navin.ai v1 is served"),
        Ok(false) => Finding::wrong(
            "CRD",
            "managedcomponents.platform.navin.ai v1 is not served",
            "apply the manager's manifests (`navin-manager manifests`): the CustomResourceDefinition is in them",
        ),
        Err(error) => Finding::unknown("CRD", error.to_string()),
    }
}

/// `now` is the API server's, in milliseconds since 1970.
fn lease(record: &LeaseRecord, now: i64) -> Finding {
    if record.holder.is_empty() {
        return Finding::wrong("Lease", "nobody holds it: it was released, and no replica took it", LOG);
    }
    let renewed = record.renew_time.parse::<Timestamp>().ok();
    let Some(age) = renewed.map(|time| now.saturating_sub(time.as_millisecond()).div_euclid(1_000)) else {
        return Finding::warning("Lease", format!("held by {}, without a renewTime", record.holder), LOG);
    };
    let term = record.duration_s.unwrap_or(0);
    let text = format!("held by {}, renewed {} s ago, for {term} s at a time", record.holder, age.max(0));
    if age > i64::try_from(term).unwrap_or(i64::MAX) {
        return Finding::wrong(
            "Lease",
            format!("{text}: it has run out"),
            "no replica leads: see their logs",
        );
    }
    Finding::ok("Lease", text)
}

fn judge_state(text: Option<&str>) -> Finding {
    const NAME: &str = "state";
    let Some(text) = text else {
        return Finding::wrong(NAME, "the ConfigMap has no state.json", LOG);
    };
    let state = match State::from_json(text) {
        Ok(state) => state,
        Err(error @ StateError::OfVersion(_)) => {
            return Finding::wrong(NAME, error.to_string(), "roll out an agent that knows it");
        }
        Err(error) => {
            let advice = "the next leader makes a new one: sensitive commands are then to be issued anew";
            return Finding::wrong(NAME, error.to_string(), advice);
        }
    };
    let (counts, bytes) = (state.counts(), state.bytes());
    let text = format!(
        "term {}, {} records ({} under way, {} receipts waiting), {} components, {bytes} bytes",
        state.term, counts.records, counts.accepted, counts.receipts_waiting, counts.desired
    );
    if state.is_full() {
        let advice = "applies are left to the gateway until receipts are acknowledged: see that they are";
        return Finding::wrong(NAME, format!("full: {text}"), advice);
    }
    if state.is_heavy() {
        let advice = "others are left to the gateway until these have ended: see that they do, and the Event NotSettled";
        return Finding::warning(NAME, format!("very large specs are under way: {text}"), advice);
    }
    if state.unfinished {
        return Finding::warning(
            NAME,
            format!("its making is not finished: {text}"),
            "wait for the next leader",
        );
    }
    Finding::ok(NAME, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn only_what_the_api_server_refuses_is_mended_by_applying_the_rights() {
        for (status, wanted) in [(403, APPLY), (401, TOKEN), (429, AGAIN), (500, AGAIN), (503, AGAIN)] {
            assert_eq!(advice(&KubeError::of(status, String::new(), None), AGAIN), wanted, "{status}");
        }
        let message = "no connection".to_owned();
        let unreached = KubeError::Unavailable { status: None, message, retry_after: None };
        assert_eq!(advice(&unreached, REACH), REACH);
    }

    #[test]
    fn a_lease_is_well_while_its_holder_renews_it_within_its_term() {
        let now = "2026-11-30T12:00:00Z".parse::<Timestamp>().unwrap().as_millisecond();
        for (holder, renewed, status) in [
            ("a_1", "2026-11-30T11:59:45.000000Z", Status::Ok),
            ("a_1", "2026-11-30T12:00:03.000000Z", Status::Ok),
            ("a_1", "2026-11-30T11:59:44.000000Z", Status::Wrong),
            ("", "2026-11-30T11:59:59.000000Z", Status::Wrong),
            ("a_1", "yesterday", Status::Warning),
        ] {
            let record = LeaseRecord {
                holder: holder.into(),
                renew_time: renewed.into(),
                duration_s: Some(15),
                ..LeaseRecord::default()
            };
            assert_eq!(lease(&record, now).status, status, "{holder} {renewed}");
        }
    }

    #[test]
    fn a_state_is_wrong_where_it_is_not_one_or_of_a_newer_agent() {
        let mut state = State::new(3, "a_1");
        assert_eq!(judge_state(Some(&state.to_json())).status, Status::Warning, "unfinished");
        state.unfinished = false;
        let finding = judge_state(Some(&state.to_json()));
        assert_eq!(finding.status, Status::Ok);
        assert!(finding.message.contains("term 3, 0 records"), "{finding}");
        for (text, advice) in
            [(None, "log"), (Some("{"), "anew"), (Some("{}"), "anew"), (Some("{\"version\": 9}"), "roll")]
        {
            let finding = judge_state(text);
            assert_eq!(finding.status, Status::Wrong, "{text:?}");
            assert!(finding.advice.unwrap().contains(advice), "{finding}");
        }
    }
}
