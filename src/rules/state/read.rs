//! A state from its text. What cannot be read is as good as lost; what is of another version is not.

use super::{STATE_LIMIT, STATE_VERSION, State};
use crate::rules::json::fault;
use serde::Deserialize;
use std::fmt;

/// Why a state cannot be read. CONTRACT section 6, `state_lost`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateError {
    /// Not a state, and where that shows: as good as lost.
    Unreadable(String),
    /// Of a version that we do not know: not lost, and not ours to lead with.
    OfVersion(u64),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "not a state: {why}"),
            Self::OfVersion(version) => write!(f, "of version {version}; this agent knows {STATE_VERSION}"),
        }
    }
}

impl State {
    /// Reads `state.json`.
    ///
    /// # Errors
    /// Unreadable, which is as good as lost, or of another version, which is not.
    pub fn from_json(text: &str) -> Result<Self, StateError> {
        /// What a state of any version has.
        #[derive(Deserialize)]
        struct Any {
            version: u64,
        }
        if text.len() > STATE_LIMIT {
            return Err(StateError::Unreadable(format!("more than {STATE_LIMIT} bytes")));
        }
        // A derived type would be read from an array, too.
        if !text.trim_start().starts_with('{') {
            return Err(StateError::Unreadable("not an object".to_owned()));
        }
        let unreadable = |error: serde_json::Error| StateError::Unreadable(fault(&error));
        match serde_json::from_str(text).map_err(unreadable)? {
            Any { version: STATE_VERSION } => {}
            Any { version } => return Err(StateError::OfVersion(version)),
        }
        let mut state: Self = serde_json::from_str(text).map_err(unreadable)?;
        state.measure_all();
        Ok(state)
    }
}
