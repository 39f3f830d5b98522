//! What is printed: tables for people, documents for programs.

use super::cli::Form;
use super::trouble::Trouble;
use serde_json::Value;
use std::io::Write;

/// A column: its heading, and where its text is in a row's document.
pub(crate) type Column = (&'static str, &'static str);

/// Widest text of a cell, in characters.
const MAX_CELL: usize = 60;

/// Columns of clusters.
pub(super) const CLUSTERS: [Column; 7] = [
    ("NAME", "/cluster_id"),
    ("NAMESPACE", "/namespace"),
    ("ONLINE", "/agent/online"),
    ("LEADER", "/agent/leader"),
    ("AGENT", "/agent/version"),
    ("LAST REPORT", "/agent/last_report_at"),
    ("CERTIFICATE ENDS", "/certificate_not_after"),
];

/// Columns of a cluster's components.
pub(super) const COMPONENTS: [Column; 5] = [
    ("COMPONENT", "/name"),
    ("SEQUENCE", "/sequence"),
    ("IN SYNC", "/in_sync"),
    ("REASON", "/reason"),
    ("GENERATION", "/generation"),
];

/// Columns of commands.
pub(super) const COMMANDS: [Column; 9] = [
    ("COMMAND", "/command_id"),
    ("SEQUENCE", "/sequence"),
    ("OPERATION", "/operation"),
    ("COMPONENT", "/name"),
    ("STATUS", "/status"),
    ("REASON", "/receipt/reason"),
    ("CREATED", "/created_at"),
    ("ANSWERED", "/receipt_at"),
    ("MESSAGE", "/receipt/message"),
];

/// Columns of tokens.
pub(crate) const TOKENS: [Column; 4] = [
    ("TOKEN", "/token_id"),
    ("TENANT", "/tenant_id"),
    ("CREATED", "/created_at"),
    ("REVOKED", "/revoked_at"),
];

/// Columns of the audit.
pub(super) const AUDIT: [Column; 8] = [
    ("AT", "/at"),
    ("TIMES", "/times"),
    ("CLUSTER", "/cluster_id"),
    ("ACTOR", "/actor"),
    ("ACTION", "/action"),
    ("OUTCOME", "/outcome"),
    ("SUBJECT", "/subject"),
    ("DETAIL", "/detail"),
];

/// Prints a document, or its rows as a table.
pub(crate) fn print(form: Form, document: &Value, rows: &[Value], columns: &[Column]) -> Result<(), Trouble> {
    match form {
        Form::Table => text(&table(rows, columns)),
        Form::Json | Form::Yaml => whole(form, document),
    }
}

/// Prints a document as it is; where a table is asked for, as YAML.
pub(super) fn whole(form: Form, document: &Value) -> Result<(), Trouble> {
    match form {
        Form::Json => text(&format!("{document:#}\n")),
        Form::Table | Form::Yaml => {
            let yaml = serde_saphyr::to_string(document);
            text(&yaml.map_err(|error| Trouble::Output(std::io::Error::other(error.to_string())))?)
        }
    }
}

/// Prints a text.
pub(super) fn text(text: &str) -> Result<(), Trouble> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Trouble::Output)
}

/// Tells how it goes, on standard error; where that is gone there is nobody to tell.
pub(super) fn tell(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Rows below their headings, as wide as they need to be.
pub(super) fn table(rows: &[Value], columns: &[Column]) -> String {
    let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|column| column.0.to_owned()).collect()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|column| cell(row.pointer(column.1))).collect()));
    let width =
        |at: usize| lines.iter().filter_map(|line| Some(line.get(at)?.chars().count())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let padded: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.extend([padded.join("  ").trim_end(), "\n"]);
    }
    text
}

/// A value in one line. What it holds may be foreign: no control character reaches the terminal.
fn cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(other) => other.to_string(),
    };
    let mut shown: String =
        text.chars().take(MAX_CELL).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().count() > MAX_CELL {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_is_aligned_and_holds_no_control_character() {
        let rows = [json!({ "a": "x", "b": true }), json!({ "a": "\u{1b}[2Jlong", "b": null })];
        let text = table(&rows, &[("A", "/a"), ("BB", "/b")]);
        assert_eq!(text, "A         BB\nx         yes\n\u{fffd}[2Jlong  -\n");
    }
}
