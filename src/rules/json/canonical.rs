//! The canonical writer: JCS, RFC 8785.

use super::MAX_NUMBER;
use serde_json::{Number, Value};
use std::fmt::Write;

/// The canonical form of a value: no white space, members in the order of their UTF-16 code units
/// (RFC 8785 section 3.2.3), numbers as ECMAScript writes doubles (section 3.2.2.3).
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(number, text),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_value(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            if members.keys().any(|name| name.bytes().any(|byte| byte >= UTF_16_DIFFERS)) {
                sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            } else {
                sorted.sort_by_key(|(name, _)| *name);
            }
            text.push('{');
            for (position, (name, member)) in sorted.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_string(name, text);
                text.push(':');
                write_value(member, text);
            }
            text.push('}');
        }
    }
}

/// The least byte of UTF-8 that begins a character from U+E000: below it, the order of bytes is that of UTF-16
/// code units.
const UTF_16_DIFFERS: u8 = 0xee;

/// RFC 8785 section 3.2.2.2: only what must be escaped is, in the shortest form.
fn write_string(string: &str, text: &mut String) {
    let mut rest = string;
    text.push('"');
    // What is escaped is one byte of UTF-8, and no byte of any other character.
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        let (plain, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        text.push_str(plain);
        let mut characters = from.chars();
        match characters.next() {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some('\u{8}') => text.push_str("\\b"),
            Some('\t') => text.push_str("\\t"),
            Some('\n') => text.push_str("\\n"),
            Some('\u{c}') => text.push_str("\\f"),
            Some('\r') => text.push_str("\\r"),
            Some(control) => push(text, format_args!("\\u{:04x}", u32::from(control))),
            None => {}
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    text.push('"');
}

/// An integer within 2^53-1 is its own ECMAScript text; all others are written as the double that
/// they are to RFC 8785.
fn write_number(number: &Number, text: &mut String) {
    let small = number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= MAX_NUMBER);
    match number.as_f64() {
        Some(double) if !small => write_double(double, text),
        Some(_) | None => push(text, format_args!("{number}")),
    }
}

/// ECMAScript `Number::toString`: the shortest digits that read back as the same double, arranged by
/// the position of the decimal point.
fn write_double(double: f64, text: &mut String) {
    if double == 0.0 {
        text.push('0');
        return;
    }
    if double < 0.0 {
        text.push('-');
    }
    let scientific = shortest(double.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    // `point` digits stand before the decimal point.
    let point = exponent.parse::<i32>().unwrap_or(0).saturating_add(1);
    match usize::try_from(point) {
        Ok(point @ 1..=21) if digits.len() <= point => push(text, format_args!("{digits:0<point$}")),
        Ok(point @ 1..=21) => {
            let (whole, fraction) = digits.split_at_checked(point).unwrap_or((&digits, ""));
            push(text, format_args!("{whole}.{fraction}"));
        }
        Ok(_) | Err(_) if (-5..=0).contains(&point) => {
            let zeros = usize::try_from(point.unsigned_abs()).unwrap_or(0);
            push(text, format_args!("0.{:0<zeros$}{digits}", ""));
        }
        Ok(_) | Err(_) => {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
            let dot = if rest.is_empty() { "" } else { "." };
            push(text, format_args!("{first}{dot}{rest}e{:+}", point.saturating_sub(1)));
        }
    }
}

/// The shortest digits, in scientific notation. Where two texts of that length are equally close,
/// Rust's `{:e}` takes the greater and ECMAScript the even one, which is how Rust rounds to a given
/// number of digits: `591340196471289.25` is written `.2`, not `.3`.
fn shortest(double: f64) -> String {
    let shortest = format!("{double:e}");
    let digits = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let even = format!("{double:.*e}", digits.saturating_sub(1));
    if even.parse() == Ok(double) { even } else { shortest }
}

/// Writing to a `String` cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).unwrap_or_default();
}
