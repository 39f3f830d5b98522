//! How much is let in: of those who have not called yet ([`newcomers`]), of each of the [`callers`], and of what they
//! send ([`room`]). Imports no other room; [`app`](crate::app), the ports, the gateway, the
//! REST API and the command line may import it.

pub(crate) mod callers;
pub(crate) mod newcomers;
pub(crate) mod room;
