//! The lines of a watch, each with a limit of the caller's.

use super::{Kube, KubeError};
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

/// A watch that is open.
pub(super) struct Lines {
    body: BufReader<Box<dyn Read + Send>>,
    /// Of a line, in bytes.
    longest: usize,
}

/// Watches `collection` with `query`; the server ends it after `seconds`, and `silence` later it is dead. A line is `longest`
/// at most, in bytes.
pub(super) fn open(
    kube: &Kube,
    collection: &str,
    query: &str,
    seconds: u64,
    silence: Duration,
    longest: usize,
) -> Result<Lines, KubeError> {
    let path = format!("{collection}?watch=1&timeoutSeconds={seconds}&{query}");
    let response = kube.stream(&path, Duration::from_secs(seconds).saturating_add(silence))?;
    Ok(Lines { body: BufReader::new(response.body), longest })
}

impl Lines {
    /// The next line; none at the stream's orderly end. An error where it broke, or was silent for too long.
    pub(super) fn read(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut line = Vec::new();
        let limit = u64::try_from(self.longest).unwrap_or(u64::MAX);
        (&mut self.body).take(limit).read_until(b'\n', &mut line).map_err(|e| e.to_string())?;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) => Err("a line of the watch was cut".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_cut_by_the_end_or_by_its_limit_is_an_error() {
        const LONGEST: usize = 16;
        let lines = |text: &str| {
            let body = Box::new(std::io::Cursor::new(text.to_owned()));
            Lines { body: BufReader::new(body), longest: LONGEST }
        };
        let mut whole = lines("one\n\ntwo\n");
        for line in ["one\n", "\n", "two\n"] {
            assert_eq!(whole.read(), Ok(Some(line.as_bytes().to_vec())));
        }
        assert_eq!(whole.read(), Ok(None), "the orderly end");
        let mut cut = lines("one\ntw");
        assert!(cut.read().is_ok() && cut.read().is_err());
        let most = format!("{}\n", "x".repeat(LONGEST - 1));
        assert!(lines(&most).read().is_ok());
        assert!(lines(&format!("x{most}")).read().is_err());
    }
}
