//! Who wrote while who held the Lease, from the record of the proxies.

use navin_test_support::{Exchange, Server};
use std::time::Instant;

/// What the record of a row says of leadership.
pub(crate) struct Audit {
    /// How often the Lease was taken.
    pub(crate) takes: usize,
    /// Writes by one that did not hold it.
    pub(crate) wrong: Vec<String>,
}

impl Audit {
    /// Goes through the writes that took effect, in the order in which they were sent; `holder` held the Lease
    /// at first.
    pub(crate) fn of(record: &[Exchange], holder: &str) -> Self {
        let mut writes: Vec<(Instant, &Exchange)> = record
            .iter()
            .filter(|exchange| exchange.call.server == Server::Api && exchange.call.method != "GET")
            .filter(|exchange| exchange.took_effect())
            .filter_map(|exchange| Some((exchange.forwarded?, exchange)))
            .collect();
        writes.sort_by_key(|(sent, _)| *sent);
        let mut audit = Self { takes: 0, wrong: Vec::new() };
        let (mut holder, mut transitions) = (holder.to_owned(), None);
        for (_, write) in writes {
            let (call, object) = (&write.call, write.call.json());
            if call.resource().contains("/leases") {
                let named = object["spec"]["holderIdentity"].as_str().unwrap_or_default();
                let term = object["spec"]["leaseTransitions"].as_i64();
                let again = transitions.is_some() && term != transitions;
                if !named.is_empty() && (named != holder || again) {
                    audit.takes += 1;
                }
                named.clone_into(&mut holder);
                transitions = term;
            } else if !call.resource().contains("/events") && !holder.starts_with(&format!("{}_", call.agent))
            {
                let (method, path) = (&call.method, &call.path);
                audit
                    .wrong
                    .push(format!("{} wrote while {holder:?} held the Lease: {method} {path}", call.agent));
            }
        }
        audit
    }
}
