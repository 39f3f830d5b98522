//! What goes over one connection of the agent, and over the one behind it.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use super::call::{Call, Raw, Reply};
use super::door::fall_silent;
use super::exchange::{ToAgent, ToServer, exchange, stream};
use super::message::Message;
use super::wire::Verdict;
use super::{Inner, lock};

/// How long the server may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long either side may take to take in what is sent.
const SEND_LIMIT: Duration = Duration::from_secs(30);

/// Serves one connection to its end.
pub(super) fn serve(inner: &Inner, connection: u64, socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(SEND_LIMIT))?;
    let shown = Arc::clone(&lock(&inner.shown));
    let session = ServerConnection::new(shown).map_err(io::Error::other)?;
    let mut agent = StreamOwned::new(session, socket);
    let mut server = None;
    let mut last = Instant::now();
    while let Some(request) = Message::read(&mut agent)? {
        if inner.is_silent(connection, last.elapsed()) {
            return fall_silent(inner, &agent.sock);
        }
        let mut words = request.first_line.split(' ').map(str::to_owned);
        let call = inner.wire.called(Call {
            number: 0,
            agent: inner.agent.clone(),
            server: inner.server,
            method: words.next().unwrap_or_default(),
            path: words.next().unwrap_or_default(),
            bearer: request.bearer(),
            body: request.body.into(),
            at: Instant::now(),
        });
        let number = call.number;
        match inner.wire.judge(&call, None, &inner.closed) {
            Verdict::Pass | Verdict::Bent(_) => {}
            Verdict::Cut => return Ok(()),
            Verdict::Answer { status, kind, retry_after, body } => {
                let answer = own_answer(status, kind, retry_after.as_deref(), &body);
                give(inner, &mut agent, number, &answer)?;
                continue;
            }
            Verdict::Raw(raw) => {
                write_raw(&mut agent, &raw)?;
                if raw.keep {
                    continue;
                }
                return Ok(());
            }
        }
        let server = match &mut server {
            Some(server) => server,
            None => server.insert(connect(inner, connection)?),
        };
        inner.wire.note(number, |exchange| exchange.forwarded = Some(Instant::now()));
        if call.path.contains("watch=") {
            let socket = agent.sock.try_clone()?;
            let begun = |first_line: &str| {
                let reply = Reply { status: status(first_line), body: Arc::from([]), at: Instant::now() };
                inner.wire.replied(number, &reply);
                let verdict = inner.wire.judge(&call, Some(&reply), &inner.closed);
                matches!(verdict, Verdict::Pass | Verdict::Bent(_))
            };
            let alive = |idle| {
                let silent = inner.is_silent(connection, idle);
                !silent || fall_silent(inner, &socket).is_err()
            };
            return stream(server, &request.raw, &mut agent, begun, alive);
        }
        // Whoever waits for something to happen goes away when the agent does; a write is seen through.
        let patient = call.method != "GET";
        let answer = exchange(server, &request.raw, &agent.sock, patient)?;
        let reply =
            Reply { status: status(&answer.first_line), body: answer.body.into(), at: Instant::now() };
        inner.wire.replied(number, &reply);
        match inner.wire.judge(&call, Some(&reply), &inner.closed) {
            _ if inner.is_silent(connection, Duration::ZERO) => return fall_silent(inner, &agent.sock),
            Verdict::Pass => give(inner, &mut agent, number, &answer.raw)?,
            Verdict::Cut => return Ok(()),
            Verdict::Answer { status, kind, retry_after, body } => {
                let answer = own_answer(status, kind, retry_after.as_deref(), &body);
                give(inner, &mut agent, number, &answer)?;
            }
            bytes @ (Verdict::Raw(_) | Verdict::Bent(_)) => {
                let raw = match bytes {
                    Verdict::Bent(bend) => bend(&answer.raw),
                    Verdict::Raw(raw) => raw,
                    _ => Raw::default(),
                };
                write_raw(&mut agent, &raw)?;
                if !raw.keep {
                    return Ok(());
                }
            }
        }
        last = Instant::now();
    }
    Ok(())
}

/// Sends bytes at their pace.
fn write_raw(agent: &mut ToAgent, raw: &Raw) -> io::Result<()> {
    const PIECE: usize = 64 * 1024;
    if raw.pause.is_zero() {
        agent.write_all(&raw.bytes)?;
    }
    for byte in raw.bytes.iter().filter(|_| !raw.pause.is_zero()) {
        agent.write_all(&[*byte])?;
        agent.flush()?;
        thread::sleep(raw.pause);
    }
    let mut left = raw.spaces;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        agent.write_all(&vec![b' '; piece])?;
        left -= piece as u64;
    }
    agent.flush()
}

fn status(first_line: &str) -> u16 {
    first_line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn give(inner: &Inner, agent: &mut ToAgent, number: usize, answer: &[u8]) -> io::Result<()> {
    agent.write_all(answer)?;
    agent.flush()?;
    inner.wire.note(number, |exchange| exchange.given = true);
    Ok(())
}

fn own_answer(status: u16, kind: &str, retry_after: Option<&str>, body: &str) -> Vec<u8> {
    let retry = retry_after.map_or_else(String::new, |when| format!("Retry-After: {when}\r\n"));
    format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: {kind}\r\n{retry}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn connect(inner: &Inner, connection: u64) -> io::Result<ToServer> {
    let socket = TcpStream::connect_timeout(&inner.address, CONNECT_LIMIT)?;
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(SEND_LIMIT))?;
    inner.register(connection, &socket)?;
    let name = ServerName::IpAddress(inner.address.ip().into());
    let behind = Arc::clone(&lock(&inner.behind));
    let session = ClientConnection::new(behind, name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(session, socket))
}
