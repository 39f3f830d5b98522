//! `--name value`, `--name=value`, and words.

use std::fmt;

/// The arguments that have not been taken yet.
pub(super) struct Arguments(Vec<String>);

/// What is wrong with a command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UsageError {
    MissingValue(&'static str),
    Unexpected(String),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingValue(name) => write!(f, "{name}: expected a value"),
            Self::Unexpected(argument) => write!(f, "unexpected argument {argument:?}"),
        }
    }
}

impl Arguments {
    pub(super) fn new(arguments: impl Iterator<Item = String>) -> Self {
        Self(arguments.collect())
    }

    /// The first argument, whatever it is.
    pub(super) fn word(&mut self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// Whether help is asked for.
    pub(super) fn help(&self) -> bool {
        self.0.iter().any(|argument| argument == "--help" || argument == "-h")
    }

    /// Whether `name`, which has no value, was given.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|argument| argument == name);
        found.is_some_and(|index| self.0.remove(index) == name)
    }

    /// The value of `name`, if it was given.
    pub(super) fn option(&mut self, name: &'static str) -> Result<Option<String>, UsageError> {
        let assigned = |argument: &str| {
            argument.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).map(str::to_owned)
        };
        if let Some(index) = self.0.iter().position(|argument| assigned(argument).is_some()) {
            return Ok(assigned(&self.0.remove(index)));
        }
        let Some(index) = self.0.iter().position(|argument| argument == name) else { return Ok(None) };
        self.0.remove(index);
        if index < self.0.len() {
            Ok(Some(self.0.remove(index)))
        } else {
            Err(UsageError::MissingValue(name))
        }
    }

    /// The value of `name`, or else the default.
    pub(super) fn option_or(&mut self, name: &'static str, default: &str) -> Result<String, UsageError> {
        Ok(self.option(name)?.unwrap_or_else(|| default.to_owned()))
    }

    /// That nothing is left.
    pub(super) fn end(self) -> Result<(), UsageError> {
        self.0.into_iter().next().map_or(Ok(()), |argument| Err(UsageError::Unexpected(argument)))
    }
}
