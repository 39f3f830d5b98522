//! `/metrics`: what the tenant's agents report, as Prometheus reads it (text format 0.0.4).

use super::caller::Operator;
use super::clusters::{is_online, summary};
use super::problem::Problem;
use crate::app::{Shared, http};
use crate::process::clock::{SECOND_MS, now_ms};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;
use std::fmt::Write;

/// Clusters that one answer holds.
const MAX_CLUSTERS: i64 = 100_000;

/// Seconds of a day.
const DAY_S: f64 = 86_400.0;

/// Name, type and help of each metric, in the order in which they are shown.
const METRICS: [(&str, &str, &str); 12] = [
    ("navin_agent_online", "gauge", "1 where the cluster's agent was heard within 90 s."),
    ("navin_commands", "gauge", "Commands of the cluster by their status."),
    ("navin_receipts_total", "counter", "Receipts that came for commands of the cluster."),
    ("navin_report_age_seconds", "gauge", "Age of the cluster's last report."),
    ("navin_certificate_days_left", "gauge", "Days until the agent's certificate ends."),
    ("navin_agent_executed_total", "counter", "Commands that the leader executed, as it reports."),
    ("navin_agent_refused_total", "counter", "Commands that the leader refused, as it reports, by reason."),
    ("navin_agent_drift_repaired_total", "counter", "Components that the leader restored, as it reports."),
    ("navin_agent_offline_periods_total", "counter", "Times that the leader went offline, as it reports."),
    ("navin_agent_receipts_waiting", "gauge", "Receipts that the leader has still to send, as it reports."),
    ("navin_agent_state_bytes", "gauge", "Size of the agent's state, as it reports."),
    ("navin_agent_clock_offset_seconds", "gauge", "The gateway's clock less the agent's, as it reports."),
];

/// The samples, metric by metric.
#[derive(Default)]
struct Samples([String; METRICS.len()]);

impl Samples {
    fn add(&mut self, name: &str, cluster: &str, label: Option<(&str, &str)>, value: f64) {
        let mut all = METRICS.iter().zip(&mut self.0);
        let Some((_, samples)) = all.find(|(metric, _)| metric.0 == name) else { return };
        let label = label.map_or(String::new(), |(name, text)| format!(",{name}=\"{}\"", escape(text)));
        writeln!(samples, "{name}{{cluster=\"{cluster}\"{label}}} {value}").ok();
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for ((name, kind, help), samples) in METRICS.iter().zip(&self.0) {
            write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}").ok();
        }
        text
    }
}

/// `GET /metrics`
pub(crate) async fn show(
    State(app): State<Shared>,
    Extension(operator): Extension<Operator>,
) -> Result<Response, Problem> {
    let mut samples = Samples::default();
    let now = now_ms();
    for cluster in app.store.clusters(operator.tenant(), None, MAX_CLUSTERS).await? {
        let id = &cluster.cluster_id;
        samples.add("navin_agent_online", id, None, if is_online(cluster.contact_at) { 1.0 } else { 0.0 });
        if let Some(at) = cluster.report_at {
            samples.add("navin_report_age_seconds", id, None, seconds(now.saturating_sub(at).max(0)));
        }
        if let Some(ends) = cluster.identity_not_after {
            samples.add("navin_certificate_days_left", id, None, seconds(ends.saturating_sub(now)) / DAY_S);
        }
        reported(&mut samples, id, &summary(&cluster));
    }
    for count in app.store.commands_by_status(operator.tenant()).await? {
        samples.add(
            "navin_commands",
            &count.cluster_id,
            Some(("status", &count.status)),
            number(count.count),
        );
    }
    for count in app.store.receipts_by_cluster(operator.tenant()).await? {
        samples.add("navin_receipts_total", &count.cluster_id, None, number(count.count));
    }
    Ok(http::text(StatusCode::OK, samples.text(), "text/plain; version=0.0.4; charset=utf-8"))
}

/// What is in the report itself. What is not there, or not a number, is left out.
fn reported(samples: &mut Samples, cluster: &str, summary: &Value) {
    for (name, pointer, scale) in [
        ("navin_agent_executed_total", "/counters/executed", 1.0),
        ("navin_agent_drift_repaired_total", "/counters/drift_repaired", 1.0),
        ("navin_agent_offline_periods_total", "/counters/offline_periods", 1.0),
        ("navin_agent_receipts_waiting", "/state/receipts_waiting", 1.0),
        ("navin_agent_state_bytes", "/state/bytes", 1.0),
        ("navin_agent_clock_offset_seconds", "/clock_offset_ms", 0.001),
    ] {
        if let Some(value) = summary.pointer(pointer).and_then(Value::as_f64) {
            samples.add(name, cluster, None, value * scale);
        }
    }
    for (reason, count) in
        summary.pointer("/counters/refused").and_then(Value::as_object).into_iter().flatten()
    {
        if let Some(count) = count.as_f64() {
            samples.add("navin_agent_refused_total", cluster, Some(("reason", reason)), count);
        }
    }
}

/// A label's value as the format wants it.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(ms: i64) -> f64 {
    number(ms) / number(SECOND_MS)
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "counts and times are far below 2^52")]
fn number(count: i64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_cannot_write_lines_of_its_own() {
        let mut samples = Samples::default();
        let summary = json!({ "counters": { "executed": "7", "refused": { "a\"} 1\nnavin_x{\\": 2 } } });
        reported(&mut samples, "prod", &summary);
        let text = samples.text();
        assert!(text.contains(r#"navin_agent_refused_total{cluster="prod",reason="a\"} 1\nnavin_x{\\"} 2"#));
        assert!(!text.contains("navin_agent_executed_total{"));
    }
}
