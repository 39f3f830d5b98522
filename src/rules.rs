//! Decisions. No I/O, no clock, no thread, no log: values in, values out.
//!
//! In reading order: [`json`], [`names`] and [`form`] say what is well-formed, [`messages`] and [`config`]
//! are the contract's types, [`envelope`] is the one place where trust begins, [`state`] is what must outlive the
//! leader, [`verdict`] says whether a command may run; [`kubernetes`] and [`component`] say what an object means,
//! [`execution`] what to do next about an accepted command, [`upkeep`] about a component that stands; [`link`],
//! [`election`], [`health`], [`backoff`], [`pace`], [`said`] and [`certificate`] decide on times that the caller
//! brings; [`inbox`] says which files of the break-glass folder are commands, [`report`] what of a report has room,
//! [`notices`] how often people are told.

pub mod backoff;
pub mod certificate;
pub mod component;
pub mod config;
pub mod election;
pub mod envelope;
pub mod execution;
pub mod form;
pub mod health;
pub mod inbox;
pub mod json;
pub mod kubernetes;
pub mod link;
pub mod messages;
pub mod names;
pub mod notices;
pub mod pace;
pub mod report;
pub mod said;
pub mod state;
pub mod upkeep;
#[cfg(test)]
pub(crate) mod vectors;
pub mod verdict;
