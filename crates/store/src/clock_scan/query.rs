//! A query of a batch: tests of columns, all of which a row must pass, and its projection.
//!
//! Numbers of all types are compared as 64-bit keys whose order is that of the values: whole numbers,
//! decimals, dates and times as integers in their unit, floats by [`float_key`], booleans as 0 and 1.
//!
//! Tests hold keys, not expressions: an index over many queries sorts them, and this crate does not use DataFusion.

use std::ops::Bound;
use std::sync::Arc;

use arrow_schema::DataType;

use crate::table::{canonical_float64, is_whole_number};

/// The number of a query in its batch.
pub(super) type QueryNumber = u32;

/// A query of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchQuery {
    /// A row passes all of them; a NULL passes none but [`ColumnTest::Null`].
    pub tests: Vec<(usize, ColumnTest)>,
    /// Numbers of the projected columns, in this order.
    pub projection: Arc<[usize]>,
    /// Whether the ids of the rows are a last column.
    pub with_ids: bool,
    /// Maximum number of rows.
    pub limit: usize,
}

/// A test of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnTest {
    /// Of a column of numbers.
    Number(NumberTest),
    /// Of a column of strings.
    Text(TextTest),
    /// IS NULL if true, else IS NOT NULL.
    Null(bool),
}

/// A test of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberTest {
    /// One of these, in rising order; neither `i64::MIN` nor `i64::MAX`.
    In(Box<[i64]>),
    /// None of these, in rising order; neither `i64::MIN` nor `i64::MAX`.
    NotIn(Box<[i64]>),
    /// From the first to the last; `i64::MIN` and `i64::MAX` leave an end open.
    Between(i64, i64),
}

/// A test of strings, which are compared bytewise.
#[derive(Clone, Debug, PartialEq)]
pub enum TextTest {
    /// One of these, in rising order.
    In(Box<[Box<str>]>),
    /// None of these, in rising order.
    NotIn(Box<[Box<str>]>),
    /// Within these bounds.
    Between(Bound<Box<str>>, Bound<Box<str>>),
    /// A prefix.
    Prefix(Box<str>),
}

impl NumberTest {
    /// Whether a key passes.
    pub(super) fn passes(&self, key: i64) -> bool {
        match self {
            Self::In(keys) => match &**keys {
                [one] => *one == key,
                keys => keys.binary_search(&key).is_ok(),
            },
            Self::NotIn(keys) => keys.binary_search(&key).is_err(),
            Self::Between(low, high) => *low <= key && key <= *high,
        }
    }
}

impl TextTest {
    /// Whether a string passes.
    pub(super) fn passes(&self, text: &str) -> bool {
        let place = |list: &[Box<str>]| list.binary_search_by(|own| (**own).cmp(text)).is_ok();
        match self {
            Self::In(list) => match &**list {
                [one] => **one == *text,
                list => place(list),
            },
            Self::NotIn(list) => !place(list),
            Self::Between(low, high) => {
                let above = match low {
                    Bound::Included(low) => **low <= *text,
                    Bound::Excluded(low) => **low < *text,
                    Bound::Unbounded => true,
                };
                above
                    && match high {
                        Bound::Included(high) => *text <= **high,
                        Bound::Excluded(high) => *text < **high,
                        Bound::Unbounded => true,
                    }
            }
            Self::Prefix(prefix) => text.starts_with(&**prefix),
        }
    }
}

/// The key of a float, by its canonical form: zero has no sign, and NaN is one value above all others.
pub fn float_key(value: f64) -> i64 {
    stored_float_key(canonical_float64(value))
}

/// The key of a stored float, which is in its canonical form.
pub(super) fn stored_float_key(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// Whether values of the type are compared as numbers.
pub fn is_number(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Boolean | DataType::UInt8 | DataType::Float32 | DataType::Float64)
        || is_whole_number(data_type)
}

/// Whether columns of the type support other tests than IS NULL.
pub fn is_tested(data_type: &DataType) -> bool {
    is_number(data_type) || *data_type == DataType::Utf8View
}
