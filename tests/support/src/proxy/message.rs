//! One HTTP/1.1 message, whole: as it came, to be passed on, and taken apart, to be judged.

use std::io;

/// Largest head and largest body, in bytes; whatever the agent sends or reads is smaller.
const HEAD_LIMIT: usize = 64 * 1024;
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// A request or an answer.
pub(crate) struct Message {
    /// The request line or the status line.
    pub(crate) first_line: String,
    /// The first line and the headers.
    head: String,
    /// The body without its framing.
    pub(crate) body: Vec<u8>,
    /// The whole message as it came.
    pub(crate) raw: Vec<u8>,
}

/// Where the bytes of a message come from: appends at least one byte, or none at the end.
pub(crate) trait Source {
    fn more(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize>;
}

impl Message {
    /// Reads one message; none at the end of the connection. There is no pipelining: what follows a
    /// message before its answer is an error.
    pub(crate) fn read(source: &mut impl Source) -> io::Result<Option<Self>> {
        let mut raw = Vec::new();
        let head_end = loop {
            if let Some(at) = find(&raw, b"\r\n\r\n") {
                break at + 4;
            }
            if raw.len() > HEAD_LIMIT {
                return Err(broken("the head is too long"));
            }
            if source.more(&mut raw)? == 0 {
                return if raw.is_empty() { Ok(None) } else { Err(broken("the head was cut")) };
            }
        };
        let head = String::from_utf8_lossy(&raw[..head_end]).into_owned();
        let mut lines = head.split("\r\n");
        let first_line = lines.next().unwrap_or_default().to_owned();
        let header = |name: &str| header(&head, name);
        let body = if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            chunks(source, &mut raw, head_end)?
        } else {
            let length = match header("content-length") {
                Some(length) => length.parse().map_err(|_| broken("a content-length that is no number"))?,
                None => 0,
            };
            need(source, &mut raw, head_end, length)?;
            raw[head_end..].to_vec()
        };
        Ok(Some(Self { first_line, head, body, raw }))
    }

    /// The bearer token that it carries.
    pub(crate) fn bearer(&self) -> Option<String> {
        self.header("authorization")?.strip_prefix("Bearer ").map(str::to_owned)
    }

    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        header(&self.head, name)
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut found = head.split("\r\n").filter_map(|line| line.split_once(':'));
    found.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

/// Reads until `length` bytes follow `from`, and no more than those.
fn need(source: &mut impl Source, raw: &mut Vec<u8>, from: usize, length: usize) -> io::Result<()> {
    if length > BODY_LIMIT {
        return Err(broken("the body is too long"));
    }
    while raw.len() < from + length {
        if source.more(raw)? == 0 {
            return Err(broken("the body was cut"));
        }
    }
    if raw.len() == from + length { Ok(()) } else { Err(broken("something follows the message")) }
}

/// A chunked body (RFC 9112 section 7.1), without trailers.
fn chunks(source: &mut impl Source, raw: &mut Vec<u8>, head_end: usize) -> io::Result<Vec<u8>> {
    let (mut body, mut at) = (Vec::new(), head_end);
    loop {
        let line_end = loop {
            if let Some(end) = find(&raw[at..], b"\r\n") {
                break at + end;
            }
            if source.more(raw)? == 0 {
                return Err(broken("a chunk was cut"));
            }
        };
        let size = std::str::from_utf8(&raw[at..line_end]).unwrap_or_default();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
            .map_err(|_| broken("a chunk without a size"))?;
        if body.len() + size > BODY_LIMIT {
            return Err(broken("the body is too long"));
        }
        let (start, end) = (line_end + 2, line_end + 2 + size);
        while raw.len() < end + 2 {
            if source.more(raw)? == 0 {
                return Err(broken("a chunk was cut"));
            }
        }
        body.extend_from_slice(&raw[start..end]);
        at = end + 2;
        if size == 0 {
            return if raw.len() == at { Ok(body) } else { Err(broken("something follows the message")) };
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a text in pieces of a few bytes.
    struct Pieces<'t>(&'t [u8]);

    impl Source for Pieces<'_> {
        fn more(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
            let (piece, rest) = self.0.split_at(self.0.len().min(3));
            buffer.extend_from_slice(piece);
            self.0 = rest;
            Ok(piece.len())
        }
    }

    fn body(text: &str) -> Result<String, String> {
        let message = Message::read(&mut Pieces(text.as_bytes())).map_err(|error| error.to_string())?;
        let message = message.expect("a message");
        assert_eq!(message.raw, text.as_bytes(), "passed on as it came");
        Ok(String::from_utf8(message.body).expect("text"))
    }

    #[test]
    fn bodies_of_both_framings_are_read_whole() {
        assert_eq!(body("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(String::new()));
        assert_eq!(body("POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello"), Ok("hello".into()));
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
        assert_eq!(body(chunked), Ok("hello".into()));
        assert!(Message::read(&mut Pieces(b"")).expect("no error").is_none());
    }

    #[test]
    fn a_cut_message_is_an_error() {
        assert_eq!(body("POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhell"), Err("the body was cut".into()));
        assert_eq!(body("POST / HT"), Err("the head was cut".into()));
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhe";
        assert_eq!(body(chunked), Err("a chunk was cut".into()));
    }
}
