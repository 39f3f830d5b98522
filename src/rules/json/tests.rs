//! The vectors, and what they do not show.

use super::*;
use crate::rules::vectors;
use serde::Deserialize;
use serde_json::json;

#[test]
fn every_text_of_the_vectors_is_taken_or_refused_as_told() {
    let cases = vectors::load("json.json");
    for case in cases["cases"].as_array().unwrap() {
        let text = vectors::base64(&case["text_b64"]);
        let got = parse(&text, MAX_ENVELOPE_BYTES).ok().map(|value| canonical(&value).into_bytes());
        let wanted = (case["expect"] == "accepted").then(|| vectors::base64(&case["canonical_b64"]));
        assert_eq!(got, wanted, "{}", case["name"]);
    }
}

#[test]
fn every_double_of_the_vectors_is_written_as_ecmascript_does() {
    let cases = vectors::load("numbers.json");
    for case in cases["cases"].as_array().unwrap() {
        let bits = u64::from_str_radix(case[0].as_str().unwrap(), 16).unwrap();
        let text = case[1].as_str().unwrap();
        let number = Number::from_f64(f64::from_bits(bits)).unwrap();
        assert_eq!(canonical(&Value::Number(number)), text);
        assert_eq!(canonical(&parse(text.as_bytes(), 100).unwrap()), text);
    }
}

#[test]
fn doubles_beyond_the_limit_are_written_as_ecmascript_does() {
    for (double, text) in [
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
        (-1.5e300, "-1.5e+300"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-5e-324, "-5e-324"),
    ] {
        assert_eq!(canonical(&json!(double)), text);
    }
    assert_eq!(canonical(&json!(9_007_199_254_740_993_u64)), "9007199254740992");
}

#[test]
fn a_number_in_any_notation_is_the_same_value() {
    let value = parse(b"[100,1.0E+2,100.0,1000e-1,-0,-0.0,0e9,0]", 100).unwrap();
    assert_eq!(value, json!([100, 100, 100, 100, 0, 0, 0, 0]));
}

#[test]
fn magnitudes_above_the_limit_are_refused_in_any_notation() {
    for text in ["9007199254740991", "-9007199254740991", "9007199254740991.0", "9.007199254740991e15"] {
        assert!(parse(text.as_bytes(), 100).is_ok(), "{text}");
    }
    for text in ["9007199254740992", "-9007199254740992", "9007199254740992.0", "9.1e15", "1e16", "-1e300"] {
        assert_eq!(parse(text.as_bytes(), 100), Err(JsonError::NumberTooLarge), "{text}");
        assert!(parse_foreign(text.as_bytes(), 100).is_ok(), "{text}");
    }
}

#[test]
fn depth_is_the_number_of_open_brackets() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(64).as_bytes(), 1000).is_ok());
    assert_eq!(parse(nested(65).as_bytes(), 1000), Err(JsonError::TooDeep));
    assert!(parse_foreign(nested(120).as_bytes(), 1000).is_ok());
    assert_eq!(parse_foreign(nested(121).as_bytes(), 1000), Err(JsonError::TooDeep));
    assert!(parse("[".repeat(200_000).as_bytes(), MAX_ENVELOPE_BYTES).is_err());
}

#[test]
fn duplicates_are_found_at_any_depth_and_through_escapes() {
    for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"\u0061":1}}]"#] {
        assert_eq!(parse(text.as_bytes(), 100), Err(JsonError::DuplicateMember));
        assert_eq!(parse_foreign(text.as_bytes(), 100), Err(JsonError::DuplicateMember));
    }
}

#[derive(Deserialize)]
struct Holder {
    #[serde(deserialize_with = "derived::value")]
    inner: Value,
    text: derived::Raw,
}

#[test]
fn magic_member_names_of_serde_json_are_plain_members() {
    for name in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        let text = format!(r#"{{"{name}":"1"}}"#);
        assert!(parse(text.as_bytes(), 100).unwrap().is_object(), "{name}");
        let held: Holder = serde_json::from_str(&format!(r#"{{"inner":{text},"text":{text}}}"#)).unwrap();
        assert!(held.inner.is_object() && held.text.text() == text, "{name}");
    }
}

#[test]
fn the_size_is_counted_in_bytes() {
    assert!(parse(b"\"12345678\"", 10).is_ok());
    assert_eq!(parse(b"\"123456789\"", 10), Err(JsonError::TooLarge));
}

/// The heaviest that a text of so many bytes becomes: objects of one member, one in the other.
fn heavy(bytes: usize) -> String {
    let chain = format!("{}0{}", "{\"a\":".repeat(50), "}".repeat(50));
    format!("[{}]", vec![chain.as_str(); bytes / (chain.len() + 1)].join(","))
}

#[test]
fn an_object_is_weighed_while_it_is_read_and_no_heavier_one_is() {
    let many = json!({"a": [], "b": [{}, "", 1, null], "c": {"d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1, "j": 1}});
    for value in [many, json!("text"), json!(0), serde_json::from_str(&heavy(5000)).unwrap()] {
        let (text, weight) = (value.to_string(), weight(&value));
        let read = |most| read(text.as_bytes(), text.len(), &Reader::new(MAX_FOREIGN_DEPTH, false, most));
        assert_eq!(read(weight), Ok(value));
        assert_eq!(read(weight - 1), Err(JsonError::TooLarge));
    }
    let text = heavy(1_400_000);
    assert_eq!(parse_object(text.as_bytes(), text.len()), Err(JsonError::TooLarge));
    assert!(parse_foreign(text.as_bytes(), text.len()).is_ok());
}

#[test]
fn what_is_signed_is_bounded_in_memory_and_can_be_read_back() {
    const _: () = assert!(MAX_SIGNED_WEIGHT < MAX_OBJECT_WEIGHT);
    let signed = |text: &str| parse(text.as_bytes(), MAX_ENVELOPE_BYTES).map(|_| ());
    assert_eq!(signed(&heavy(MAX_ENVELOPE_BYTES)), Err(JsonError::TooLarge));
    assert_eq!(signed(&heavy(MAX_ENVELOPE_BYTES / 4)), Ok(()));
    assert_eq!(signed(&format!("[{}0]", "0,".repeat(MAX_ENVELOPE_BYTES / 2 - 2))), Ok(()));
}

#[test]
fn numbers_of_live_objects_are_normalised_and_big_ones_left() {
    let live = parse_foreign(br#"{"a":[1.0,-0.0,18446744073709551615,1e300,0.5]}"#, 100);
    assert_eq!(live, Ok(json!({"a": [1, 0, u64::MAX, 1e300, 0.5]})));
}
