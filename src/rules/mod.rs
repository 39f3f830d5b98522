//! Decisions. No I/O, no clock, no thread, no log: values in, values out.
//!
//! In reading order: [`json`], [`names`] and [`form`] say what is well-formed, [`messages`] and
//! [`config`] are the contract's types, [`envelope`] is the one place where trust begins.

pub mod config;
pub mod envelope;
pub mod form;
pub mod json;
pub mod messages;
pub mod names;
#[cfg(test)]
mod vectors;
