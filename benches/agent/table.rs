//! What was measured, as rows: printed as a table, and written as JSON.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// Measurements of one thing, in the row's unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    /// The same thing measured several times.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// One figure.
    pub(crate) fn one(value: f64) -> Self {
        Self(vec![value])
    }

    pub(crate) fn median(&self) -> f64 {
        match (self.0.len(), self.0.len() / 2) {
            (0, _) => f64::NAN,
            (count, middle) if count % 2 == 0 => f64::midpoint(self.0[middle - 1], self.0[middle]),
            (_, middle) => self.0[middle],
        }
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    /// The median, and the spread where there is one.
    fn text(&self) -> String {
        if self.0.len() < 2 {
            return short(self.median());
        }
        format!("{} ({}-{})", short(self.median()), short(self.min()), short(self.max()))
    }

    fn json(&self) -> Value {
        json!({ "median": self.median(), "min": self.min(), "max": self.max(), "n": self.0.len() })
    }
}

/// What the agent is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The median.
    AtMost(f64),
    /// The median of a rate.
    AtLeast(f64),
    /// Each single measurement.
    WorstAtMost(f64),
    /// The median, as a multiple of the bare limit's.
    TimesLimit(f64),
}

impl Goal {
    fn met(self, row: &Row) -> bool {
        match self {
            Self::AtMost(most) => row.ours.median() <= most,
            Self::AtLeast(least) => row.ours.median() >= least,
            Self::WorstAtMost(most) => row.ours.max() <= most,
            Self::TimesLimit(most) => row.times_limit().is_some_and(|times| times <= most),
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {}", short(most)),
            Self::AtLeast(least) => format!("≥ {}", short(least)),
            Self::WorstAtMost(most) => format!("worst ≤ {}", short(most)),
            Self::TimesLimit(most) => format!("≤ {} of limit", short(most)),
        }
    }
}

/// One thing that is measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// What, with its unit.
    pub(crate) what: String,
    pub(crate) ours: Sample,
    /// By the name of the peer.
    pub(crate) peers: Vec<(&'static str, Sample)>,
    /// The bare cost of the same, and what it is.
    pub(crate) limit: Option<(&'static str, Sample)>,
    /// None: the figure is printed, and held to nothing.
    pub(crate) goals: Vec<Goal>,
    /// What others were measured at, where they cannot be run here.
    pub(crate) published: &'static str,
}

impl Row {
    fn times_limit(&self) -> Option<f64> {
        Some(self.ours.median() / self.limit.as_ref()?.1.median())
    }

    /// Against the bare limit, or else against the best peer.
    fn ratio(&self) -> String {
        if let Some(times) = self.times_limit() {
            return format!("{times:.2} of limit");
        }
        let best = self.peers.iter().map(|(_, sample)| sample.median()).fold(f64::INFINITY, f64::min);
        if best.is_finite() {
            format!("{:.2} of best peer", self.ours.median() / best)
        } else {
            String::new()
        }
    }

    pub(crate) fn met(&self) -> Option<bool> {
        (!self.goals.is_empty()).then(|| self.goals.iter().all(|goal| goal.met(self)))
    }

    fn cells(&self) -> [String; 7] {
        let list = |parts: Vec<String>| parts.join("; ");
        [
            self.what.clone(),
            self.ours.text(),
            list(self.peers.iter().map(|(name, sample)| format!("{name} {}", sample.text())).collect()),
            self.limit.as_ref().map_or(String::new(), |(what, sample)| format!("{what} {}", sample.text())),
            self.ratio(),
            list(self.goals.iter().map(|goal| goal.text()).collect()),
            self.met().map_or("", |met| if met { "met" } else { "MISSED" }).to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let peers = self.peers.iter().map(|(name, sample)| ((*name).to_owned(), sample.json()));
        json!({
            "what": self.what,
            "ours": self.ours.json(),
            "peers": peers.collect::<serde_json::Map<_, _>>(),
            "limit": self.limit.as_ref().map(|(what, sample)| json!({ "what": what, "figure": sample.json() })),
            "ratio": self.ratio(),
            "goals": self.goals.iter().map(|goal| goal.text()).collect::<Vec<_>>(),
            "met": self.met(),
            "published": self.published,
        })
    }
}

/// What stands before the figures of those who are not run here.
const PUBLISHED: &str = "
Real agents, measured once, on 2026-11-30, two cores, kube-apiserver 1.36.3: OCM 1.3.1, Karmada 1.17.5, Fleet 0.15.6,
Sveltos 0.51.1 (March 2025), argocd-agent 0.9.0, kured 1.23.0, each built from its public source, static and stripped,
keeping 20 objects where it keeps any; processor time by schedstat, calls by the audit log:
";

const HEAD: [&str; 7] = ["median (min-max)", "ours", "peers", "bare limit", "ratio", "goal", "goal met"];

/// The rows as a Markdown table, then the figures of those who cannot be run here.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let cells: Vec<[String; 7]> =
        [HEAD.map(str::to_owned)].into_iter().chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (number, row) in cells.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            write!(text, "| {cell:<width$} ", width = width(column)).expect("a String");
        }
        text.push_str("|\n");
        if number == 0 {
            text.push_str(&"| --- ".repeat(HEAD.len()));
            text.push_str("|\n");
        }
    }
    let published: Vec<&Row> = rows.iter().filter(|row| !row.published.is_empty()).collect();
    if !published.is_empty() {
        text.push_str(PUBLISHED);
    }
    for row in published {
        writeln!(text, "- {}: {}", row.what, row.published).expect("a String");
    }
    text
}

/// Writes rows and where they come from as JSON.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn write_json(file: &Path, about: &Value, rows: &[Row]) -> io::Result<()> {
    let rows: Vec<Value> = rows.iter().map(Row::json).collect();
    fs::write(file, format!("{:#}\n", json!({ "about": about, "rows": rows })))
}

/// Three digits that count; whole numbers as they are.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 || (large.fract() == 0.0) => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let Some((whole, rest)) = text.split_once('.') else { return grouped(&text) };
    format!("{whole}.{rest}")
}

/// Thousands apart.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (number, digit) in digits.chars().enumerate() {
        if number > 0 && (digits.len() - number).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
