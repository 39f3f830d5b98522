//! The real program, on a free port and a folder of its own, over real TLS.

mod delivery;
mod identities;
mod kubeconfig;
mod openapi;
mod operator;
mod process;
mod receipts;
mod rest;
mod support;
