//! What the gateway answers where all is well (CONTRACT section 4). Of more commands than it may send no more is kept than
//! shows that.

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fmt;

/// Most envelopes in one answer.
pub(super) const POLL_MOST: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Commands {
    /// At most one more than [`POLL_MOST`].
    #[serde(deserialize_with = "few")]
    pub(super) commands: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct Recorded {
    pub(super) recorded: bool,
}

#[derive(Deserialize)]
pub(super) struct ReportAnswer {
    pub(super) inventory: InventoryAnswer,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum InventoryAnswer {
    Kept,
    Needed,
}

fn few<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<Box<RawValue>>, D::Error> {
    struct Few;

    impl<'de> Visitor<'de> for Few {
        type Value = Vec<Box<RawValue>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of commands")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Self::Value, A::Error> {
            let mut few = Vec::new();
            while few.len() <= POLL_MOST
                && let Some(envelope) = source.next_element()?
            {
                few.push(envelope);
            }
            while source.next_element::<IgnoredAny>()?.is_some() {}
            Ok(few)
        }
    }

    source.deserialize_seq(Few)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_millions_of_commands_no_more_are_kept_than_show_that_they_are_too_many() {
        let read = |count: usize| {
            let text = format!("{{\"commands\":[{}]}}", vec!["0"; count].join(","));
            serde_json::from_str::<Commands>(&text).unwrap().commands.len()
        };
        assert_eq!((read(0), read(POLL_MOST), read(1_000_000)), (0, POLL_MOST, POLL_MOST + 1));
    }
}
