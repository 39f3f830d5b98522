//! One thing that was looked at.

use serde::Serialize;
use std::fmt;

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// As it should be.
    Ok,
    /// It works, and will not for long, or not for everything.
    Warning,
    /// Something is to be done.
    Wrong,
    /// Not to be looked at, since something before it is wrong.
    Unknown,
}

/// What was found, and what is to be done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What was looked at.
    pub(crate) name: &'static str,
    /// How it stands.
    pub(crate) status: Status,
    /// One line.
    pub(crate) message: String,
    /// What to do, where there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<&'static str>,
}

impl Finding {
    fn new(name: &'static str, status: Status, message: &str, advice: Option<&'static str>) -> Self {
        // Foreign words stay on their line.
        let message = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { name, status, message, advice }
    }

    pub(super) fn ok(name: &'static str, message: impl AsRef<str>) -> Self {
        Self::new(name, Status::Ok, message.as_ref(), None)
    }

    pub(super) fn warning(name: &'static str, message: impl AsRef<str>, advice: &'static str) -> Self {
        Self::new(name, Status::Warning, message.as_ref(), Some(advice))
    }

    pub(super) fn wrong(name: &'static str, message: impl AsRef<str>, advice: &'static str) -> Self {
        Self::new(name, Status::Wrong, message.as_ref(), Some(advice))
    }

    pub(super) fn unknown(name: &'static str, message: impl AsRef<str>) -> Self {
        Self::new(name, Status::Unknown, message.as_ref(), None)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Warning => "WARNING",
            Status::Wrong => "WRONG",
            Status::Unknown => "unknown",
        };
        write!(f, "{status:<8}{}: {}", self.name, self.message)?;
        self.advice.map_or(Ok(()), |advice| write!(f, " -> {advice}"))
    }
}
