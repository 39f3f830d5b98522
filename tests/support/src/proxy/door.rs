//! What becomes of a new connection, and of one that falls silent.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::serve::serve;
use super::{Inner, lock};
use crate::wait::until;

/// Most connections at once; an agent has about eight.
const CONNECTIONS: usize = 128;
/// How long a client may take to say hello before it is reset.
const HELLO: Duration = Duration::from_secs(5);
/// Between two looks of a connection that is silent.
const LOOK: Duration = Duration::from_millis(50);
/// Longest that the port may be another's before it is ours again.
const REOPEN: Duration = Duration::from_secs(10);

/// What becomes of a new connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// It is served.
    #[default]
    Open,
    /// It is refused: nobody listens.
    Closed,
    /// It is taken in, and reset as soon as the client has said hello.
    Reset,
    /// It is taken in, and nothing is ever said.
    Silent,
    /// Once the client has said hello it is told this, with a pause after each byte, and nothing more.
    Says(Vec<u8>, Duration),
}

/// Sets the door; when this returns, the listener is as the door wants it.
pub(super) fn set(inner: &Inner, port: u16, door: Door) {
    let refuses = door == Door::Closed;
    *lock(&inner.door) = door;
    let knock = || TcpStream::connect(("127.0.0.1", port));
    if refuses {
        // Each knock wakes the thread that accepts, which then sees the door.
        until("the port to be closed", REOPEN, || knock().is_err().then_some(()));
    } else {
        until("the port to be open", REOPEN, || knock().ok());
    }
}

/// The thread: takes connections in until the proxy ends.
pub(super) fn accept(mut listener: TcpListener, inner: &Arc<Inner>) {
    let Ok(address) = listener.local_addr() else { return };
    loop {
        let accepted = listener.accept();
        if inner.closed() {
            return;
        }
        let door = lock(&inner.door).clone();
        if door == Door::Closed {
            drop((accepted, listener));
            match reopen(address.port(), inner) {
                Some(opened) => listener = opened,
                None => return,
            }
            continue;
        }
        let Ok((socket, _)) = accepted else { return };
        let number = inner.accepted.fetch_add(1, Ordering::SeqCst);
        if inner.open().len() >= CONNECTIONS || inner.register(number, &socket).is_err() {
            continue;
        }
        let inner = Arc::clone(inner);
        thread::spawn(move || {
            // A connection that breaks is for the agent to notice.
            drop(enter(&inner, number, socket, &door));
            inner.open().remove(&number);
        });
    }
}

/// Listens again when the door is open again; none where the proxy ends.
fn reopen(port: u16, inner: &Inner) -> Option<TcpListener> {
    loop {
        if inner.closed() {
            return None;
        }
        if *lock(&inner.door) != Door::Closed {
            return Some(until("the proxy's port", REOPEN, || TcpListener::bind(("127.0.0.1", port)).ok()));
        }
        thread::sleep(LOOK);
    }
}

fn enter(inner: &Inner, number: u64, mut socket: TcpStream, door: &Door) -> io::Result<()> {
    let hello = |socket: &TcpStream| {
        socket.set_read_timeout(Some(HELLO))?;
        socket.peek(&mut [0])
    };
    match door {
        Door::Open => serve(inner, number, socket),
        // What is closed with something unread is reset.
        Door::Closed | Door::Reset => hello(&socket).map(drop),
        Door::Silent => fall_silent(inner, &socket),
        Door::Says(what, pause) => {
            hello(&socket)?;
            for byte in what {
                socket.write_all(&[*byte])?;
                thread::sleep(*pause);
            }
            fall_silent(inner, &socket)
        }
    }
}

/// Does nothing until the client has given up, or the proxy ends.
pub(super) fn fall_silent(inner: &Inner, socket: &TcpStream) -> io::Result<()> {
    let look = Timespec::try_from(LOOK).map_err(io::Error::other)?;
    while !inner.closed() {
        let mut sockets = [PollFd::new(socket, PollFlags::RDHUP)];
        match poll(&mut sockets, Some(&look)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
