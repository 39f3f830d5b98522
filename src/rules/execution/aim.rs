//! What a command wants of its component.

use serde_json::{Map, Value};

/// What a command wants of its component.
#[derive(Clone, Debug)]
pub enum Aim {
    /// That it stands with this spec.
    Apply(Map<String, Value>),
    /// That it is gone.
    Delete,
}

impl Aim {
    /// Whether a write of it may create the component, and so land late.
    #[must_use]
    pub fn may_create(&self) -> bool {
        match self {
            Self::Apply(_) => true,
            Self::Delete => false,
        }
    }
}
