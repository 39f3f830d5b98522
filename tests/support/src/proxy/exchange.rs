//! One request to the server and its answer, for an agent that may be gone meanwhile.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use super::message::{Message, Source};

/// How long the server may take to answer: longer than the longest poll.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);
/// How long a watch may take: longer than any server lets it.
const STREAM_LIMIT: Duration = Duration::from_mins(15);

pub(super) type ToAgent = StreamOwned<ServerConnection, TcpStream>;
pub(super) type ToServer = StreamOwned<ClientConnection, TcpStream>;

/// Sends a request and reads its answer; an impatient one breaks off when the agent is gone.
pub(super) fn exchange(
    server: &mut ToServer,
    request: &[u8],
    agent: &TcpStream,
    patient: bool,
) -> io::Result<Message> {
    server.sock.set_nonblocking(false)?;
    server.write_all(request)?;
    server.flush()?;
    server.sock.set_nonblocking(true)?;
    let until = Instant::now() + ANSWER_LIMIT;
    let source = &mut FromServer { server, agent: (!patient).then_some(agent), until };
    Message::read(source)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Passes on what the server sends, as it comes, until either of the two ends. `begun` is told the status
/// line before anything is passed on, and says whether it is; `alive` is told how long nothing was passed on,
/// and says whether what comes now still is.
pub(super) fn stream(
    server: &mut ToServer,
    request: &[u8],
    agent: &mut ToAgent,
    begun: impl FnOnce(&str) -> bool,
    alive: impl Fn(Duration) -> bool,
) -> io::Result<()> {
    server.sock.set_nonblocking(false)?;
    server.write_all(request)?;
    server.flush()?;
    server.sock.set_nonblocking(true)?;
    let socket = agent.sock.try_clone()?;
    let source = &mut FromServer { server, agent: Some(&socket), until: Instant::now() + STREAM_LIMIT };
    let mut piece = Vec::new();
    while !piece.contains(&b'\n') {
        if source.more(&mut piece)? == 0 {
            return Ok(());
        }
    }
    if !begun(&String::from_utf8_lossy(&piece)) {
        return Ok(());
    }
    let mut last = Instant::now();
    loop {
        if !alive(last.elapsed()) {
            return Ok(());
        }
        agent.write_all(&piece)?;
        agent.flush()?;
        piece.clear();
        last = Instant::now();
        if source.more(&mut piece)? == 0 {
            return Ok(());
        }
    }
}

/// What the agent sends.
impl Source for ToAgent {
    fn more(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let mut piece = [0; 16 * 1024];
        let read = self.read(&mut piece)?;
        buffer.extend_from_slice(&piece[..read]);
        Ok(read)
    }
}

struct FromServer<'s> {
    server: &'s mut ToServer,
    agent: Option<&'s TcpStream>,
    until: Instant,
}

impl Source for FromServer<'_> {
    fn more(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let mut piece = [0; 16 * 1024];
        loop {
            match self.server.read(&mut piece) {
                Ok(read) => {
                    buffer.extend_from_slice(&piece[..read]);
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                Err(error) => return Err(error),
            }
        }
    }
}

impl FromServer<'_> {
    /// Until the server has sent something. An agent that waits for an answer sends nothing: what can be
    /// read from it is its end.
    fn wait(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut sockets = vec![PollFd::new(&self.server.sock, PollFlags::IN)];
        sockets.extend(self.agent.map(|agent| PollFd::new(agent, PollFlags::IN)));
        let ready = match poll(&mut sockets, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            other => other?,
        };
        if ready == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match sockets.get(1) {
            Some(agent) if !agent.revents().is_empty() => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }
}
