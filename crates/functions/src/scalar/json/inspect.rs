//! Types, keys, lengths and containment of JSON.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{Result, ScalarValue};

use super::super::call::Call;
use super::super::entry::{Arguments, Entry, Takes, flag, text, texts};
use super::extract::{Paths, parsed};
use super::parse::parse;
use super::value::{Json, quote};

const ONE_OR_PATH: &[Arguments] = &[
    Arguments::Are(&[Takes::Json]),
    Arguments::Are(&[Takes::Json, Takes::Text]),
    Arguments::Are(&[Takes::Json, Takes::Whole]),
];
const ONE: &[Arguments] = &[Arguments::Are(&[Takes::Text])];
const TWO: &[Arguments] = &[Arguments::Are(&[Takes::Text, Takes::Text])];

/// Calls `with` with the value of a row, or with the value at the path in the second argument.
fn at_path<T>(
    call: &Call,
    paths: Option<&Paths<'_>>,
    row: usize,
    with: impl FnOnce(&Json<'_>) -> T,
) -> Result<Option<T>> {
    let value = parsed(call, 0, row)?;
    match paths {
        None => Ok(Some(with(&value))),
        Some(paths) => paths.with(row, |path| path.first(&value).map(with)),
    }
}

fn paths(call: &Call) -> Result<Option<Paths<'_>>> {
    if call.count() > 1 { Paths::try_from_call(call).map(Some) } else { Ok(None) }
}

fn json_type(call: &Call) -> Result<ArrayRef> {
    let paths = paths(call)?;
    call.texts(|row, out| {
        let name = at_path(call, paths.as_ref(), row, |value| value.type_name())?;
        out.push_str(name.unwrap_or_default());
        Ok(name.is_some())
    })
}

fn json_keys(call: &Call) -> Result<ArrayRef> {
    let paths = paths(call)?;
    call.text_lists(|row, out| {
        let found = at_path(call, paths.as_ref(), row, |value| {
            if let Json::Object(pairs) = value {
                pairs.iter().for_each(|(key, _)| out.values().append_value(key));
            }
        })?;
        Ok(found.is_some())
    })
}

fn json_array_length(call: &Call) -> Result<ArrayRef> {
    let paths = paths(call)?;
    let length = |value: &Json<'_>| match value {
        Json::List(items) => items.len() as u64,
        _ => 0,
    };
    let lengths: Result<UInt64Array> = (0..call.rows)
        .map(|row| match call.is_null(row) {
            true => Ok(None),
            false => at_path(call, paths.as_ref(), row, length),
        })
        .collect();
    Ok(Arc::new(lengths?))
}

/// Whether a value occurs in another one, directly or nested.
fn contains(value: &Json<'_>, part: &Json<'_>) -> bool {
    if has(value, part) {
        return true;
    }
    match value {
        Json::List(items) => items.iter().any(|item| contains(item, part)),
        Json::Object(pairs) => pairs.iter().any(|(_, value)| contains(value, part)),
        _ => false,
    }
}

/// Whether a value contains everything that another one contains.
fn has(value: &Json<'_>, part: &Json<'_>) -> bool {
    match (value, part) {
        (Json::List(items), Json::List(parts)) => {
            parts.iter().all(|part| items.iter().any(|item| has(item, part)))
        }
        (Json::Object(_), Json::Object(parts)) => {
            parts.iter().all(|(key, part)| value.get(key).is_some_and(|value| has(value, part)))
        }
        (Json::Number(left), Json::Number(right)) => {
            left == right || left.parse::<f64>().ok() == right.parse::<f64>().ok()
        }
        (value, part) => value == part,
    }
}

/// Like PostgreSQL's `@>`: a list also contains a scalar that is one of its items.
fn covers(value: &Json<'_>, part: &Json<'_>) -> bool {
    match (value, part) {
        (Json::List(_), Json::List(_) | Json::Object(_)) => has(value, part),
        (Json::List(items), part) => items.iter().any(|item| has(item, part)),
        _ => has(value, part),
    }
}

