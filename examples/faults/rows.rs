//! The rows of the table: what goes wrong, at which peer, and what is asked of the agent.

use crate::answers;
use crate::certs::{Flaw, half_a_hello, hello_of_tls_1_1};
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
    /// It belongs to the quick table.
    pub(crate) short: bool,
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

    /// Whether the whole control plane is hit: it needs one of its own.
    pub(crate) fn needs_own_cluster(&self) -> bool {
        self.peer == Server::Api && matches!(self.fault, Fault::Stopped | Fault::Killed | Fault::Compacted)
    }
}

/// The longest pause between two tries (CONTRACT section 4), and a command's second delivery after it.
const BACKOFF: Duration = Duration::from_secs(30 + 15);
/// The longest call of the gateway that gets no answer, and then the same.
const SILENCE: Duration = Duration::from_secs(30 + 30 + 15);
/// The longest `Retry-After` that is honoured, and then the same.
const TOLD: Duration = Duration::from_secs(60 + 15);
/// A term of the Lease, a takeover, and a second delivery.
const TAKEOVER: Duration = Duration::from_secs(3 + 3 + 15);
/// The minute that the Lease is left to others by one that the API server refuses, and then the same.
const RESIGNED: Duration = Duration::from_secs(60 + 21);
/// The silence after which a pooled connection is not used any more is 15 s.
const FORGETS: Duration = Duration::from_secs(16);

