//! What the process has of its system: the [`clock`], [`files`], the signal to [`stop`], and what goes on in the
//! [`background`]; and why it ends ([`failure`]). Imports no other room; any may import it.

pub(crate) mod background;
pub(crate) mod clock;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod stop;
