//! A report that the gateway takes: at most 8 MiB (CONTRACT section 4). What would not fit says so.

use serde_json::{Value, json};

/// Largest report, in bytes.
pub const LIMIT: usize = 8 * 1024 * 1024;

/// Takes out of `report` what exceeds `limit`: first the status of the components, then the largest kinds of
/// the inventory.
pub fn fit(report: &mut Value, limit: usize) {
    if size(report) > limit {
        drop_statuses(report);
    }
    while size(report) > limit && drop_largest_kind(report) {}
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

fn drop_statuses(report: &mut Value) {
    let rows = report.get_mut("components").and_then(Value::as_array_mut);
    for row in rows.into_iter().flatten().filter_map(Value::as_object_mut) {
        if row.remove("status").is_some() {
            row.entry("reason").or_insert_with(|| json!("status_too_large"));
        }
    }
}

/// False where there is none left to drop.
fn drop_largest_kind(report: &mut Value) -> bool {
    let kinds = report.get_mut("inventory").and_then(Value::as_object_mut);
    let listed = kinds.into_iter().flat_map(|kinds| kinds.iter_mut()).filter_map(|(_, kind)| {
        let items = kind.get("items").filter(|items| items.as_array().is_some_and(|items| !items.is_empty()));
        items.map(size).map(|size| (size, kind))
    });
    match listed.max_by_key(|(size, _)| *size) {
        Some((_, kind)) => {
            *kind = json!({ "state": "too_large", "items": [] });
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Value {
        json!({
            "type": "navin.report/v1",
            "components": [
                { "name": "a", "in_sync": true, "status": { "text": "x".repeat(1_000) } },
                { "name": "b", "in_sync": false, "reason": "absent" },
            ],
            "inventory": {
                "version": {},
                "nodes": { "state": "ok", "items": ["n".repeat(3_000)] },
                "crds": { "state": "ok", "items": ["c".repeat(2_000)] },
                "namespaces": { "state": "forbidden", "items": [] },
            },
        })
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let mut fitting = report();
        fit(&mut fitting, size(&report()));
        assert_eq!(fitting, report());
    }

    #[test]
    fn statuses_go_first_and_then_the_largest_kinds_and_each_says_so() {
        let mut smaller = report();
        fit(&mut smaller, size(&report()) - 1);
        let mut wanted = report();
        wanted["components"][0] = json!({ "name": "a", "in_sync": true, "reason": "status_too_large" });
        assert_eq!(smaller, wanted);

        fit(&mut smaller, 3_000);
        wanted["inventory"]["nodes"] = json!({ "state": "too_large", "items": [] });
        assert_eq!(smaller, wanted);

        fit(&mut smaller, 10);
        wanted["inventory"]["crds"] = json!({ "state": "too_large", "items": [] });
        assert_eq!(smaller, wanted, "and nothing else is ever left out");
    }
}
