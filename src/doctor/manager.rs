//! The manager's gateway: whether it is reached, and knows this identity.

use super::{Examination, Finding};
use crate::clock::SystemClock;
use crate::gateway::{Contact, Gateway, Probe};
use crate::identity::Identity;
use std::sync::Arc;

const NAME: &str = "gateway";
const ISSUE: &str = "another identity was issued for this cluster: mount its Secret";

/// Its clock less ours, in milliseconds.
pub(super) fn examine(identity: Option<&Identity>, found: &mut Examination) -> Option<i64> {
    let Some(identity) = identity else {
        found.add(Finding::unknown(NAME, "the identity is not usable"));
        return None;
    };
    let url = identity.config.gateway_url.as_str();
    let client = match identity.gateway_client() {
        Ok(client) => client,
        Err(error) => {
            found.add(Finding::unknown(NAME, error));
            return None;
        }
    };
    let contact = Arc::new(Contact::default());
    let gateway = Gateway::new(Arc::new(client), Arc::new(SystemClock::default()), contact);
    let (finding, offset) = match gateway.probe() {
        Ok(probe) => (judge(url, &probe), probe.clock_offset_ms),
        Err(error) => {
            let advice =
                "a name, a port, a network policy, a certificate that is not of ca.crt, or a wrong clock";
            (Finding::wrong(NAME, format!("{url}: {error}"), advice), None)
        }
    };
    found.add(finding);
    offset
}

fn judge(url: &str, probe: &Probe) -> Finding {
    let text = format!("{url} answers {} {:?}", probe.status, probe.code);
    match (probe.status, probe.code.as_str()) {
        (404, "not_found") | (405, "method_not_allowed") => {
            Finding::ok(NAME, format!("{url} answers, and knows this identity"))
        }
        (403, "identity_revoked") => Finding::wrong(NAME, text, ISSUE),
        (_, "") => {
            Finding::wrong(NAME, text, "it is not the gateway that answers there: correct gateway_url")
        }
        (429 | 503, _) => Finding::wrong(NAME, text, "the manager is not well: see its log"),
        _ => Finding::wrong(NAME, text, "see the manager's log and audit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn a_gateway_is_well_where_it_knows_the_identity_and_says_so_as_the_contract_has_it() {
        for (status, code, wanted, advice) in [
            (404, "not_found", Status::Ok, ""),
            (405, "method_not_allowed", Status::Ok, ""),
            (405, "", Status::Wrong, "gateway_url"),
            (404, "", Status::Wrong, "gateway_url"),
            (200, "", Status::Wrong, "gateway_url"),
            (403, "identity_revoked", Status::Wrong, "another identity"),
            (403, "other", Status::Wrong, "audit"),
            (503, "unavailable", Status::Wrong, "not well"),
        ] {
            let finding = judge("u", &Probe { status, code: code.to_owned(), clock_offset_ms: None });
            assert_eq!(finding.status, wanted, "{finding}");
            assert!(finding.advice.unwrap_or_default().contains(advice), "{finding}");
        }
    }
}