/// The types in a text.
enum Shape<'a> {
    Type(&'static str),
    List(Box<Shape<'a>>),
    Object(Vec<(&'a str, Shape<'a>)>),
}

impl<'a> Shape<'a> {
    fn from_json(value: &'a Json<'_>) -> Self {
        match value {
            Json::List(items) => {
                let items = items.iter().map(Shape::from_json);
                Self::List(Box::new(items.reduce(Self::joined).unwrap_or(Self::Type("NULL"))))
            }
            Json::Object(pairs) if pairs.is_empty() => Self::Type("JSON"),
            Json::Object(pairs) => Self::Object(
                pairs.iter().map(|(key, value)| (&**key, Self::from_json(value))).collect(),
            ),
            scalar => Self::Type(scalar.type_name()),
        }
    }

    /// Returns the type that covers both.
    fn joined(self, other: Self) -> Self {
        match (self, other) {
            (Self::Type("NULL"), other) | (other, Self::Type("NULL")) => other,
            (Self::Type(left), Self::Type(right)) if left == right => Self::Type(left),
            (Self::Type(left), Self::Type(right)) => {
                let mut types = [left, right];
                types.sort_unstable();
                Self::Type(match types {
                    ["BIGINT", "UBIGINT"] => "BIGINT",
                    ["BIGINT" | "DOUBLE", "DOUBLE" | "UBIGINT"] => "DOUBLE",
                    _ => "JSON",
                })
            }
            (Self::List(left), Self::List(right)) => Self::List(Box::new(left.joined(*right))),
            (Self::Object(mut left), Self::Object(right)) => {
                for (key, shape) in right {
                    match left.iter_mut().find(|(name, _)| *name == key) {
                        Some((_, own)) => {
                            let before = std::mem::replace(own, Self::Type("NULL"));
                            *own = before.joined(shape);
                        }
                        None => left.push((key, shape)),
                    }
                }
                Self::Object(left)
            }
            _ => Self::Type("JSON"),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Type(name) => quote(name, out),
            Self::List(item) => {
                out.push('[');
                item.write(out);
                out.push(']');
            }
            Self::Object(pairs) => {
                out.push('{');
                for (at, (key, shape)) in pairs.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    quote(key, out);
                    out.push(':');
                    shape.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn unsigned(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::UInt64)
}

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "json_type",
        aliases: &[],
        arguments: "json[, path]",
        about: "The type of a JSON value: OBJECT, ARRAY, VARCHAR, UBIGINT, BIGINT, DOUBLE, BOOLEAN or NULL.",
        example: "json_type('[1]') = 'ARRAY'",
        takes: ONE_OR_PATH,
        gives: text,
        volatile: false,
        run: json_type,
    },
    Entry {
        name: "json_typeof",
        aliases: &["jsonb_typeof"],
        arguments: "json",
        about: "The type of a JSON value, as PostgreSQL names it: object, array, string, number, boolean or null.",
        example: "json_typeof('[1]') = 'array'",
        takes: &[Arguments::Are(&[Takes::Json])],
        gives: text,
        volatile: false,
        run: |call| {
            call.texts(|row, out| {
                out.push_str(parsed(call, 0, row)?.kind());
                Ok(true)
            })
        },
    },
    Entry {
        name: "jsonb_array_length",
        aliases: &[],
        arguments: "json",
        about: "The number of elements in a list; an error for other values.",
        example: "jsonb_array_length('[1, 2]') = 2",
        takes: &[Arguments::Are(&[Takes::Json])],
        gives: |_, _| Ok(DataType::Int32),
        volatile: false,
        run: |call| {
            call.plain::<Int32Type>(|row| match parsed(call, 0, row)? {
                Json::List(items) => Ok(i32::try_from(items.len()).ok()),
                Json::Object(_) => call.fails_as("22023", "cannot get array length of a non-array"),
                _ => call.fails_as("22023", "cannot get array length of a scalar"),
            })
        },
    },
    Entry {
        name: "json_keys",
        aliases: &[],
        arguments: "json[, path]",
        about: "The keys of an object.",
        example: "json_keys('{\"a\": 1}') = ['a']",
        takes: ONE_OR_PATH,
        gives: texts,
        volatile: false,
        run: json_keys,
    },
    Entry {
        name: "json_array_length",
        aliases: &[],
        arguments: "json[, path]",
        about: "The number of elements in a list; 0 for other values.",
        example: "json_array_length('[1, 2]') = 2",
        takes: ONE_OR_PATH,
        gives: unsigned,
        volatile: false,
        run: json_array_length,
    },
    Entry {
        name: "json_valid",
        aliases: &["jsonb_valid"],
        arguments: "text",
        about: "Whether a text is JSON, or all texts of a list are.",
        example: "json_valid('{a}') = false",
        takes: &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Texts])],
        gives: flag,
        volatile: false,
        run: |call| call.all_pass(|text| parse(text).is_ok()),
    },
    Entry {
        name: "json_contains",
        aliases: &[],
        arguments: "json, part",
        about: "Whether a JSON value is in another one, at any depth.",
        example: "json_contains('{\"a\": [1, 2]}', '2')",
        takes: TWO,
        gives: flag,
        volatile: false,
        run: |call| {
            call.flags(|row| Ok(Some(contains(&parsed(call, 0, row)?, &parsed(call, 1, row)?))))
        },
    },
    Entry {
        name: "jsonb_contains",
        aliases: &[],
        arguments: "json, part",
        about: "Whether a JSON value has all that another one has, from the outside in; the operator `@>`.",
        example: "jsonb_contains('{\"a\": [1, 2], \"b\": 3}', '{\"a\": [2]}')",
        takes: TWO,
        gives: flag,
        volatile: false,
        run: |call| {
            call.flags(|row| Ok(Some(covers(&parsed(call, 0, row)?, &parsed(call, 1, row)?))))
        },
    },
    Entry {
        name: "json_structure",
        aliases: &[],
        arguments: "json",
        about: "The types inside a JSON value, as json_transform takes them.",
        example: "json_structure('{\"a\": 1}') = '{\"a\":\"UBIGINT\"}'",
        takes: ONE,
        gives: text,
        volatile: false,
        run: |call| {
            call.texts(|row, out| {
                Shape::from_json(&parsed(call, 0, row)?).write(out);
                Ok(true)
            })
        },
    },
];
