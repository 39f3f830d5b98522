//! Scenarios on a real kube-apiserver, the real manager and the real agent.
//!
//! [`lab`] is what the scenarios share; [`signer`] and [`gateway`] play the manager where the real one
//! would never do what a scenario needs. The rest is one theme a module.

mod gateway;
mod lab;
mod signer;

mod components;
mod drift;
mod inventory;
mod lifecycle;
mod receipts;
mod refusals;
mod rights;
mod schema;
mod state;
