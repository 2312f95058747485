//! The arguments of a call as arrays, and builders for its result.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryBuilder, BooleanArray,
    Float64Array, Int64Array, ListArray, ListBuilder, PrimitiveArray, PrimitiveBuilder,
    StringArray, StringBuilder,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{CastOptions, cast};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Field, FieldRef, Float64Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::marks::is_jsonb_field;
use crate::failure::FunctionFailure;
use crate::temporal::{Moments, cast_moments, finite_only};

/// A call for a number of rows.
pub(crate) struct Call {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    pub(super) arrays: Vec<ArrayRef>,
    /// The fields of the arguments.
    pub(super) fields: Vec<FieldRef>,
    pub(super) result: DataType,
    /// Whether the result is marked as JSONB.
    pub(super) is_jsonb: bool,
    pub(super) config: Arc<ConfigOptions>,
    /// Rows without NULL arguments.
    nulls: Option<NullBuffer>,
}

impl Call {
    pub(super) fn new(name: &'static str, args: ScalarFunctionArgs, rows: usize) -> Result<Self> {
        let arrays: Result<Vec<ArrayRef>> =
            args.args.iter().map(|arg| arg.to_array(rows)).collect();
        let arrays = arrays?;
        let nulls = arrays.iter().fold(None, |nulls: Option<NullBuffer>, array| {
            NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref())
        });
        let result = args.return_field.data_type().clone();
        let is_jsonb = is_jsonb_field(&args.return_field);
        let (fields, config) = (args.arg_fields, args.config_options);
        Ok(Self { name, rows, arrays, fields, result, is_jsonb, config, nulls })
    }

    /// Casts all text types to Utf8.
    pub(super) fn read_views(&mut self) -> Result<()> {
        for array in &mut self.arrays {
            if matches!(array.data_type(), DataType::Utf8View | DataType::LargeUtf8) {
                *array = cast(array, &DataType::Utf8)?;
            }
        }
        Ok(())
    }

    /// Returns the number of arguments.
    pub(super) fn count(&self) -> usize {
        self.arrays.len()
    }

    pub(super) fn text(&self, at: usize) -> &StringArray {
        self.arrays[at].as_string()
    }

    pub(super) fn bytes(&self, at: usize) -> &BinaryArray {
        self.arrays[at].as_binary()
    }

    pub(super) fn whole(&self, at: usize) -> &Int64Array {
        self.arrays[at].as_primitive::<Int64Type>()
    }

    pub(super) fn double(&self, at: usize) -> &Float64Array {
        self.arrays[at].as_primitive::<Float64Type>()
    }

    pub(super) fn flag(&self, at: usize) -> &BooleanArray {
        self.arrays[at].as_boolean()
    }

    pub(super) fn list(&self, at: usize) -> &ListArray {
        self.arrays[at].as_list()
    }

    /// Returns timestamps as microseconds of local time, or times as microseconds of the day.
    pub(super) fn moments(&self, at: usize) -> Result<Moments> {
        let array = &self.arrays[at];
        Ok(Moments::new(match array.data_type() {
            DataType::Time64(_) => array.as_primitive::<Time64MicrosecondType>().reinterpret_cast(),
            _ => wall_clock(array, &self.config)?,
        }))
    }

    /// Whether an argument of the row is NULL.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Iterates over the rows, with None for rows with a NULL.
    fn each<T>(
        &self,
        value: impl Fn(usize) -> Result<Option<T>>,
    ) -> impl Iterator<Item = Result<Option<T>>> {
        (0..self.rows).map(move |row| if self.is_null(row) { Ok(None) } else { value(row) })
    }

    /// Builds values of a parameterized type.
    pub(super) fn plain<T: ArrowPrimitiveType>(
        &self,
        value: impl Fn(usize) -> Result<Option<T::Native>>,
    ) -> Result<ArrayRef> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.rows);
        for value in self.each(value) {
            builder.append_option(value?);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds values of the result type.
    pub(super) fn primitives<T: ArrowPrimitiveType>(
        &self,
        value: impl Fn(usize) -> Result<Option<T::Native>>,
    ) -> Result<ArrayRef> {
        let plain = self.plain::<T>(value)?;
        let typed = plain.as_primitive::<T>().clone().with_data_type(self.result.clone());
        Ok(Arc::new(typed))
    }

    pub(super) fn wholes(&self, value: impl Fn(usize) -> Result<Option<i64>>) -> Result<ArrayRef> {
        self.plain::<Int64Type>(value)
    }

    pub(super) fn doubles(&self, value: impl Fn(usize) -> Result<Option<f64>>) -> Result<ArrayRef> {
        self.plain::<Float64Type>(value)
    }

    pub(super) fn dates(&self, value: impl Fn(usize) -> Result<Option<i32>>) -> Result<ArrayRef> {
        self.plain::<Date32Type>(value)
    }

    /// Builds timestamps from local times, in the zone of the result.
    pub(super) fn timestamps(
        &self,
        value: impl Fn(usize) -> Result<Option<i64>>,
    ) -> Result<ArrayRef> {
        let wall = self.plain::<TimestampMicrosecondType>(value)?;
        match &self.result {
            DataType::Timestamp(_, None) => Ok(wall),
            zoned => Ok(cast_moments(&wall, zoned, &CastOptions::default())?),
        }
    }

    pub(super) fn flags(&self, value: impl Fn(usize) -> Result<Option<bool>>) -> Result<ArrayRef> {
        let values: Result<BooleanArray> = self.each(value).collect();
        Ok(Arc::new(values?))
    }

    /// Tests the first argument, or all of its texts if it is a list.
    pub(super) fn all_pass(&self, test: impl Fn(&str) -> bool) -> Result<ArrayRef> {
        self.flags(|row| {
            Ok(Some(match self.arrays[0].data_type() {
                DataType::List(_) => {
                    self.list(0).value(row).as_string::<i32>().iter().flatten().all(&test)
                }
                _ => test(self.text(0).value(row)),
            }))
        })
    }

    /// Builds texts, each written into a buffer; `false` for NULL.
    pub(super) fn texts(
        &self,
        write: impl Fn(usize, &mut String) -> Result<bool>,
    ) -> Result<ArrayRef> {
        self.all_texts(|row, out| Ok(!self.is_null(row) && write(row, out)?))
    }

    /// The same for all rows, including those with a NULL.
    pub(super) fn all_texts(
        &self,
        write: impl Fn(usize, &mut String) -> Result<bool>,
    ) -> Result<ArrayRef> {
        let mut builder = StringBuilder::with_capacity(self.rows, self.rows * 8);
        let (mut buffer, mut bytes) = (String::new(), 0);
        for row in 0..self.rows {
            buffer.clear();
            if !write(row, &mut buffer)? {
                builder.append_null();
                continue;
            }
            bytes += buffer.len();
            if bytes > BATCH_BYTES_MAX {
                return exec_err!(
                    "{} makes too much text for {} rows at once",
                    self.name,
                    self.rows
                );
            }
            builder.append_value(&buffer);
        }
        Ok(Arc::new(builder.finish()))
    }

    pub(super) fn binaries(
        &self,
        write: impl Fn(usize, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<ArrayRef> {
        let mut builder = BinaryBuilder::with_capacity(self.rows, self.rows * 8);
        let mut buffer = Vec::new();
        for row in 0..self.rows {
            buffer.clear();
            if self.is_null(row) || !write(row, &mut buffer)? {
                builder.append_null();
            } else {
                builder.append_value(&buffer);
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds lists of texts.
    pub(super) fn text_lists(
        &self,
        write: impl Fn(usize, &mut ListBuilder<StringBuilder>) -> Result<bool>,
    ) -> Result<ArrayRef> {
        let mut builder = ListBuilder::new(StringBuilder::new())
            .with_field(Field::new_list_field(DataType::Utf8, true));
        for row in 0..self.rows {
            let is_there = !self.is_null(row) && write(row, &mut builder)?;
            builder.append(is_there);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Returns an error of this call with a SQLSTATE.
    pub(super) fn fails_as<T>(
        &self,
        state: &'static str,
        why: impl std::fmt::Display,
    ) -> Result<T> {
        Err(FunctionFailure::error(state, format!("{}: {why}", self.name)))
    }

    /// Returns an error of this call.
    pub(super) fn fails<T>(&self, why: impl std::fmt::Display) -> Result<T> {
        exec_err!("{}: {why}", self.name)
    }
}

/// Maximum size of the text that a call creates for a batch.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// Returns timestamps as microseconds of local time.
pub(super) fn wall_clock(
    array: &ArrayRef,
    config: &Arc<ConfigOptions>,
) -> Result<PrimitiveArray<TimestampMicrosecondType>> {
    let DataType::Timestamp(unit, Some(_)) = array.data_type() else {
        return Ok(array.as_primitive().clone());
    };
    let wall = DataType::Timestamp(*unit, None);
    let local = finite_only(array, |instants| -> Result<ArrayRef> {
        let args = ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(Arc::clone(instants))],
            arg_fields: vec![Arc::new(Field::new("", array.data_type().clone(), true))],
            number_rows: array.len(),
            return_field: Arc::new(Field::new("", wall, true)),
            config_options: Arc::clone(config),
        };
        to_local_time().invoke_with_args(args)?.into_array(array.len())
    })?;
    Ok(local.as_primitive().clone())
}

/// Writes formatted text into a buffer, which does not fail.
pub(super) fn put(buffer: &mut String, text: std::fmt::Arguments<'_>) -> Result<()> {
    buffer.write_fmt(text).map_err(|error| DataFusionError::Execution(error.to_string()))
}