/// All rows, those that take long first.
pub(crate) fn all() -> Vec<Row> {
    use Fault::{Answers, Bent, Certificate, Door as At, Forgets, Killed, Name, Stopped};
    let no_pause = Duration::ZERO;
    let both: Vec<(&'static str, Fault, Duration, Duration, bool)> = vec![
        ("429, Retry-After absurd", Answers(answers::busy_absurd), TAKEOVER, TOLD, false),
        ("503, Retry-After absurd", Answers(answers::down_absurd), TAKEOVER, TOLD, false),
        ("403", Answers(answers::forbidden), RESIGNED, BACKOFF, false),
        ("409", Answers(answers::conflict), RESIGNED, BACKOFF, false),
        ("410", Answers(answers::gone), RESIGNED, BACKOFF, false),
        ("black hole", At(Door::Silent), TAKEOVER, SILENCE, true),
        ("a byte a second", Bent(answers::slow), TAKEOVER, SILENCE, false),
        ("connection refused", At(Door::Closed), TAKEOVER, BACKOFF, true),
        ("reset", At(Door::Reset), TAKEOVER, BACKOFF, false),
        (
            "handshake stalls",
            At(Door::Says(half_a_hello(), Duration::from_secs(1))),
            TAKEOVER,
            BACKOFF,
            false,
        ),
        ("TLS 1.1", At(Door::Says(hello_of_tls_1_1(), no_pause)), TAKEOVER, BACKOFF, false),
        (
            "no TLS",
            At(Door::Says(b"HTTP/1.1 400 Bad Request\r\n\r\n".into(), no_pause)),
            TAKEOVER,
            BACKOFF,
            false,
        ),
        ("body cut short", Bent(answers::cut), TAKEOVER, BACKOFF, true),
        ("Content-Length too small", Bent(answers::understated), TAKEOVER, BACKOFF, false),
        ("200 with HTML", Answers(answers::page), TAKEOVER, BACKOFF, true),
        ("body of a gigabyte", Answers(answers::huge), TAKEOVER, BACKOFF, true),
        ("head without an end", Answers(answers::endless_head), TAKEOVER, BACKOFF, false),
        ("done, and no answer", Bent(answers::lost), TAKEOVER, BACKOFF, false),
        ("every answer twice", Bent(answers::twice), TAKEOVER, BACKOFF, false),
        ("redirect", Answers(answers::redirect), TAKEOVER, BACKOFF, false),
        ("401", Answers(answers::unauthorized), TAKEOVER, BACKOFF, false),
        ("404", Answers(answers::not_found), RESIGNED, BACKOFF, true),
        ("429, Retry-After in seconds", Answers(answers::busy_seconds), TAKEOVER, BACKOFF, false),
        ("429, Retry-After as a date", Answers(answers::busy_date), TAKEOVER, BACKOFF, false),
        ("503, Retry-After in seconds", Answers(answers::down_seconds), TAKEOVER, BACKOFF, false),
        ("503, Retry-After as a date", Answers(answers::down_date), TAKEOVER, BACKOFF, true),
        ("5xx, pages and nothing", Answers(answers::broken), TAKEOVER, BACKOFF, false),
        ("name does not resolve", Name(Resolver::Refuses), TAKEOVER, BACKOFF, false),
        ("resolver silent", Name(Resolver::Silent), TAKEOVER, BACKOFF, true),
        ("stopped (SIGSTOP)", Stopped, TAKEOVER, SILENCE, false),
        ("killed, started again", Killed, TAKEOVER, BACKOFF, false),
        ("certificate expired", Certificate(Flaw::Expired), TAKEOVER, BACKOFF, true),
        ("certificate not yet valid", Certificate(Flaw::NotYetValid), TAKEOVER, BACKOFF, false),
        ("certificate of another name", Certificate(Flaw::OtherName), TAKEOVER, BACKOFF, false),
        ("certificate of another CA", Certificate(Flaw::OtherIssuer), TAKEOVER, BACKOFF, false),
        ("certificate of a public CA", Certificate(Flaw::PublicIssuer), TAKEOVER, BACKOFF, false),
    ];
    let mut rows = Vec::new();
    for (name, fault, api, gateway, short) in both {
        for (peer, within) in [(Server::Api, api), (Server::Gateway, gateway)] {
            let asked = Asked::Within(within);
            rows.push(Row { name, fault: fault.clone(), peer, alone: false, asked, short });
        }
    }
    for peer in [Server::Api, Server::Gateway] {
        let (name, asked) = ("idle connections forgotten", Asked::Undisturbed);
        rows.push(Row { name, fault: Forgets(FORGETS), peer, alone: false, asked, short: false });
    }
    for (name, bend) in [
        ("103 before the answer", answers::hinted as fn(&[u8]) -> Raw),
        ("closed after each answer", answers::closing),
    ] {
        for peer in [Server::Api, Server::Gateway] {
            rows.push(Row {
                name,
                fault: Bent(bend),
                peer,
                alone: false,
                asked: Asked::Undisturbed,
                short: false,
            });
        }
    }
    let asked = Asked::Within(TAKEOVER);
    let name = "killed, etcd compacted";
    rows.push(Row { name, fault: Fault::Compacted, peer: Server::Api, alone: false, asked, short: false });
    for (name, token, asked) in [
        ("token rotated every 2 s", Token::Rotated, Asked::Undisturbed),
        ("token file empty", Token::Empty, Asked::Undisturbed),
        ("token file odd", Token::Odd, Asked::Undisturbed),
        ("token file missing", Token::Missing, Asked::Undisturbed),
        ("token file of a megabyte", Token::Huge, Asked::Undisturbed),
        ("token unknown", Token::Unknown, Asked::Within(TAKEOVER)),
    ] {
        let short = token == Token::Rotated;
        rows.push(Row { name, fault: Fault::Token(token), peer: Server::Api, alone: false, asked, short });
    }
    for (name, fault, short) in [
        ("leader alone: black hole", At(Door::Silent), true),
        ("leader alone: refused", At(Door::Closed), false),
        ("leader alone: 503", Answers(answers::down_seconds), false),
        ("leader alone: certificate", Certificate(Flaw::Expired), false),
    ] {
        rows.push(Row { name, fault, peer: Server::Api, alone: true, asked: Asked::Within(TAKEOVER), short });
    }
    rows
}
