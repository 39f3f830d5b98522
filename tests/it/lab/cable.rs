//! The network between the agent and a server, to be cut: bytes are carried, and nothing of them is known.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The way to a server; it ends with the process.
pub(crate) struct Cable {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: SocketAddr,
    cut: AtomicBool,
    /// After how long of silence a connection is forgotten.
    memory: Option<Duration>,
    connections: Mutex<Vec<TcpStream>>,
}

impl Cable {
    /// In front of `https://127.0.0.1:<port>`.
    pub(crate) fn start(url: &str) -> Self {
        Self::with_memory(url, None)
    }

    /// The same, but it forgets each connection that is silent for as long: from then on nothing of it arrives
    /// any more, and neither end is told. New ones are taken.
    pub(crate) fn forgetful(url: &str, memory: Duration) -> Self {
        Self::with_memory(url, Some(memory))
    }

    fn with_memory(url: &str, memory: Option<Duration>) -> Self {
        let target = url.trim_start_matches("https://").parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let shared =
            Arc::new(Shared { target, cut: AtomicBool::new(false), memory, connections: Mutex::new(vec![]) });
        let ours = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                // One that breaks is its ends' to notice.
                drop(ours.join(&connection));
            }
        });
        Self { port, shared }
    }

    /// `https://127.0.0.1:<port>`.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// From now on nothing arrives any more, as where a firewall drops every packet: connections stay open,
    /// and new ones are taken in by nobody.
    pub(crate) fn cut(&self) {
        self.shared.cut.store(true, Ordering::SeqCst);
    }

    /// The network is back; the connections of before are not.
    pub(crate) fn mend(&self) {
        self.shared.cut.store(false, Ordering::SeqCst);
        let mut connections = self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in connections.drain(..) {
            drop(connection.shutdown(Shutdown::Both));
        }
    }
}

impl Shared {
    fn join(self: &Arc<Self>, near: &TcpStream) -> io::Result<()> {
        let far = TcpStream::connect(self.target)?;
        let used = Arc::new(Mutex::new(Some(Instant::now())));
        for (from, to) in [(near, &far), (&far, near)] {
            let (mut from, mut to, shared) = (from.try_clone()?, to.try_clone()?, Arc::clone(self));
            let used = Arc::clone(&used);
            thread::spawn(move || drop(shared.carry(&mut from, &mut to, &used)));
        }
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.extend([near.try_clone()?, far]);
        Ok(())
    }

    /// Whether a connection that was last used then is still known; if so, it was used now.
    fn remembers(&self, used: &Mutex<Option<Instant>>) -> bool {
        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = *used else { return false };
        let known = self.memory.is_none_or(|memory| last.elapsed() <= memory);
        *used = known.then(Instant::now);
        known
    }

    fn carry(
        &self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        used: &Mutex<Option<Instant>>,
    ) -> io::Result<()> {
        use std::io::{Read as _, Write as _};
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = from.read(&mut buffer)?;
            while self.cut.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(20));
            }
            // An end in order is let through: each end of a test is to end.
            if count > 0 && !self.remembers(used) {
                continue;
            }
            if count == 0 {
                return to.shutdown(Shutdown::Write);
            }
            to.write_all(&buffer[..count])?;
        }
    }
}
