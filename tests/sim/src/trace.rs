//! What happened, as a number that two equal runs share, and on request as text.

use crate::chance::mix;
use std::fmt::Write as _;

/// The trace of a run.
#[derive(Default)]
pub struct Trace {
    hash: u64,
    text: Option<String>,
}

impl Trace {
    /// A trace; with `text` it keeps what happened in words.
    #[must_use]
    pub fn new(text: bool) -> Self {
        Self { hash: 0, text: text.then(String::new) }
    }

    /// Notes that something happened: numbers and a text that tell it from everything else, and its words.
    pub fn note(&mut self, now: u64, numbers: &[u64], key: &str, words: impl FnOnce() -> String) {
        let mut hash = mix(self.hash, now);
        for number in numbers {
            hash = mix(hash, *number);
        }
        for chunk in key.as_bytes().chunks(8) {
            hash = mix(hash, chunk.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)));
        }
        self.hash = hash;
        if let Some(text) = &mut self.text {
            let (seconds, micros) = (now / 1_000_000, now % 1_000_000);
            let _infallible = writeln!(text, "{seconds:>5}.{micros:06}  {}", words());
        }
    }

    /// The number.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The words.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("")
    }

    /// Whether words are kept.
    #[must_use]
    pub fn speaks(&self) -> bool {
        self.text.is_some()
    }
}
