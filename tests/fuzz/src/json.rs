//! The strict reader and the canonical form, held against `serde_json` and `serde_json_canonicalizer`.
//!
//! - What `serde_json` does not read, we do not read.
//! - What it reads we read too, but for: duplicate member names, more than 64 arrays and objects open at once
//!   (of others' JSON more than 120), numbers of magnitude above 2^53-1 (of others' JSON none). The error names
//!   one of those that are there.
//! - Lone surrogates, a byte order mark, invalid UTF-8, a number beyond a double and anything after the value are
//!   refused by both.
//! - What both read is the same value, and its canonical form is that of the other implementation.
//! - The canonical form is a fixed point.
//!
//! Of numbers above 2^53-1, which are never signed, two things are not compared: an integer's canonical form, which is
//! that of the double that it is to RFC 8785, and whether `9E18` is read as what its canonical form is read as, an
//! integer.

use crate::tree::Tree;
use navin_cluster_agent::rules::json::{
    JsonError, MAX_DEPTH, MAX_ENVELOPE_BYTES, MAX_NUMBER, canonical, parse, parse_foreign,
};
use serde_json::Value;

/// Depth at which others' JSON is refused.
const MAX_FOREIGN_DEPTH: usize = 120;
/// Longer than any canonical form of what is checked here.
const ANY_SIZE: usize = 64 * 1024 * 1024;

/// Checks one text.
pub fn check(bytes: &[u8]) {
    let (strict, foreign) = (parse(bytes, MAX_ENVELOPE_BYTES), parse_foreign(bytes, MAX_ENVELOPE_BYTES));
    if bytes.len() > MAX_ENVELOPE_BYTES {
        assert_eq!((strict, foreign), (Err(JsonError::TooLarge), Err(JsonError::TooLarge)));
        return;
    }
    let theirs = Tree::read(bytes);
    let reasons = |depth: usize, numbers: bool| {
        let Some(tree) = &theirs else {
            return vec![JsonError::Syntax, JsonError::CutOff, JsonError::NotUtf8];
        };
        [
            (tree.has_duplicates(), JsonError::DuplicateMember),
            (tree.depth() > depth, JsonError::TooDeep),
            (numbers && tree.any(&large), JsonError::NumberTooLarge),
        ]
        .into_iter()
        .filter_map(|(there, reason)| there.then_some(reason))
        .collect()
    };
    judge(&strict, &reasons(MAX_DEPTH, true), theirs.is_some());
    judge(&foreign, &reasons(MAX_FOREIGN_DEPTH, false), theirs.is_some());
    if let (Ok(value), Some(tree)) = (&foreign, &theirs) {
        if let Ok(strict) = &strict {
            assert_eq!(strict, value, "the two readers differ");
        }
        same_form(value, tree);
    }
}

/// What is read wrongly, or refused wrongly. Where `serde_json` reads nothing, the first of several errors may be
/// one that it does not know.
fn judge(ours: &Result<Value, JsonError>, reasons: &[JsonError], readable: bool) {
    match ours {
        Ok(_) => assert!(reasons.is_empty(), "read, though {reasons:?}"),
        Err(error) if readable => assert!(reasons.contains(error), "{error:?}, though {reasons:?}"),
        Err(_) => {}
    }
}

/// The canonical form of what both read.
fn same_form(value: &Value, tree: &Tree) {
    let text = canonical(value);
    let again = parse_foreign(text.as_bytes(), ANY_SIZE);
    let again = again.unwrap_or_else(|error| panic!("{error:?}: the canonical form {text} cannot be read"));
    assert_eq!(canonical(&again), text, "not a fixed point");
    assert!(is_normal(value), "equal numbers of different forms: {value}");
    if !tree.any(&large) {
        assert_eq!(&again, value, "the canonical form is of another value");
    }
    if !tree.any(&|tree| matches!(tree, Tree::Natural(_) | Tree::Negative(_)) && large(tree)) {
        let theirs = serde_json_canonicalizer::to_string(tree).expect("without duplicates it has a form");
        assert_eq!(text, theirs, "the canonical form of the other implementation");
    }
}

/// Whether no number is a double that could be an integer.
fn is_normal(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => number
            .as_f64()
            .is_some_and(|double| double.fract() != 0.0 || double.abs() > 9_007_199_254_740_991.0),
        Value::Array(items) => items.iter().all(is_normal),
        Value::Object(members) => members.values().all(is_normal),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// A number of magnitude above 2^53-1.
fn large(tree: &Tree) -> bool {
    match tree {
        Tree::Natural(number) => *number > MAX_NUMBER,
        Tree::Negative(number) => number.unsigned_abs() > MAX_NUMBER,
        Tree::Double(number) => number.abs() > 9_007_199_254_740_991.0,
        _ => false,
    }
}
