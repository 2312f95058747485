//! Rows that a shard found for a batch, summed up so that answers are compared without being kept.

use anyhow::{Result, ensure};
use atoll_sql::arrow::array::{Array, ArrayRef, AsArray};
use atoll_sql::arrow::datatypes::{DataType, Date32Type, Int16Type, Int32Type, Int64Type};
use atoll_sql::store::clock_scan::QueryRows;

/// Rows found for a batch, summed up by the receiver, which reads each value once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShardRows {
    /// Rows of each query.
    pub(super) rows: Vec<u32>,
    /// Checksum of all values, in any order.
    pub(super) sum: ValueSum,
}

/// A value of a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum FoundValue<'a> {
    Null,
    Number(i64),
    Text(&'a [u8]),
}

/// A checksum of values that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ValueSum(u64);

impl ValueSum {
    pub(super) fn add(&mut self, value: FoundValue<'_>) {
        let number = match value {
            FoundValue::Null => 1,
            FoundValue::Number(number) => number as u64 ^ 2,
            FoundValue::Text(text) => {
                text.iter().fold(3, |sum: u64, byte| sum.wrapping_mul(257) + u64::from(*byte))
            }
        };
        self.0 = self.0.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

/// Goes over the values of a query's rows, column by column.
pub(super) fn each_value(rows: &QueryRows, mut visit: impl FnMut(FoundValue<'_>)) {
    for column in &rows.columns {
        for row in 0..rows.rows {
            visit(value(column, row));
        }
    }
}

fn value(column: &ArrayRef, row: usize) -> FoundValue<'_> {
    if column.is_null(row) {
        return FoundValue::Null;
    }
    macro_rules! number {
        ($arrow:ty) => {
            FoundValue::Number(column.as_primitive::<$arrow>().value(row).into())
        };
    }
    match column.data_type() {
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::Date32 => number!(Date32Type),
        _ => FoundValue::Text(column.as_string_view().value(row).as_bytes()),
    }
}

impl ShardRows {
    /// No rows for any of the queries.
    pub(super) fn none(queries: usize) -> Self {
        Self { rows: vec![0; queries], sum: ValueSum::default() }
    }

    /// Sums up the rows of a scan.
    pub(super) fn from_rows(found: &[QueryRows]) -> Self {
        let mut sum = ValueSum::default();
        for rows in found {
            each_value(rows, |value| sum.add(value));
        }
        Self { rows: found.iter().map(|rows| rows.rows as u32).collect(), sum }
    }

    /// Adds what another shard found.
    pub(super) fn add(&mut self, other: &Self) -> Result<()> {
        let (own, others) = (self.rows.len(), other.rows.len());
        ensure!(own == others, "a shard answers {others} queries where it was asked {own}");
        self.rows.iter_mut().zip(&other.rows).for_each(|(own, other)| *own += other);
        self.sum = self.sum.and(other.sum);
        Ok(())
    }
}
