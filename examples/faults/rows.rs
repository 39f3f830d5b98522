//! What a row of the table is: what goes wrong, at which peer, and what is asked of the agent.

use crate::certs::Flaw;
use navin_test_support::{Door, Fate, Raw, Server};
use std::time::Duration;

/// What goes wrong.
#[derive(Clone)]
pub(crate) enum Fault {
    /// This becomes of new connections, and those that are open break, or fall silent where new ones do.
    Door(Door),
    /// A connection over which nothing went for so long falls silent; new ones work.
    Forgets(Duration),
    /// Every call is answered so, and the server never sees it.
    Answers(fn(u64) -> Fate),
    /// Every call about the Lease is answered so, and no other.
    Lease(fn(u64) -> Fate),
    /// Every answer of the server is bent so.
    Bent(fn(&[u8]) -> Raw),
    Certificate(Flaw),
    /// Its name does not resolve.
    Name(Resolver),
    Token(Token),
    /// SIGSTOP, SIGCONT.
    Stopped,
    /// SIGKILL, and a start when it is over.
    Killed,
    /// The same, and etcd has forgotten every former version meanwhile.
    Compacted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// Nobody listens where names are asked for.
    Refuses,
    /// Somebody does, and never answers.
    Silent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// Another one every two seconds; the former is refused from then on.
    Rotated,
    Empty,
    /// Lines and control characters.
    Odd,
    Missing,
    /// A file larger than any token.
    Huge,
    /// One that the API server does not know.
    Unknown,
}

/// What is asked of the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All is done while it lasts, as if there was nothing.
    Undisturbed,
    /// All is done within this time after it.
    Within(Duration),
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) fault: Fault,
    pub(crate) peer: Server,
    /// The leader alone is hit, and the other replica is to lead before it is over.
    pub(crate) alone: bool,
    pub(crate) asked: Asked,
}

impl Row {
    /// Least time that it is held, where the knob says less.
    pub(crate) fn least_hold(&self) -> Duration {
        match self.fault {
            Fault::Forgets(idle) => idle + Duration::from_secs(4),
            _ => Duration::ZERO,
        }
    }

    /// Whether a peer can be reached past the proxies while it lasts.
    pub(crate) fn reaches(&self, peer: Server) -> bool {
        self.peer != peer || !matches!(self.fault, Fault::Stopped | Fault::Killed | Fault::Compacted)
    }

    /// Whether it is certain that no call is made.
    pub(crate) fn says_no_connection(&self) -> bool {
        match &self.fault {
            Fault::Door(door) => *door == Door::Closed,
            // musl asks a resolver that refuses again for longer than a call to the API server may take.
            Fault::Name(resolver) => *resolver == Resolver::Refuses && self.peer == Server::Gateway,
            Fault::Certificate(_) => true,
            _ => false,
        }
    }

    /// Whether the whole control plane is hit: it needs one of its own.
    pub(crate) fn needs_own_cluster(&self) -> bool {
        self.peer == Server::Api && matches!(self.fault, Fault::Stopped | Fault::Killed | Fault::Compacted)
    }
}
