//! The break-glass folder's own rules: which names are commands, which texts are cut off, and what the
//! agent leaves there for `submit`. CONTRACT section 7.

use super::json::{JsonError, MAX_ENVELOPE_BYTES, parse};
use super::names::{format_time, time};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where the agent says who leads.
pub const STATUS_NAME: &str = ".status.json";
/// How often it says so anew.
pub const STATUS_EVERY: Duration = Duration::from_secs(30);
/// At which age that is no longer believed: nothing runs here that would answer.
const STATUS_STALE: SignedDuration = SignedDuration::from_secs(90);

/// Longest name of a file, in bytes (Linux).
const MAX_NAME_BYTES: usize = 255;

/// The name of the answer to a file; `None` where the file is not a command: another ending, an answer
/// itself, a hidden one, or one whose answer would have too long a name.
#[must_use]
pub fn receipt_name(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".json")?;
    let receipt = format!("{stem}.receipt.json");
    let command = !stem.is_empty() && !stem.starts_with('.') && !is_receipt(name);
    (command && receipt.len() <= MAX_NAME_BYTES).then_some(receipt)
}

/// Whether a name is that of an answer.
#[must_use]
pub fn is_receipt(name: &str) -> bool {
    name.ends_with(".receipt.json")
}

/// Whether a text ends before its JSON does, as one that is still being written.
#[must_use]
pub fn is_cut_off(bytes: &[u8]) -> bool {
    parse(bytes, MAX_ENVELOPE_BYTES) == Err(JsonError::CutOff)
}

/// What the agent leaves in the folder for `submit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The pod that wrote it.
    pub replica: String,
    /// Whether that one leads, and so answers what is put into this folder.
    pub leads: bool,
    /// The pod that leads, where one is known to.
    pub leader: Option<String>,
    /// When it was written.
    #[serde(with = "time")]
    pub written_at: Timestamp,
}

impl Status {
    /// What is to be written into the folder.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what was written there; `None` where it is nothing to go by, or too old.
    #[must_use]
    pub fn read(bytes: &[u8], now: Timestamp) -> Option<Self> {
        let status: Self = serde_json::from_slice(bytes).ok()?;
        (now.duration_since(status.written_at).abs() <= STATUS_STALE).then_some(status)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let leader = self.leader.as_deref().unwrap_or("nobody known");
        write!(f, "replica={} leader={leader} at={}", self.replica, format_time(self.written_at))
    }
}

/// The pod in a `holderIdentity`, `<pod name>_<pod uid>`. CONTRACT section 6.
#[must_use]
pub fn pod_of(holder: &str) -> &str {
    holder.rsplit_once('_').map_or(holder, |(pod, _)| pod)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_in_json_is_no_receipt_is_not_hidden_and_can_be_answered() {
        let longest = "n".repeat(255 - ".receipt.json".len());
        for (name, receipt) in [
            ("a.json", Some("a.receipt.json")),
            ("a.b.json", Some("a.b.receipt.json")),
            ("ä b.json", Some("ä b.receipt.json")),
            ("receipt.json", Some("receipt.receipt.json")),
            ("a.receipt.json", None),
            ("a.receipt.receipt.json", None),
            (".json", None),
            (".a.json", None),
            ("..data", None),
            ("a.JSON", None),
            ("a.json.tmp", None),
            ("json", None),
            ("", None),
            (&format!("{longest}.json"), Some(&format!("{longest}.receipt.json") as &str)),
            (&format!("{longest}n.json"), None),
        ] {
            assert_eq!(receipt_name(name).as_deref(), receipt, "{name}");
        }
    }

    #[test]
    fn a_text_is_cut_off_where_more_of_it_could_make_it_json() {
        for cut in ["", " ", "{", "{\"a\": [1, 2", "{\"a\": \"te", "[1,", "tru", "[-", "[1.", "[1e", "[1e+"] {
            assert!(is_cut_off(cut.as_bytes()), "{cut:?}");
        }
        for whole in ["{}", "{} ", "{}}", "{\"a\": }", "x", "[1]]", "\u{feff}{}"] {
            assert!(!is_cut_off(whole.as_bytes()), "{whole:?}");
        }
        assert!(!is_cut_off(b"\xff{"));
        assert!(is_cut_off(b"\"\xc3"), "amid a character");
        assert!(!is_cut_off(b"{\"a\":1,\"a\":2"), "no more of it makes it one that is taken");
    }

    #[test]
    fn a_status_is_believed_for_90_seconds() {
        let at = |text: &str| super::super::names::parse_time(text).unwrap();
        let written_at = at("2026-11-30T12:00:00Z");
        let status = Status { replica: "a".into(), leads: false, leader: Some("b".into()), written_at };
        let text = status.to_json();
        for (now, believed) in [
            ("2026-11-30T12:00:00Z", true),
            ("2026-11-30T12:01:30Z", true),
            ("2026-11-30T12:01:31Z", false),
            ("2026-11-30T11:58:30Z", true),
            ("2026-11-30T11:58:29Z", false),
        ] {
            assert_eq!(Status::read(text.as_bytes(), at(now)).is_some(), believed, "{now}");
        }
        assert_eq!(Status::read(text.as_bytes(), written_at), Some(status));
        for bad in ["", "{}", "[]", "null", "{\"replica\":1}"] {
            assert_eq!(Status::read(bad.as_bytes(), written_at), None, "{bad}");
        }
    }

    #[test]
    fn the_pod_of_a_holder_is_what_stands_before_its_uid() {
        assert_eq!(pod_of("agent-0_2c9a1b6e-0000"), "agent-0");
        assert_eq!(pod_of("agent-0"), "agent-0");
        assert_eq!(pod_of(""), "");
    }
}
