//! All that must outlive the process: one database, which several processes may share. `SQLite`, on
//! one machine, or `PostgreSQL`, from many.
//!
//! Every change is one transaction in which what it read is still true when it writes: `SQLite` gives
//! it the one write lock at its beginning, `PostgreSQL` a lock of what it is about ([`Store::change`]).
//! It is on the disk before anything is answered. The statements are those of both databases.
//!
//! A table or two a file; below these, [`change`] makes changes of a [`database`], [`server`] says how one elsewhere is known, [`key`] whose, and [`error`] what
//! failed. Imports [`process`](crate::process) alone; [`keys`](crate::keys), [`app`](crate::app), the gateway, the REST
//! API and the command line may import it.
#![expect(clippy::struct_field_names, reason = "fields are named as the columns are")]

pub(crate) mod audit;
mod change;
pub(crate) mod clusters;
pub(crate) mod commands;
mod contacts;
pub(crate) mod database;
pub(crate) mod delivery;
mod error;
mod gateways;
pub(crate) mod identities;
mod key;
pub(crate) mod life;
pub(crate) mod postgres;
pub(crate) mod receipts;
pub(crate) mod reports;
mod server;
pub(crate) mod tokens;

pub(crate) use change::{Store, commit};
pub(crate) use database::Database;
pub(crate) use error::{StoreError, bounded};
pub(crate) use key::ClusterKey;
