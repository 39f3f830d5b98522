//! What holds on a file and on a server alike. [`support`] and [`calls`] are what the tests share, [`walk`] and
//! [`openapi`] hold each call against its description; the rest is one theme a module.

pub(crate) mod calls;
mod delivery;
mod hostile;
mod identities;
mod openapi;
mod operator;
mod process;
mod receipts;
mod rest;
pub(crate) mod support;
mod walk;
