//! Who wrote while who held the Lease, from the record of the proxies.

use navin_test_support::{Exchange, Server};
use serde_json::Value;
use std::time::Instant;

/// What the record of a row says of leadership.
pub(crate) struct Audit {
    /// How often the Lease was taken.
    pub(crate) takes: usize,
    /// Writes by one that did not hold it.
    pub(crate) wrong: Vec<String>,
}

impl Audit {
    /// Goes through the writes that took effect, in the order in which they were sent; the Lease was `before`.
    pub(crate) fn of(record: &[Exchange], before: &Value) -> Self {
        let mut writes: Vec<(Instant, &Exchange)> = record
            .iter()
            .filter(|exchange| exchange.call.server == Server::Api && exchange.call.method != "GET")
            .filter(|exchange| exchange.took_effect())
            .filter_map(|exchange| Some((exchange.forwarded?, exchange)))
            .collect();
        writes.sort_by_key(|(sent, _)| *sent);
        let mut audit = Self { takes: 0, wrong: Vec::new() };
        let holder_in =
            |lease: &Value| lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let term_in = |lease: &Value| lease["spec"]["leaseTransitions"].as_i64();
        let (mut holder, mut term) = (holder_in(before), term_in(before));
        for (_, write) in writes {
            let (call, object) = (&write.call, write.call.json());
            if call.resource().contains("/leases") {
                let (named, raised) = (holder_in(&object), term_in(&object));
                if !named.is_empty() && (named != holder || raised != term) {
                    audit.takes += 1;
                }
                (holder, term) = (named, raised);
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
