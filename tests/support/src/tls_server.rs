//! An HTTPS server of a test's own, for answers that neither the API server nor the manager would give.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::proxy::message::Message;
use crate::proxy::tls::server_config;

/// Bytes of a body that are sent at once.
const CHUNK: usize = 64 * 1024;

/// How long a client may say nothing on an open connection.
const SILENT: Duration = Duration::from_mins(1);

/// A request that came.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The bearer token that it carries.
    pub bearer: Option<String>,
    /// Whether the client has shown a certificate.
    pub certified: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// The server, on a free port of loopback; it ends with this value.
#[derive(Debug)]
pub struct TlsServer {
    port: u16,
    closed: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
}

impl TlsServer {
    /// Answers each request with a status and a body of JSON; where there is no answer, the connection breaks.
    pub fn start(
        config: ServerConfig,
        answer: impl Fn(&Request) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let closed = Arc::new(AtomicBool::new(false));
        let (config, answer, ours) = (Arc::new(config), Arc::new(answer), Arc::clone(&closed));
        let sent = Arc::new(AtomicUsize::new(0));
        let all_sent = Arc::clone(&sent);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if ours.load(Ordering::Relaxed) {
                    return;
                }
                let (config, answer, sent) =
                    (Arc::clone(&config), Arc::clone(&answer), Arc::clone(&all_sent));
                // A connection that breaks is for the client to notice.
                thread::spawn(move || drop(serve(socket, config, &*answer, &sent)));
            }
        });
        Self { port, closed, sent }
    }

    /// The same with a certificate and its key from files, for clients that show none.
    pub fn with_files(
        certificate: &Path,
        key: &Path,
        answer: impl Fn(&Request) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        Self::start(server_config(certificate, key), answer)
    }

    /// How many bytes of bodies its clients took, or as good as.
    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts; it ends where nobody can connect any more either.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn serve(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    answer: &dyn Fn(&Request) -> Option<(u16, String)>,
    sent: &AtomicUsize,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SILENT))?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, socket);
    while let Some(message) = Message::read(&mut stream)? {
        let mut words = message.first_line.split(' ').map(str::to_owned);
        let request = Request {
            method: words.next().unwrap_or_default(),
            path: words.next().unwrap_or_default(),
            bearer: message.bearer(),
            certified: stream.conn.peer_certificates().is_some_and(|chain| !chain.is_empty()),
            body: message.body,
        };
        let Some((status, body)) = answer(&request) else { return Ok(()) };
        let now = Timestamp::now();
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now).map_err(io::Error::other)?;
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} X\r\nDate: {date}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        )?;
        for chunk in body.as_bytes().chunks(CHUNK) {
            stream.write_all(chunk)?;
            sent.fetch_add(chunk.len(), Ordering::Relaxed);
        }
        stream.flush()?;
    }
    Ok(())
}
