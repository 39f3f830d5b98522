//! The manager's keys and certificates, the files of `--tls-dir`: made at the first start, used again ever after.
//!
//! `serve` has all of them. A gateway alone reads `ca.crt`, `server.crt` and `server.key`, whatever else is
//! there, and writes nothing: who breaks into it can make no identity and sign no command.
//!
//! A key without its certificate is a first start that was cut short, and is completed. A
//! certificate without its key is a loss, and refused: agents trust what would be replaced.
//!
//! [`authority`] certifies, [`server`] is what it certified for the ports, [`signing`] signs; [`secrets`] are both keys
//! together, with which [`issue`] makes commands and identities. Imports the [`store`](crate::store), where these are
//! kept, and [`process`](crate::process); [`app`](crate::app), the ports, the REST API and the command line may import
//! it.

pub(crate) mod authority;
pub(crate) mod issue;
pub(crate) mod secrets;
pub(crate) mod server;
pub(crate) mod signing;
