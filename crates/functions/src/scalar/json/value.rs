//! A parsed JSON text, and the text of a value.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write;

/// Why a text is not JSONB, or a value cannot be changed: SQLSTATE and message.
pub(super) type JsonFailure = (&'static str, String);

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Flag(bool),
    /// The digits as written.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    /// In the order of the text, including duplicate keys.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl Json<'_> {
    /// Returns DuckDB's name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Flag(_) => "BOOLEAN",
            Self::Number(number) if number.parse::<u64>().is_ok() => "UBIGINT",
            Self::Number(number) if number.parse::<i64>().is_ok() => "BIGINT",
            Self::Number(_) => "DOUBLE",
            Self::Text(_) => "VARCHAR",
            Self::List(_) => "ARRAY",
            Self::Object(_) => "OBJECT",
        }
    }

    /// Writes the value without blanks.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Self::Number(number) => write_number(number, out),
            Self::Text(text) => quote(text, out),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(pairs) => {
                out.push('{');
                for (at, (key, value)) in pairs.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    quote(key, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Writes the value with one line per value.
    pub(super) fn write_lines(&self, depth: usize, out: &mut String) {
        let indent = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n("    ", depth));
        };
        match self {
            Self::List(items) if !items.is_empty() => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    indent(depth + 1, out);
                    item.write_lines(depth + 1, out);
                }
                indent(depth, out);
                out.push(']');
            }
            Self::Object(pairs) if !pairs.is_empty() => {
                out.push('{');
                for (at, (key, value)) in pairs.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    indent(depth + 1, out);
                    quote(key, out);
                    out.push_str(": ");
                    value.write_lines(depth + 1, out);
                }
                indent(depth, out);
                out.push('}');
            }
            other => other.write(out),
        }
    }

    /// Returns a string's text, or any other value as JSON; None for null.
    pub(super) fn write_text(&self, out: &mut String) -> bool {
        match self {
            Self::Null => return false,
            Self::Text(text) => out.push_str(text),
            other => other.write(out),
        }
        true
    }

    /// Returns the value at these keys and indices; negative indices count from the end. Of
    /// duplicate keys, uses the last one that contains the rest of the path.
    pub(super) fn at_steps(&self, steps: &[Option<&str>]) -> Option<&Self> {
        let Some((step, rest)) = steps.split_first() else { return Some(self) };
        let step = (*step)?;
        let Self::List(items) = self else {
            return self.all_of(step).find_map(|value| value.at_steps(rest));
        };
        let at: i32 = step.trim_start().parse().ok()?;
        let item = match usize::try_from(at) {
            Ok(at) => items.get(at),
            Err(_) => items.get(items.len().checked_sub(at.unsigned_abs() as usize)?),
        };
        item?.at_steps(rest)
    }

    /// Returns PostgreSQL's name of its type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag(_) => "boolean",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// Returns the value of the last key with this name.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.all_of(key).next()
    }

    /// Returns the values of all keys with this name, the last one first.
    fn all_of(&self, key: &str) -> impl Iterator<Item = &Self> {
        let pairs = match self {
            Self::Object(pairs) => pairs.as_slice(),
            _ => &[],
        };
        pairs.iter().rev().filter(move |(name, _)| name == key).map(|(_, value)| value)
    }
}

/// Writes a number: with the fewest digits if a double represents it, otherwise unchanged.
fn write_number(number: &str, out: &mut String) {
    let is_whole = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match number.parse::<f64>() {
        Ok(value) if !is_whole && value.is_finite() => write_double(value, out),
        _ => out.push_str(number),
    }
}

/// Writes a double: without an exponent from 1e-6 to 1e21, with at least one fraction digit.
pub(super) fn write_double(value: f64, out: &mut String) {
    let size = value.abs();
    let start = out.len();
    // Writing to a String does not fail.
    let _written = if value.is_nan() {
        write!(out, "NaN")
    } else if value.is_infinite() {
        write!(out, "{}Infinity", if value < 0.0 { "-" } else { "" })
    } else if size == 0.0 || (1e-6..1e21).contains(&size) {
        write!(out, "{value}")
    } else {
        write!(out, "{value:e}")
    };
    if value.is_finite() && !out[start..].contains(['.', 'e']) {
        out.push_str(".0");
    }
}

/// Writes a quoted string.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            8 => "\\b",
            12 => "\\f",
            0..b' ' => "\\u",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(escape);
        if escape == "\\u" {
            let _written = write!(out, "{byte:04x}");
        }
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// JSONB's order of keys: shorter ones first.
fn key_order(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// Sorts keys in JSONB's order; of equal ones the last stays.
pub(super) fn order_keys<'a>(pairs: &mut Vec<(Cow<'a, str>, Json<'a>)>) {
    let rises = |pair: &[(Cow<'a, str>, Json<'a>)]| key_order(&pair[0].0, &pair[1].0).is_lt();
    if pairs.windows(2).all(rises) {
        return;
    }
    pairs.sort_by(|left, right| key_order(&left.0, &right.0));
    pairs.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            std::mem::swap(next, kept);
        }
        is_same
    });
}
