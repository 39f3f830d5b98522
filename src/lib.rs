//! The Navin cluster agent, in reading order.
pub mod rules;
