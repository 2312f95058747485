//! Values of a column as text.

use std::fmt::Write as _;
use std::io;

use atoll_sql::arrow::array::{Array, ArrayRef, RecordBatch};
use atoll_sql::arrow::buffer::NullBuffer;
use atoll_sql::arrow::compute::cast;
use atoll_sql::arrow::datatypes::DataType;
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};

/// As SQL writes values: `2024-05-01 12:00:00`.
pub(super) const SQL: FormatOptions<'static> = FormatOptions::new()
    .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
    .with_duration_format(DurationFormat::Pretty);

/// As ISO 8601 writes them: `2024-05-01T12:00:00`.
pub(super) const ISO: FormatOptions<'static> = FormatOptions::new();

/// One column of a batch.
pub(super) struct OutputColumn<'a> {
    formatter: ArrayFormatter<'a>,
    nulls: Option<NullBuffer>,
}

impl<'a> OutputColumn<'a> {
    pub(super) fn new(array: &'a dyn Array, options: &FormatOptions<'a>) -> io::Result<Self> {
        let formatter = ArrayFormatter::try_new(array, options).map_err(unwritable)?;
        Ok(Self { formatter, nulls: array.logical_nulls() })
    }

    /// Whether there is no value.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the value's text; nothing for NULL.
    pub(super) fn push(&self, row: usize, text: &mut String) {
        if !self.is_null(row) {
            // A String takes everything.
            let _ = write!(text, "{}", self.formatter.value(row));
        }
    }

    /// The value's text; none for NULL.
    pub(super) fn text(&self, row: usize) -> Option<String> {
        (!self.is_null(row)).then(|| self.formatter.value(row).to_string())
    }
}

/// The columns of a batch as text, as SQL writes values.
pub(super) fn columns(arrays: &[ArrayRef]) -> io::Result<Vec<OutputColumn<'_>>> {
    arrays.iter().map(|array| OutputColumn::new(array.as_ref(), &SQL)).collect()
}

/// The columns of a batch, dictionaries and runs replaced by their values.
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
    io::Error::other(format!(
        "a column cannot be written as text: {error}; CAST it to another type"
    ))
}
