//! The configuration of the agent, signed by the manager. CONTRACT section 3.

use super::envelope::{self, Fault, KeyRing, Verified};
use super::form::{FormError, Members};
use super::json::{MAX_ENVELOPE_BYTES, MAX_NUMBER};
use super::names::{IdentityId, Label, MAX_LABEL};
use jiff::Timestamp;
use serde_json::Value;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The `type` of a configuration's payload. CONTRACT section 3.
pub const CONFIGURATION_TYPE: &str = "navin.agent-config/v1";

const LABEL: &str = "an RFC 1123 label";
const URL: &str = "https://host[:port] and nothing more";

/// Longest host name, in characters (RFC 1035 section 2.3.4, without the final dot).
const MAX_HOST: usize = 253;

/// How long the Lease may be held for, in seconds: a leader acts for two thirds of it without a renewal.
const LEASE_S: RangeInclusive<u64> = 3..=300;
/// How long the Lease is held for where nothing is said, in seconds.
pub const LEASE_DEFAULT: u64 = 15;
/// How long without an answer of the gateway may count as online, in seconds: as long a sensitive command is accepted.
const OFFLINE_S: RangeInclusive<u64> = 5..=86_400;
/// How long without an answer counts as online where nothing is said, in seconds.
pub const OFFLINE_DEFAULT: u64 = 120;
/// How long a poll may wait for a command, in seconds.
const POLL_S: RangeInclusive<u64> = 1..=30;
/// How long a poll may wait where nothing is said, in seconds.
pub const POLL_DEFAULT: u64 = 30;
/// How long it may be from one report to the next, in seconds.
const REPORT_S: RangeInclusive<u64> = 10..=86_400;
/// How long it may be between reports where nothing is said, in seconds.
pub const REPORT_DEFAULT: u64 = 300;
/// How long a command's window may be allowed to be, in seconds.
const VALIDITY_S: RangeInclusive<u64> = 1..=MAX_NUMBER;
/// How long a command's window may be where nothing is said, in seconds: a week.
pub const VALIDITY_DEFAULT: u64 = 604_800;

/// Who this agent is and how it behaves. CONTRACT section 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Whose agent this is.
    pub tenant_id: Label,
    /// Which cluster this is.
    pub cluster_id: Label,
    /// The issued identity.
    pub identity_id: IdentityId,
    /// The manager's gateway.
    pub gateway_url: GatewayUrl,
    /// The managed namespace.
    pub namespace: Label,
    /// Seconds that the Lease is held for.
    pub lease_duration_s: u64,
    /// Seconds without an answer of the gateway after which we are offline.
    pub offline_after_s: u64,
    /// Seconds that a poll waits, before [`Configuration::poll_wait`] bounds it.
    pub poll_wait_s: u64,
    /// Seconds between reports.
    pub report_interval_s: u64,
    /// The longest window that is accepted, in seconds.
    pub max_validity_s: u64,
    /// When it was issued.
    pub issued_at: Timestamp,
}

impl Configuration {
    /// Opens `config.json`.
    ///
    /// # Errors
    /// The first check that failed, which names the member and what was expected.
    pub fn open(bytes: &[u8], ring: &KeyRing) -> Result<Verified<Self>, Fault> {
        let opened = envelope::open(bytes, MAX_ENVELOPE_BYTES, ring, Self::from_payload);
        opened.map_err(|rejected| rejected.fault)
    }

    /// Reads the payload of a configuration.
    fn from_payload(payload: &Value) -> Result<Self, FormError> {
        let mut members = Members::of("payload", payload)?;
        members.constant("payload.type", CONFIGURATION_TYPE)?;
        let configuration = Self {
            tenant_id: members.parsed("payload.tenant_id", Label::parse, LABEL)?,
            cluster_id: members.parsed("payload.cluster_id", Label::parse, LABEL)?,
            identity_id: members.parsed("payload.identity_id", IdentityId::parse, "a UUID")?,
            gateway_url: members.parsed("payload.gateway_url", GatewayUrl::parse, URL)?,
            namespace: members.parsed("payload.namespace", Label::parse, LABEL)?,
            lease_duration_s: members.number("payload.lease_duration_s", Some(LEASE_DEFAULT), &LEASE_S)?,
            offline_after_s: members.number("payload.offline_after_s", Some(OFFLINE_DEFAULT), &OFFLINE_S)?,
            poll_wait_s: members.number("payload.poll_wait_s", Some(POLL_DEFAULT), &POLL_S)?,
            report_interval_s: members.number(
                "payload.report_interval_s",
                Some(REPORT_DEFAULT),
                &REPORT_S,
            )?,
            max_validity_s: members.number("payload.max_validity_s", Some(VALIDITY_DEFAULT), &VALIDITY_S)?,
            issued_at: members.time("payload.issued_at")?,
        };
        members.end()?;
        Ok(configuration)
    }

    /// How long a poll waits: at most a third of `offline_after_s`, at least a second.
    #[must_use]
    pub fn poll_wait(&self) -> Duration {
        Duration::from_secs(self.poll_wait_s.min(self.offline_after_s.div_euclid(3)).max(1))
    }

    /// How long the Lease is held for.
    #[must_use]
    pub fn lease_duration(&self) -> Duration {
        Duration::from_secs(self.lease_duration_s)
    }

    /// How long without an answer makes us offline.
    #[must_use]
    pub fn offline_after(&self) -> Duration {
        Duration::from_secs(self.offline_after_s)
    }

    /// How long between reports.
    #[must_use]
    pub fn report_interval(&self) -> Duration {
        Duration::from_secs(self.report_interval_s)
    }
}

/// `https://host[:port]`: no other scheme, no path, query, fragment or user info. CONTRACT section 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayUrl {
    text: String,
    host: String,
    port: u16,
}

impl GatewayUrl {
    /// The one constructor.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let authority = text.strip_prefix("https://")?;
        let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            (address, port)
        } else {
            let end = authority.find(':').unwrap_or(authority.len());
            let (name, port) = authority.split_at_checked(end)?;
            is_host(name).then_some((name, port))?
        };
        let port = if port.is_empty() { 443 } else { read_port(port.strip_prefix(':')?)? };
        Some(Self { text: text.to_owned(), host: host.to_owned(), port })
    }

    /// The whole URL, which a path can be added to.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host: a name, or an address without brackets. For who holds it against another reader of URLs.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 443 where none is given. For the same.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for GatewayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A DNS name or an IPv4 address in the usual four parts: what ends in a number is one.
fn is_host(text: &str) -> bool {
    let labels = text.split('.').all(|label| {
        (1..=MAX_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    let numeric = text.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    labels && text.len() <= MAX_HOST && (!numeric || text.parse::<Ipv4Addr>().is_ok())
}

/// 1 to 65535 in decimal without leading zeros.
fn read_port(text: &str) -> Option<u16> {
    if text.starts_with('0') || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}
