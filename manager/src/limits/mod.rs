//! How much is let in: of those who have not called yet ([`newcomers`]), of each of the [`callers`], and of what they
//! send ([`room`]). Imports no other room; the rooms that take connections and calls may import it.

pub(crate) mod callers;
pub(crate) mod newcomers;
pub(crate) mod room;
