//! A component's spec out of a file, as kubectl would read it.

use super::trouble::Trouble;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::UserMessageFormatter;
use std::io::Read;
use std::path::Path;

/// Largest file that is read, in bytes: more would never fit into an envelope.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads a file, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<String, Trouble> {
    let wrong = |why: &dyn std::fmt::Display| Trouble::Usage(format!("{}: {why}", path.display()));
    let mut bytes = Vec::new();
    let limit = MAX_BYTES.saturating_add(1);
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(|error| wrong(&error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(wrong(&"larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| wrong(&"not UTF-8"))
}

/// The spec of a component in the text of a file: the document itself, or the `spec` of a ManagedComponent of that name.
pub(super) fn parse(path: &Path, text: &str, name: &str) -> Result<Map<String, Value>, Trouble> {
    let wrong = |why: String| Trouble::Usage(format!("{}: {why}", path.display()));
    // Like kubectl: yes and on are true, 0640 is octal, no member twice, one document.
    let mut options = serde_saphyr::Options::default();
    options.strict_booleans = false;
    options.legacy_octal_numbers = true;
    // One line for people, and nothing of the spec in it.
    options.with_snippet = false;
    let Finite(document) = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| wrong(error.render_with_formatter(&UserMessageFormatter)))?;
    let Value::Object(mut members) = document else {
        return Err(wrong("expected a mapping".to_owned()));
    };
    let kind = members.get("kind").and_then(Value::as_str);
    if kind.is_none() || !members.contains_key("apiVersion") {
        return Ok(members);
    }
    if let Some(kind) = kind.filter(|kind| *kind != "ManagedComponent") {
        let expected = "expected a spec alone, or a ManagedComponent with it";
        return Err(wrong(format!("kind: {kind}: {expected}")));
    }
    if members.get("apiVersion").and_then(Value::as_str) != Some("platform.navin.ai/v1") {
        return Err(wrong("apiVersion: expected platform.navin.ai/v1".to_owned()));
    }
    let named = members.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    if named.is_some_and(|named| named != name) {
        return Err(wrong(format!("metadata.name: expected {name}")));
    }
    match members.remove("spec") {
        Some(Value::Object(spec)) => Ok(spec),
        Some(_) | None => Err(wrong("expected spec, a mapping".to_owned())),
    }
}

/// A document as JSON has it. YAML's .inf and .nan, which serde_json would turn into null, are refused.
struct Finite(Value);

struct FiniteVisitor;

impl<'de> Deserialize<'de> for Finite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FiniteVisitor)
    }
}

impl<'de> Visitor<'de> for FiniteVisitor {
    type Value = Finite;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("what JSON can hold")
    }

    fn visit_unit<E>(self) -> Result<Finite, E> {
        Ok(Finite(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Finite, E> {
        Ok(Finite(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Finite, E> {
        Ok(Finite(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Finite, E> {
        Ok(Finite(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Finite, E> {
        match serde_json::Number::from_f64(value) {
            Some(number) => Ok(Finite(number.into())),
            None => Err(E::custom("a number that JSON has not: .inf or .nan")),
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Finite, E> {
        Ok(Finite(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Finite, A::Error> {
        let mut array = Vec::new();
        while let Some(Finite(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Finite(array.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Finite, A::Error> {
        let mut object = Map::new();
        while let Some((name, Finite(value))) = members.next_entry::<String, Finite>()? {
            object.insert(name, value);
        }
        Ok(Finite(object.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: Option<&Value>) {
        let found = parse(Path::new("-"), text, "web").map(Value::Object);
        assert_eq!(found.as_ref().ok(), expected, "{text}: {found:?}");
    }

    #[test]
    fn what_is_wrong_is_told_in_one_line_with_its_place() {
        for (text, place) in [
            ("a: 1\na: 2", "f.yaml: duplicate mapping key `a` is not allowed here at line 2, column 1"),
            ("a: [}", "at line 1, column 4"),
            ("b: 1\na: *x", "at line 2, column 4"),
        ] {
            let Err(Trouble::Usage(told)) = parse(Path::new("f.yaml"), text, "web") else {
                panic!("taken: {text}")
            };
            assert!(told.starts_with("f.yaml: ") && told.ends_with(place) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn a_spec_is_read_as_kubectl_reads_it() {
        check("{\"a\": 1.5}", Some(&json!({ "a": 1.5 })));
        check(
            "a: yes\nb: \"yes\"\nc: off\nd: ~\ne: 0640\nf: 1e3\ng: 1.10\nh: '010'",
            Some(&json!({
            "a": true, "b": "yes", "c": false, "d": null, "e": 416, "f": 1000.0, "g": 1.1, "h": "010" })),
        );
        check(
            "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n",
            Some(&json!({ "a": { "b": 1 }, "c": { "b": 1 }, "d": { "b": 1 } })),
        );
        check("text: |\n  two\n  lines\n1: one\n", Some(&json!({ "text": "two\nlines\n", "1": "one" })));
        check("kind: Something\nname: x", Some(&json!({ "kind": "Something", "name": "x" })));
    }

    #[test]
    fn a_whole_object_gives_its_spec() {
        let object = |version: &str, name: &str, spec: &str| {
            format!("apiVersion: {version}\nkind: ManagedComponent\nmetadata: {{name: {name}}}\n{spec}\n")
        };
        check(&object("platform.navin.ai/v1", "web", "spec: {a: 1}"), Some(&json!({ "a": 1 })));
        for wrong in [
            ("v1", "web", "spec: {}"),
            ("platform.navin.ai/v1", "db", "spec: {}"),
            ("platform.navin.ai/v1", "web", "spec: []"),
            ("platform.navin.ai/v1", "web", ""),
        ] {
            check(&object(wrong.0, wrong.1, wrong.2), None);
        }
    }

    #[test]
    fn what_is_no_one_mapping_is_refused() {
        for text in [
            "",
            "[]",
            "a",
            "a: 1\na: 2",
            "a: 1\n---\nb: 2",
            "a: [",
            "a: *x",
            "\t- a",
            "a: .nan",
            "a: [-.inf]",
        ] {
            check(text, None);
        }
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for n in 1..12 {
            bomb.extend([format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","))]);
        }
        check(&bomb, None);
    }
}
