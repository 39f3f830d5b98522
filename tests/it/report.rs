//! The report is what CONTRACT section 5 shows: its example is held against what the agent sends.

use crate::gateway::Scripted;
use crate::lab::{BOUND, POD};
use crate::wired::{REPORT, Wired};
use navin_test_support::{Fate, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const CONTRACT: &str = include_str!("../../CONTRACT.md");

/// The example of CONTRACT section 5.
fn example() -> Value {
    let (_, section) = CONTRACT.split_once("\n## 5. Report\n").expect("section 5");
    let (_, block) = section.split_once("```json\n").expect("its example");
    let (text, _) = block.split_once("```").expect("its end");
    serde_json::from_str(text).expect("JSON")
}

fn members<'v>(report: &'v Value, of: &str) -> BTreeSet<&'v str> {
    let object = report.pointer(of).and_then(Value::as_object);
    object.unwrap_or_else(|| panic!("{of} is an object: {report}")).keys().map(String::as_str).collect()
}

#[test]
fn a_report_has_the_members_of_the_contract_and_no_others() {
    let scripted = Scripted::start("report", &json!({}));
    let _agent = scripted.agent();
    let report = until("a report", BOUND, || scripted.gateway.reports().pop());
    let example = example();
    for of in ["", "/state", "/counters", "/inventory", "/inventory/nodes"] {
        assert_eq!(members(&report, of), members(&example, of), "in {of:?}");
    }
    // Of a component not all are there at a time.
    for (sequence, name, bytes) in [(1, "told", 1), (2, "left-out", 16 * 1024)] {
        let receipt = scripted.answer(&scripted.signer.apply(name, sequence, &json!({})));
        assert_eq!(receipt["status"], "succeeded", "{receipt}");
        let path = format!("{}/status", scripted.world.namespace.component_path(name));
        let status = json!({ "status": { "phase": "x".repeat(bytes) } });
        assert_eq!(scripted.world.cluster.admin().patch(&path, &status).0, 200);
    }
    until("a report of both statuses", BOUND, || {
        let report = scripted.gateway.reports().pop()?;
        let told = |row: &Value| row["status"].is_object() || row["reason"] == "status_too_large";
        let rows = report["components"].as_array().filter(|rows| rows.len() == 2 && rows.iter().all(told))?;
        let found: BTreeSet<&str> = rows.iter().flat_map(|row| members(row, "")).collect();
        assert_eq!(found, members(&example, "/components/0"), "in {rows:?}");
        Some(())
    });
}

#[test]
fn a_report_that_the_manager_refuses_is_told_once_and_tried_again() {
    let wired = Wired::start("report-refused", &json!({}));
    wired.wire.rule(|call, reply| match reply {
        None if call.is("POST", REPORT) => Fate::answer(413, "too_large"),
        _ => Fate::Pass,
    });
    let replica = wired.replica(POD);
    replica.agent.wait_log("report refused error=\"the gateway answered 413 \\\"too_large\\\"\"", BOUND);
    until("another try", BOUND, || {
        let sent = wired.wire.since(0).into_iter().filter(|exchange| exchange.call.is("POST", REPORT));
        (sent.count() > 1).then_some(())
    });
    assert_eq!(replica.agent.count_log("report refused"), 1);
    wired.wire.pass_all();
    until("a report at the manager", BOUND, || {
        let shown = wired.world.manager.cluster(wired.world.cluster_id());
        shown["report"].is_object().then_some(())
    });
}
