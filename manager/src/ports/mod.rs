//! The connections of both ports: taken, secured ([`tls`]), and handed to a router ([`serve`]), as many as there may be
//! [`open_files`] for. Imports [`app`](crate::app) for the peer that each connection has, and the rooms below that; only
//! the command line may import it.

pub(crate) mod open_files;
pub(crate) mod serve;
pub(crate) mod tls;
