//! One page of a list as it comes over the wire: each object is decoded by itself, from its own bytes, as soon
//! as it is there. Neither the page is ever held, nor anything of an object that is not wanted.

use super::Decode;
use crate::rules::json::fault;
use serde::Deserialize;
use std::io::{self, BufRead};

/// Why a page could not be read.
pub(super) enum PageError {
    /// No more of it came.
    Io(io::Error),
    /// It is not a list, or an object is not of the kind.
    Json(String),
}

/// `metadata` of a list.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) r#continue: Option<String>,
    pub(super) resource_version: Option<String>,
}

/// The page, with [`PLACE`] for each object.
#[derive(Deserialize)]
struct Shell {
    #[serde(default)]
    metadata: Option<Metadata>,
    // A server writes null for an empty slice (Go's nil).
    #[serde(default)]
    items: Option<Vec<u8>>,
}

/// What stands in the shell where an object was: no object of Kubernetes'.
const PLACE: u8 = b'0';

/// Reads a page to its end, and adds its objects to `items`.
pub(super) fn read<T>(
    mut source: impl BufRead,
    decode: Decode<'_, T>,
    items: &mut Vec<T>,
) -> Result<Metadata, PageError> {
    let (mut cursor, mut shell, mut object) = (Cursor::default(), Vec::new(), Vec::new());
    let mut read = 0_usize;
    loop {
        let bytes = source.fill_buf().map_err(PageError::Io)?;
        if bytes.is_empty() {
            break;
        }
        let was_inside = cursor.inside;
        let (taken, edge) = cursor.run(bytes);
        let part = bytes.get(..taken).unwrap_or_default();
        if was_inside { &mut object } else { &mut shell }.extend_from_slice(part);
        match edge {
            Edge::None => {}
            Edge::Array => cursor.listing = are_items(&shell),
            Edge::Begin => shell.push(PLACE),
            Edge::End => {
                items.push(decode(&object).map_err(|e| not_json(&e))?);
                object.clear();
                read = read.saturating_add(1);
            }
        }
        source.consume(taken);
    }
    if !shell.trim_ascii_start().starts_with(b"{") {
        return Err(PageError::Json("not a list".to_owned()));
    }
    let shell: Shell = serde_json::from_slice(&shell).map_err(|e| not_json(&e))?;
    let places = shell.items.unwrap_or_default();
    if places.len() != read || places.iter().any(|place| *place != 0) {
        return Err(PageError::Json("an item that is no object".to_owned()));
    }
    Ok(shell.metadata.unwrap_or_default())
}

/// What a run of bytes ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    None,
    /// The beginning of an array that is a member of the page.
    Array,
    /// The next byte is an object's first.
    Begin,
    /// An object's last.
    End,
}

#[derive(Clone, Copy, Default)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

/// Where in the page we are. It tells texts from brackets, and leaves all else to the reader of JSON.
#[derive(Default)]
struct Cursor {
    /// How many objects and arrays are open.
    depth: usize,
    text: Text,
    /// In `items`; in an object of it.
    listing: bool,
    inside: bool,
}

impl Cursor {
    /// Goes on to the next edge, or to the end of `bytes`: how many bytes that are.
    fn run(&mut self, bytes: &[u8]) -> (usize, Edge) {
        let mut rest = bytes.iter();
        while let Some(byte) = rest.next() {
            match self.text {
                Text::Escaped => self.text = Text::Inside,
                Text::Inside => {
                    // Most of a page is text.
                    let special = |byte: &&u8| matches!(byte, b'"' | b'\\');
                    self.text = match Some(byte).filter(special).or_else(|| rest.find(special)) {
                        Some(b'"') => Text::Outside,
                        Some(_) => Text::Escaped,
                        None => Text::Inside,
                    };
                }
                Text::Outside => {
                    if let Some((edge, taken)) = self.outside(*byte) {
                        let left = rest.as_slice().len().saturating_add(usize::from(!taken));
                        return (bytes.len().saturating_sub(left), edge);
                    }
                }
            }
        }
        (bytes.len(), Edge::None)
    }

