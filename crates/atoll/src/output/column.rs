//! Values of a column as text: lists and structs as DuckDB writes them, dates, times and intervals as PostgreSQL does.
//!
//! ```text
//! [1, NULL, 3]    {'a': x, 'b': 'y, z'}    {a=1}    1 day 04:05:06.5    1e+20    2024-05-01 12:00:00+00
//! ```

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use atoll_sql::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use atoll_sql::arrow::buffer::NullBuffer;
use atoll_sql::arrow::compute::cast;
use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll_sql::temporal::{TemporalStyle, WriteRow, temporal_writer};
use atoll_sql::{is_ambiguous_within as is_ambiguous, quoted_within as quoted};

/// How dates and times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// As SQL writes them in the session's styles: `2024-05-01 12:00:00`.
    Sql(TemporalStyle),
    /// As ISO 8601 does: `2024-05-01T12:00:00`.
    Iso,
}

const PLAIN: FormatOptions<'static> = FormatOptions::new();

/// The least nonzero number that is written without an exponent.
const PLAIN_MIN: f64 = 1e-4;

/// One column of a batch.
pub(super) struct OutputColumn<'a> {
    form: Form<'a>,
    nulls: Option<NullBuffer>,
}

/// How the values of a type are written.
enum Form<'a> {
    /// Never ambiguous within other values.
    Number(ArrayFormatter<'a>),
    Float(ArrayFormatter<'a>),
    Text(ArrayFormatter<'a>),
    /// Times, with or without dates, in ISO 8601, and the formatter for values without such a form.
    Time(ArrayFormatter<'a>, WriteRow<'a>),
    /// Dates, times and intervals; whether they may be ambiguous within other values.
    Temporal(WriteRow<'a>, bool),
    List(&'a dyn Array, Box<OutputColumn<'a>>),
    /// Field names with their colons, and values.
    Struct(Vec<String>, Vec<OutputColumn<'a>>),
    Map(&'a dyn Array, Box<OutputColumn<'a>>, Box<OutputColumn<'a>>),
}

impl<'a> OutputColumn<'a> {
    pub(super) fn new(array: &'a dyn Array, times: Times) -> io::Result<Self> {
        Ok(Self { form: Form::try_new(array, times)?, nulls: array.logical_nulls() })
    }

    /// Whether the value is NULL.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the value's text; nothing for NULL.
    pub(super) fn push(&self, row: usize, text: &mut String) {
        if !self.is_null(row) {
            self.form.push(row, text);
        }
    }

    /// The value's text; None for NULL.
    pub(super) fn text(&self, row: usize) -> Option<String> {
        (!self.is_null(row)).then(|| {
            let mut text = String::new();
            self.form.push(row, &mut text);
            text
        })
    }

    /// Appends the value as an element of a nested value.
    fn push_within(&self, row: usize, text: &mut String) {
        if self.is_null(row) {
            return text.push_str("NULL");
        }
        let start = text.len();
        self.form.push(row, text);
        let may_be_other =
            matches!(self.form, Form::Text(_) | Form::Time(..) | Form::Temporal(_, true));
        if may_be_other && is_ambiguous(&text[start..]) {
            let value = quoted(&text[start..]);
            text.truncate(start);
            text.push_str(&value);
        }
    }
}

impl<'a> Form<'a> {
    fn try_new(array: &'a dyn Array, times: Times) -> io::Result<Self> {
        let formatter = || ArrayFormatter::try_new(array, &PLAIN).map_err(unwritable);
        let column = |array: &'a ArrayRef| OutputColumn::new(array.as_ref(), times);
        let style = match times {
            Times::Sql(style) => style,
            Times::Iso => TemporalStyle::default(),
        };
        if let Some(write) = temporal_writer(array, style).map_err(unwritable)? {
            let is_time = matches!(
                array.data_type(),
                DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_)
            );
            return Ok(match is_time && times == Times::Iso {
                true => Self::Time(formatter()?, write),
                false => Self::Temporal(write, is_time),
            });
        }
        Ok(match array.data_type() {
            DataType::Float32 | DataType::Float64 => Self::Float(formatter()?),
            kind if kind.is_numeric() || *kind == DataType::Boolean => Self::Number(formatter()?),
            DataType::List(_) => {
                Self::List(array, Box::new(column(array.as_list::<i32>().values())?))
            }
            DataType::LargeList(_) => {
                Self::List(array, Box::new(column(array.as_list::<i64>().values())?))
            }
            DataType::FixedSizeList(..) => {
                Self::List(array, Box::new(column(array.as_fixed_size_list().values())?))
            }
            DataType::Struct(_) => {
                let fields = array.as_struct();
                let names = fields.column_names().into_iter().map(|name| quoted(name) + ": ");
                let values = fields.columns().iter().map(column).collect::<io::Result<_>>()?;
                Self::Struct(names.collect(), values)
            }
            DataType::Map(..) => {
                let (keys, values) = (array.as_map().keys(), array.as_map().values());
                Self::Map(array, Box::new(column(keys)?), Box::new(column(values)?))
            }
            _ => Self::Text(formatter()?),
        })
    }

    fn push(&self, row: usize, text: &mut String) {
        let start = text.len();
        match self {
            // Writing to a String cannot fail.
            Self::Number(values) | Self::Text(values) => {
                let _ = write!(text, "{}", values.value(row));
            }
            Self::Float(values) => {
                let _ = write!(text, "{}", values.value(row));
                exponent(text, start);
            }
            Self::Time(values, write) => match values.value(row).try_to_string() {
                Ok(time) => {
                    text.push_str(&time);
                    trim_time(text, start);
                }
                Err(_) => push_written(write, row, text),
            },
            Self::Temporal(write, _) => push_written(write, row, text),
            Self::List(array, items) => {
                text.push('[');
                for (at, item) in items_of(*array, row).enumerate() {
                    text.push_str(if at > 0 { ", " } else { "" });
                    items.push_within(item, text);
                }
                text.push(']');
            }
            Self::Struct(names, values) => {
                text.push('{');
                for (at, (name, value)) in names.iter().zip(values).enumerate() {
                    text.push_str(if at > 0 { ", " } else { "" });
                    text.push_str(name);
                    value.push_within(row, text);
                }
                text.push('}');
            }
            Self::Map(array, keys, values) => {
                text.push('{');
                for (at, entry) in items_of(*array, row).enumerate() {
                    text.push_str(if at > 0 { ", " } else { "" });
                    keys.push_within(entry, text);
                    text.push('=');
                    values.push_within(entry, text);
                }
                text.push('}');
            }
        }
    }
}

/// Positions of a list's items, or a map's entries, within the array of all rows' items.
pub(super) fn items_of(array: &dyn Array, row: usize) -> Range<usize> {
    match array.data_type() {
        DataType::List(_) => {
            let offsets = array.as_list::<i32>().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
        DataType::LargeList(_) => {
            let offsets = array.as_list::<i64>().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
        DataType::Map(..) => {
            let offsets = array.as_map().value_offsets();
            offsets[row] as usize..offsets[row + 1] as usize
        }
        _ => {
            let lists = array.as_fixed_size_list();
            let first = lists.value_offset(row) as usize;
            first..first + lists.value_length() as usize
        }
    }
}

/// Rewrites the float from `start` on as C does if it needs an exponent: `1e+20`, `1e-07`.
fn exponent(text: &mut String, start: usize) {
    let number = &text[start..];
    if !number.contains('e') {
        match number.parse::<f64>() {
            Ok(value) if value != 0.0 && value.abs() < PLAIN_MIN => {
                let number = format!("{value:e}");
                text.replace_range(start.., &number);
            }
            _ => return,
        }
    }
    let Some((mantissa, power)) = text[start..].split_once('e') else { return };
    let Ok(power) = power.parse::<i32>() else { return };
    let sign = if power < 0 { '-' } else { '+' };
    let number = format!("{mantissa}e{sign}{:02}", power.abs());
    text.replace_range(start.., &number);
}

fn push_written(write: &WriteRow<'_>, row: usize, text: &mut String) {
    let mut bytes = Vec::new();
    write(row, &mut bytes);
    text.push_str(&String::from_utf8_lossy(&bytes));
}

/// Drops trailing zeros of the seconds' fraction from the time that begins at `start`.
fn trim_time(text: &mut String, start: usize) {
    let Some(point) = text[start..].find('.').map(|at| start + at) else { return };
    let rest = &text[point + 1..];
    let end = point + 1 + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let kept = text[..end].trim_end_matches('0').trim_end_matches('.').len();
    text.replace_range(kept..end, "");
}

/// The columns of a batch as text, as SQL writes values in these styles.
pub(super) fn columns(
    arrays: &[ArrayRef],
    style: TemporalStyle,
) -> io::Result<Vec<OutputColumn<'_>>> {
    arrays.iter().map(|array| OutputColumn::new(array.as_ref(), Times::Sql(style))).collect()
}

/// The columns of a batch, with dictionaries and runs expanded.
pub(super) fn plain(batch: &RecordBatch) -> io::Result<Vec<ArrayRef>> {
    batch.columns().iter().map(plain_array).collect()
}

fn plain_array(array: &ArrayRef) -> io::Result<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values).map_err(unwritable),
        DataType::RunEndEncoded(_, values) => cast(array, values.data_type()).map_err(unwritable),
        _ => Ok(ArrayRef::clone(array)),
    }
}

pub(super) fn unwritable(error: ArrowError) -> io::Error {
    io::Error::other(format!("cannot write a column as text: {error}; CAST it to another type"))
}
