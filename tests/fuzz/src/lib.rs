//! What must hold for any bytes that reach the agent.
//!
//! Each module has one `check`, which takes bytes and panics where a property does not hold; the module's first
//! lines say which. Two things call them: the targets of `fuzz/`, which libFuzzer steers by coverage, and
//! `tests/seeded.rs`, which runs each over the kept corpus and over seeded mutations of it with every build.
//!
//! In reading order: the checks, then [`answers`] (an API server or a gateway that answers with these bytes),
//! [`keys`] (whom the agent trusts here), [`tree`] (JSON as another reader sees it), [`corpus`] and [`mutate`].

#![expect(
    clippy::missing_panics_doc,
    reason = "a property that does not hold is a panic; it is said once, above"
)]

pub mod answers;
pub mod config;
pub mod corpus;
pub mod envelope;
pub mod gateway;
pub mod inbox;
pub mod json;
pub mod keys;
pub mod kube;
pub mod lease;
pub mod mutate;
pub mod pem;
pub mod state;
pub mod tree;
pub mod watch;

/// One check, by the name of its fuzz target and of its folder in `fuzz/corpus`.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name.
    pub name: &'static str,
    /// Panics where a property does not hold.
    pub check: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 10] = [
    Target { name: "json", check: json::check },
    Target { name: "envelope", check: envelope::check },
    Target { name: "config", check: config::check },
    Target { name: "pem", check: pem::check },
    Target { name: "gateway", check: gateway::check },
    Target { name: "kube", check: kube::check },
    Target { name: "watch", check: watch::check },
    Target { name: "state", check: state::check },
    Target { name: "lease", check: lease::check },
    Target { name: "inbox", check: inbox::check },
];
