//! `printf('%d', …)` and `format('{}', …)`.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::Result;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, text};
use crate::scalar::text::spec::{Spec, Value};
use crate::temporal::{TemporalStyle, temporal_texts};

/// A part of a format.
enum Piece<'a> {
    Literal(&'a str),
    /// The argument with this index.
    Value(usize, Spec),
}

/// The values of an argument.
enum Values {
    Whole(ArrayRef),
    Float(ArrayRef),
    Flag(ArrayRef),
    Text(ArrayRef),
}

impl Values {
    fn try_from_array(array: &ArrayRef, style: TemporalStyle) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Boolean => Self::Flag(array.clone()),
            integer if integer.is_integer() => {
                Self::Whole(cast(array, &DataType::Decimal128(38, 0))?)
            }
            number if number.is_numeric() => Self::Float(cast(array, &DataType::Float64)?),
            _ => Self::Text(match temporal_texts(array, style)? {
                Some(texts) => Arc::new(texts),
                None => cast(array, &DataType::Utf8)?,
            }),
        })
    }

    fn value(&self, row: usize) -> Value<'_> {
        match self {
            Self::Whole(array) => Value::Whole(array.as_primitive::<Decimal128Type>().value(row)),
            Self::Float(array) => Value::Float(array.as_primitive::<Float64Type>().value(row)),
            Self::Flag(array) => Value::Flag(array.as_boolean().value(row)),
            Self::Text(array) => Value::Text(Cow::Borrowed(array.as_string::<i32>().value(row))),
        }
    }
}

/// Parses a `printf` format.
fn percent(format: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut pieces, mut rest, mut next) = (Vec::new(), format, 0);
    while let Some(at) = rest.find('%') {
        pieces.push(Piece::Literal(&rest[..at]));
        let after = &rest[at + 1..];
        rest = match after.strip_prefix('%') {
            Some(after) => {
                pieces.push(Piece::Literal("%"));
                after
            }
            None => {
                let (spec, after) = Spec::of_printf(after)?;
                pieces.push(Piece::Value(next, spec));
                next += 1;
                after
            }
        };
    }
    pieces.push(Piece::Literal(rest));
    Ok(pieces)
}

/// Parses a `format` format.
fn braces(format: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut pieces, mut rest, mut next) = (Vec::new(), format, 0);
    while let Some(at) = rest.find(['{', '}']) {
        pieces.push(Piece::Literal(&rest[..at]));
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            pieces.push(Piece::Literal(brace));
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err("a } without its {; write }} for the character".to_owned());
        }
        let Some((field, after)) = after.split_once('}') else {
            return Err("a { without its }; write {{ for the character".to_owned());
        };
        let (place, spec) = field.split_once(':').unwrap_or((field, ""));
        let place = match place {
            "" => {
                next += 1;
                next - 1
            }
            place => {
                place.parse().map_err(|_| format!("'{place}' is not the place of an argument"))?
            }
        };
        pieces.push(Piece::Value(place, Spec::of_braces(spec)?));
        rest = after;
    }
    pieces.push(Piece::Literal(rest));
    Ok(pieces)
}

fn run(call: &Call, parse: fn(&str) -> Result<Vec<Piece<'_>>, String>) -> Result<ArrayRef> {
    let formats = call.text(0);
    let style = TemporalStyle::from_options(&call.config);
    let values = call.arrays[1..].iter().map(|array| Values::try_from_array(array, style));
    let values: Result<Vec<Values>> = values.collect();
    let values = values?;
    let pieces_of = |format| parse(format).or_else(|why| call.fails(why));
    let first = (0..call.rows).find(|&row| !call.is_null(row));
    let constant = match first {
        Some(row) => Some((formats.value(row), pieces_of(formats.value(row))?)),
        None => None,
    };
    call.texts(|row, out| {
        let own;
        let pieces = match &constant {
            Some((same, pieces)) if *same == formats.value(row) => pieces,
            _ => {
                own = pieces_of(formats.value(row))?;
                &own
            }
        };
        for piece in pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Value(at, spec) => {
                    let Some(values) = values.get(*at) else {
                        return call.fails(format_args!("argument {} is missing", at + 1));
                    };
                    spec.write(&values.value(row), out).or_else(|why| call.fails(why))?;
                }
            }
        }
        Ok(true)
    })
}

const BOTH: &[Entry] = &[
    Entry {
        name: "printf",
        aliases: &[],
        arguments: "format, values…",
        about: "Values in a text, by a format as of C: %d, %s, %5.2f, %x, %,d.",
        example: "printf('%s: %5.2f', 'a', 1.5) = 'a:  1.50'",
        takes: &[Arguments::More(&[Takes::Text], Takes::Any)],
        gives: text,
        volatile: false,
        run: |call| run(call, percent),
    },
    Entry {
        name: "format",
        aliases: &[],
        arguments: "format, values…",
        about: "Values in a text, by a format with braces: {}, {0}, {:.2f}, {:>5}, {:,}.",
        example: "format('{}: {:.2f}', 'a', 1.5) = 'a: 1.50'",
        takes: &[Arguments::More(&[Takes::Text], Takes::Any)],
        gives: text,
        volatile: false,
        run: |call| run(call, braces),
    },
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[BOTH];
