//! Scenarios on a real kube-apiserver, the real manager and the real agent.
//!
//! [`lab`], [`inbox_lab`] and [`doctor_lab`] are what the scenarios share; [`signer`] and [`gateway`] play the manager where
//! the real one would never do what a scenario needs; [`wired`] and [`cable`] are put between, where single
//! calls or the network are to be broken; [`mount`] is a folder as the kubelet makes one. The rest is one theme a module.

mod cable;
mod doctor_lab;
mod gateway;
mod inbox_lab;
mod lab;
mod mount;
mod signer;
mod webhook;
mod wired;

mod canary;
mod certificate;
mod components;
mod crash;
mod doctor;
mod drift;
mod drift_faults;
mod durability;
mod election;
mod ending;
mod events;
mod health;
mod inbox;
mod inbox_folder;
mod inventory;
mod lifecycle;
mod lists;
mod network;
mod offline;
mod one_leader;
mod other_writers;
mod overload;
mod pid_one;
mod receipts;
mod refusals;
mod report;
mod rights;
mod rotation;
mod schema;
mod state;
mod token;
