//! Scenarios on a real kube-apiserver, the real manager and the real agent.
//!
//! [`lab`] is what the scenarios share; each other module is one theme of them.

mod lab;

use lab::{
    cable, doctor as doctor_lab, gateway, inbox as inbox_lab, mount, rights as rights_lab, signer, webhook,
    wired,
};

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
