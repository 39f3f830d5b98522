//! Seeded mutations of texts: the same seed gives the same ones.

use fastrand::Rng;

/// What the formats of the contract, of Kubernetes, of PEM and of HTTP turn on.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"null",
    b"true",
    b"-0",
    b"0",
    b"1e400",
    b"1E+2",
    b"9007199254740992",
    b"-9007199254740991",
    b"18446744073709551615",
    b"0.1",
    b"\\u0000",
    b"\\ud800",
    b"\\ud83d\\ude00",
    b"\\u001A",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xf0\x9f\x98\x80",
    b"\0",
    b"\n",
    b"\r\n",
    b" ",
    b"\"a\":1,",
    b"\n%%\n",
    b"410\n\n",
    b"$serde_json::private::RawValue",
    b"$serde_json::private::Number",
    b"\"continue\":\"a\"",
    b"\"status\":{}",
    b"-----BEGIN ",
    b"-----END ",
    b"-----",
    b"CERTIFICATE",
    b"PRIVATE KEY",
    b"\x30\x82",
    b"\x18\x0f",
    b"\x80",
    b"date: Mon, 30 Nov 2026 12:00:00 GMT\n",
    b"retry-after: 99999999999999999999\n",
    b"2026-11-30T12:00:00Z",
    b"-9999-01-01T00:00:00Z",
    b"https://[::1]:65535",
    b"@",
    b"#",
    b"?",
    b"..",
    b".receipt.json",
];

/// Makes texts of others.
pub struct Mutator {
    chance: Rng,
    pool: Vec<Vec<u8>>,
    longest: usize,
}

impl Mutator {
    /// One that begins with these texts, and makes none longer than `longest` bytes.
    #[must_use]
    pub fn new(seed: u64, pool: Vec<Vec<u8>>, longest: usize) -> Self {
        Self { chance: Rng::with_seed(seed), pool, longest }
    }

    /// One more text: one of the pool with one to four changes.
    pub fn text(&mut self) -> Vec<u8> {
        let mut text = self.pick();
        for _ in 0..self.chance.usize(1..=4) {
            self.change(&mut text);
        }
        text.truncate(self.longest);
        text
    }

    fn pick(&mut self) -> Vec<u8> {
        self.chance.choice(&self.pool).cloned().unwrap_or_default()
    }

    fn change(&mut self, text: &mut Vec<u8>) {
        let at = self.chance.usize(0..=text.len());
        let until = self.chance.usize(at..=text.len().min(at + 64));
        match self.chance.u8(0..8) {
            0 if at < text.len() => text[at] ^= 1 << self.chance.u8(0..8),
            1 if at < text.len() => text[at] = self.chance.u8(..),
            2 => drop(text.drain(at..until)),
            3 => {
                let again = text[at..until].to_vec();
                text.splice(at..at, again);
            }
            4 => {
                let other = self.pick();
                let from = self.chance.usize(0..=other.len());
                let to = self.chance.usize(from..=other.len());
                text.splice(at..until, other[from..to].iter().copied());
            }
            5 => text.truncate(at),
            _ => {
                let token = self.chance.choice(TOKENS).copied().unwrap_or_default();
                // In place of something as long, or between two bytes.
                let until = if self.chance.bool() { text.len().min(at + token.len()) } else { at };
                text.splice(at..until, token.iter().copied());
            }
        }
    }
}
