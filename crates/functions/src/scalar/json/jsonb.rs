//! JSONB: the text of a value as PostgreSQL prints it, so that equal values have equal texts.
//!
//! A blank follows `:` and `,`; of duplicate keys the last one stays, and shorter keys come before
//! longer ones; numbers are written like NUMERIC, so 1.0 and 1 stay two texts; only necessary escapes
//! are kept.

use std::borrow::Cow;

use super::normal::{PLACES_MAX, WHOLE_DIGITS_MAX, is_normal};
use super::parse::{parse, parse_jsonb};
use super::value::{Json, JsonFailure, quote};
use crate::failure::FunctionFailure;

/// Maximum size of a value in bytes, as in PostgreSQL.
const BYTES_MAX: usize = 0x0fff_ffff;

/// Converts JSON text to JSONB's text, or returns it unchanged if it already is.
///
/// # Errors
/// If a text is not JSON, or if PostgreSQL's JSONB cannot represent it.
pub fn canonical_jsonb(text: &str) -> Result<Cow<'_, str>, FunctionFailure> {
    canonical(text).map_err(|(state, why)| {
        let message = match state {
            "22P02" => format!("invalid input syntax for type json: {why}"),
            _ => why,
        };
        FunctionFailure { state, message }
    })
}

/// Checks that a text is JSON.
///
/// # Errors
/// If it is not.
pub fn check_json(text: &str) -> Result<(), FunctionFailure> {
    parse(text).map(drop).map_err(|why| FunctionFailure {
        state: "22P02",
        message: format!("invalid input syntax for type json: {why}"),
    })
}

pub(super) fn canonical(text: &str) -> Result<Cow<'_, str>, JsonFailure> {
    if is_normal(text) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    write(&parse_jsonb(text)?, &mut out)?;
    Ok(Cow::Owned(out))
}

/// Writes a value whose keys are already in order.
pub(super) fn write(value: &Json<'_>, out: &mut String) -> Result<(), JsonFailure> {
    match value {
        Json::Number(number) => write_number(number, out)?,
        Json::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Json::Object(pairs) => {
            out.push('{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                quote(key, out);
                out.push_str(": ");
                write(value, out)?;
            }
            out.push('}');
        }
        scalar => scalar.write(out),
    }
    Ok(())
}

/// Writes a string's text, or any other value as JSON; returns `false` for null.
pub(super) fn write_text(value: &Json<'_>, out: &mut String) -> Result<bool, JsonFailure> {
    match value {
        Json::Null => return Ok(false),
        Json::Text(text) => out.push_str(text),
        other => write(other, out)?,
    }
    Ok(true)
}

/// Writes a value with one line per value.
pub(super) fn write_lines(
    value: &Json<'_>,
    depth: usize,
    out: &mut String,
) -> Result<(), JsonFailure> {
    let indent = |depth: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n("    ", depth));
    };
    match value {
        Json::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                indent(depth + 1, out);
                write_lines(item, depth + 1, out)?;
            }
            indent(depth, out);
            out.push(']');
        }
        Json::Object(pairs) => {
            out.push('{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                indent(depth + 1, out);
                quote(key, out);
                out.push_str(": ");
                write_lines(value, depth + 1, out)?;
            }
            indent(depth, out);
            out.push('}');
        }
        scalar => write(scalar, out)?,
    }
    Ok(())
}

/// Writes a number like NUMERIC: without an exponent, with its scale, and without a sign for zero.
fn write_number(number: &str, out: &mut String) -> Result<(), JsonFailure> {
    let overflow = || ("22003", "value overflows numeric format".to_owned());
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let exponent = exponent.parse::<i32>().map_err(|_| overflow())?;
            (mantissa, i64::from(exponent))
        }
        None => (number, 0),
    };
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, places) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_zero = whole.bytes().chain(places.bytes()).all(|digit| digit == b'0');
    // Number of digits after and before the point, once it is moved.
    let scale = (places.len() as i64 - exponent).max(0);
    let point = whole.len() as i64 + exponent;
    let leading = unsigned.bytes().filter(|byte| *byte != b'.').take_while(|byte| *byte == b'0');
    let is_wide = !is_zero && point - leading.count() as i64 > WHOLE_DIGITS_MAX as i64;
    if scale > PLACES_MAX as i64 || is_wide {
        return Err(overflow());
    }
    if !is_zero && mantissa.len() > unsigned.len() {
        out.push('-');
    }
    if exponent == 0 {
        out.push_str(unsigned);
    } else {
        write_moved(&[whole, places].concat(), is_zero, point, scale, out);
    }
    match out.len() > BYTES_MAX {
        true => Err(("54000", format!("a JSONB value has more than {BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

/// Writes digits with a point after the first `point` of them, which may lie before or after them all.
fn write_moved(digits: &str, is_zero: bool, point: i64, scale: i64, out: &mut String) {
    let zeros = |count: i64, out: &mut String| {
        out.extend(std::iter::repeat_n('0', usize::try_from(count).unwrap_or(0)));
    };
    let count = digits.len() as i64;
    let before = usize::try_from(point.clamp(0, count)).unwrap_or(0);
    let whole = digits[..before].trim_start_matches('0');
    match whole {
        "" => out.push('0'),
        whole => {
            out.push_str(whole);
            zeros(point - count, out);
        }
    }
    if scale > 0 {
        out.push('.');
        zeros(if is_zero { scale } else { -point }, out);
        out.push_str(if is_zero { "" } else { &digits[before..] });
    }
}
