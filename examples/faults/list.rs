//! The rows themselves.

use crate::answers;
use crate::certs::{Flaw, half_a_hello, hello_of_tls_1_1};
use crate::rows::{Asked, Fault, Resolver, Row, Token};
use navin_test_support::{Door, Raw, Server};
use std::time::Duration;

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

/// The rows of the quick table: one of each kind.
const SHORT: [&str; 11] = [
    "black hole",
    "connection refused",
    "body cut short",
    "200 with HTML",
    "body of a gigabyte",
    "404",
    "503, Retry-After as a date",
    "resolver silent",
    "certificate expired",
    "token rotated every 2 s",
    "leader alone: black hole",
];

/// Whether a row belongs to the quick table.
pub(crate) fn is_short(row: &Row) -> bool {
    SHORT.contains(&row.name)
}

/// All rows, those that take long first.
pub(crate) fn all() -> Vec<Row> {
    [told(), connections(), answered(), undisturbed(), tokens(), alone()].into_iter().flatten().collect()
}

/// The same at either peer, within these times.
fn both(name: &'static str, fault: &Fault, api: Duration, gateway: Duration) -> [Row; 2] {
    [(Server::Api, api), (Server::Gateway, gateway)].map(|(peer, within)| {
        let asked = Asked::Within(within);
        Row { name, fault: fault.clone(), peer, alone: false, asked }
    })
}

/// Answers after which something waits.
fn told() -> Vec<Row> {
    let absurd = [
        ("429, Retry-After absurd", answers::busy_absurd as fn(u64) -> _),
        ("503, Retry-After absurd", answers::down_absurd),
    ];
    let refused = [
        ("403", answers::forbidden as fn(u64) -> _),
        ("404", answers::not_found),
        ("409", answers::conflict),
        ("410", answers::gone),
    ];
    let absurd = absurd.map(|(name, answer)| both(name, &Fault::Answers(answer), TAKEOVER, TOLD));
    let refused = refused.map(|(name, answer)| both(name, &Fault::Answers(answer), RESIGNED, BACKOFF));
    absurd.into_iter().chain(refused).flatten().collect()
}

/// No answer, since there is no connection or no server.
fn connections() -> Vec<Row> {
    let says = |what: &[u8], pause| Fault::Door(Door::Says(what.to_vec(), pause));
    let (pause, none) = (Duration::from_secs(1), Duration::ZERO);
    let silent = [
        ("black hole", Fault::Door(Door::Silent)),
        ("stopped (SIGSTOP)", Fault::Stopped),
        ("a byte a second", Fault::Bent(answers::slow)),
    ];
    let failing = [
        ("killed, started again", Fault::Killed),
        ("connection refused", Fault::Door(Door::Closed)),
        ("reset", Fault::Door(Door::Reset)),
        ("handshake stalls", says(&half_a_hello(), pause)),
        ("TLS 1.1", says(&hello_of_tls_1_1(), none)),
        ("no TLS", says(b"HTTP/1.1 400 Bad Request\r\n\r\n", none)),
        ("name does not resolve", Fault::Name(Resolver::Refuses)),
        ("resolver silent", Fault::Name(Resolver::Silent)),
        ("certificate expired", Fault::Certificate(Flaw::Expired)),
        ("certificate not yet valid", Fault::Certificate(Flaw::NotYetValid)),
        ("certificate of another name", Fault::Certificate(Flaw::OtherName)),
        ("certificate of another CA", Fault::Certificate(Flaw::OtherIssuer)),
        ("certificate of a public CA", Fault::Certificate(Flaw::PublicIssuer)),
    ];
    let silent = silent.into_iter().flat_map(|(name, fault)| both(name, &fault, TAKEOVER, SILENCE));
    let failing = failing.into_iter().flat_map(|(name, fault)| both(name, &fault, TAKEOVER, BACKOFF));
    let [compacted, _] = both("killed, etcd compacted", &Fault::Compacted, TAKEOVER, TAKEOVER);
    silent.chain([compacted]).chain(failing).collect()
}

/// Answers that are none, or not the ones that were wanted.
fn answered() -> Vec<Row> {
    let rows = [
        ("body cut short", Fault::Bent(answers::cut)),
        ("Content-Length too small", Fault::Bent(answers::understated)),
        ("done, and no answer", Fault::Bent(answers::lost)),
        ("every answer twice", Fault::Bent(answers::twice)),
        ("200 with HTML", Fault::Answers(answers::page)),
        ("body of a gigabyte", Fault::Answers(answers::huge)),
        ("head without an end", Fault::Answers(answers::endless_head)),
        ("redirect", Fault::Answers(answers::redirect)),
        ("401", Fault::Answers(answers::unauthorized)),
        ("429, Retry-After in seconds", Fault::Answers(answers::busy_seconds)),
        ("429, Retry-After as a date", Fault::Answers(answers::busy_date)),
        ("503, Retry-After in seconds", Fault::Answers(answers::down_seconds)),
        ("503, Retry-After as a date", Fault::Answers(answers::down_date)),
        ("5xx, pages and nothing", Fault::Answers(answers::broken)),
    ];
    rows.into_iter().flat_map(|(name, fault)| both(name, &fault, TAKEOVER, BACKOFF)).collect()
}

/// What is odd, and no reason for anything to go otherwise.
fn undisturbed() -> Vec<Row> {
    let rows = [
        ("idle connections forgotten", Fault::Forgets(FORGETS)),
        ("103 before the answer", Fault::Bent(answers::hinted as fn(&[u8]) -> Raw)),
        ("closed after each answer", Fault::Bent(answers::closing)),
    ];
    let rows = rows.into_iter().flat_map(|(name, fault)| both(name, &fault, TAKEOVER, TAKEOVER));
    rows.map(|row| Row { asked: Asked::Undisturbed, ..row }).collect()
}

/// The token for the API server.
fn tokens() -> Vec<Row> {
    let rows = [
        ("token rotated every 2 s", Token::Rotated, Asked::Undisturbed),
        ("token file empty", Token::Empty, Asked::Undisturbed),
        ("token file odd", Token::Odd, Asked::Undisturbed),
        ("token file missing", Token::Missing, Asked::Undisturbed),
        ("token file of a megabyte", Token::Huge, Asked::Undisturbed),
        ("token unknown", Token::Unknown, Asked::Within(TAKEOVER)),
    ];
    let row = |(name, token, asked)| {
        let fault = Fault::Token(token);
        Row { name, fault, peer: Server::Api, alone: false, asked }
    };
    rows.map(row).into()
}

/// The leader has no way to the API server, and the other replica has.
fn alone() -> Vec<Row> {
    let rows = [
        ("leader alone: black hole", Fault::Door(Door::Silent)),
        ("leader alone: refused", Fault::Door(Door::Closed)),
        ("leader alone: 503", Fault::Answers(answers::down_seconds)),
        ("leader alone: certificate", Fault::Certificate(Flaw::Expired)),
        ("leader's Lease alone: silence", Fault::Lease(answers::none)),
        ("leader's Lease alone: 503", Fault::Lease(answers::down_seconds)),
        ("leader's Lease alone: 404", Fault::Lease(answers::not_found)),
    ];
    let row = |(name, fault)| {
        let asked = Asked::Within(TAKEOVER);
        Row { name, fault, peer: Server::Api, alone: true, asked }
    };
    rows.map(row).into()
}