    /// A byte that is in no text: an edge, and whether it comes after the byte.
    fn outside(&mut self, byte: u8) -> Option<(Edge, bool)> {
        match byte {
            b'"' => self.text = Text::Inside,
            b'{' | b'[' if self.listing && !self.inside => {
                self.inside = true;
                return Some((Edge::Begin, false));
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                if byte == b'[' && self.depth == 2 {
                    return Some((Edge::Array, true));
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.inside && self.depth == 2 {
                    self.inside = false;
                    return Some((Edge::End, true));
                }
                self.listing &= self.depth >= 2;
            }
            _ => {}
        }
        None
    }
}

fn not_json(error: &serde_json::Error) -> PageError {
    PageError::Json(fault(error))
}

/// Whether what is before the array's beginning, and that, are those of `items`.
fn are_items(shell: &[u8]) -> bool {
    let name = shell.strip_suffix(b"[").and_then(|text| text.trim_ascii_end().strip_suffix(b":"));
    name.is_some_and(|text| text.trim_ascii_end().ends_with(b"\"items\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::io::BufReader;

    /// Read in pieces of so many bytes: the objects and the continue token, or none where it is no page.
    fn page(text: &str, piece: usize) -> Option<(Vec<Value>, Option<String>)> {
        let mut items = Vec::new();
        let metadata = read(
            BufReader::with_capacity(piece, text.as_bytes()),
            &|object| serde_json::from_slice(object),
            &mut items,
        )
        .ok()?;
        Some((items, metadata.r#continue))
    }

    #[test]
    fn objects_come_as_they_are_wherever_the_page_is_cut() {
        let objects = [
            r#"{"metadata":{"name":"a"},"x":[[],{}]}"#,
            "{}",
            r#"{"t":"\\\"]}[{\\","items":[{"items":[{}]}]}"#,
            " { \"n\" : \"ä\\u005d\" } ",
        ];
        let wanted: Vec<Value> = objects.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let list = objects.join(" , ");
        for text in [
            format!(r#"{{"kind":"List","metadata":{{"continue":"c"}},"items":[{list}]}}"#),
            format!(
                "{{ \"items\" : [ {list} ]\n, \"metadata\" : {{ \"continue\" : \"c\", \"x\": [[{{}}]] }} }}\n"
            ),
            format!(
                r#"{{"before":[1,[{{}}]],"items":[{list}],"after":[{{}},"]"],"metadata":{{"continue":"c"}}}}"#
            ),
        ] {
            for piece in [1, 2, 3, 7, 64, 4_096] {
                assert_eq!(
                    page(&text, piece),
                    Some((wanted.clone(), Some("c".to_owned()))),
                    "{piece}: {text}"
                );
            }
        }
    }

    #[test]
    fn a_page_may_hold_nothing() {
        for text in ["{}", r#"{"items":null}"#, r#"{"items":[]}"#, r#"{"metadata":null,"items":[ ]}"#] {
            assert_eq!(page(text, 3), Some((vec![], None)), "{text}");
        }
    }

    #[test]
    fn what_is_no_page_or_cut_short_is_refused_and_not_shown_as_less() {
        for text in [
            "",
            "[]",
            "[[{}]]",
            "]",
            r#"{"items":[{}"#,
            r#"{"items":[{}]"#,
            r#"{"items":[{}]}}"#,
            r#"{"items":[{},]}"#,
            r#"{"items":[{}{}]}"#,
            r#"{"items":[{}],"items":[{}]}"#,
            r#"{"items":[{]}"#,
            r#"{"items":[{"a}]}"#,
            r#"{"items":[0]}"#,
            r#"{"items":[1,{}]}"#,
            r#"{"items":[null]}"#,
            r#"{"items":["a"]}"#,
            r#"{"items":{"a":{}}}"#,
            r#"{"items":7}"#,
        ] {
            for piece in [1, 4_096] {
                assert_eq!(page(text, piece), None, "{text}");
            }
        }
    }
}
