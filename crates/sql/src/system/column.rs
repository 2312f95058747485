//! The columns of a system table: their names, and their values for a row.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, StringArray, TimestampMicrosecondArray, UInt32Array,
    UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::catalog::Session as SessionTrait;

use super::{Rows, SystemTable, now, session_system};
use crate::pg_catalog::SystemCatalog;

/// A value of a row, whose type is that of its column.
pub(super) trait Cell: Sized {
    /// The column's type.
    const TYPE: DataType;
    /// Whether it is nullable.
    const NULLABLE: bool;

    /// The column of these values.
    fn array(values: impl Iterator<Item = Self>) -> ArrayRef;
}

macro_rules! cells {
    ($($value:ty: $data_type:ident, $array:ty;)*) => {$(
        impl Cell for $value {
            const TYPE: DataType = DataType::$data_type;
            const NULLABLE: bool = false;

            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(values.map(Some).collect::<$array>())
            }
        }

        impl Cell for Option<$value> {
            const TYPE: DataType = DataType::$data_type;
            const NULLABLE: bool = true;

            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(values.collect::<$array>())
            }
        }
    )*};
}

cells! {
    bool: Boolean, BooleanArray;
    u32: UInt32, UInt32Array;
    u64: UInt64, UInt64Array;
    f64: Float64, Float64Array;
    String: Utf8, StringArray;
    &'static str: Utf8, StringArray;
}

impl Cell for Option<SystemTime> {
    const TYPE: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
    const NULLABLE: bool = true;

    fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
        let micros =
            |at: SystemTime| i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok();
        let values = values.map(|at| at.and_then(micros));
        Arc::new(values.collect::<TimestampMicrosecondArray>())
    }
}

/// The values of a column for rows of type `R`.
type ColumnOf<R> = Box<dyn Fn(&[R]) -> ArrayRef + Send + Sync>;

/// A system table with rows of type `R` that is being described.
pub(super) struct ColumnSpecs<R> {
    fields: Vec<Field>,
    values: Vec<ColumnOf<R>>,
}

impl<R: Send + 'static> ColumnSpecs<R> {
    /// No columns yet.
    pub(super) fn new() -> Self {
        Self { fields: vec![], values: vec![] }
    }

    /// Adds a column.
    pub(super) fn column<V: Cell>(
        mut self,
        name: &str,
        value: impl Fn(&R) -> V + Send + Sync + 'static,
    ) -> Self {
        self.fields.push(Field::new(name, V::TYPE, V::NULLABLE));
        self.values.push(Box::new(move |rows| V::array(rows.iter().map(&value))));
        self
    }

    /// The table, whose rows are computed when a statement reads it.
    pub(super) fn table(
        self,
        name: &'static str,
        rows: impl Fn(&dyn SessionTrait) -> Rows<R> + Send + Sync + 'static,
    ) -> SystemTable {
        let values = Arc::new(self.values);
        let source = move |session: &dyn SessionTrait| -> Rows<ArrayRef> {
            let (rows, values) = (rows(session), Arc::clone(&values));
            Box::pin(async move {
                let rows = rows.await?;
                Ok(values.iter().map(|values| values(&rows)).collect())
            })
        };
        let schema = Arc::new(Schema::new(self.fields));
        SystemTable { name, schema, source: Box::new(source) }
    }

    /// The same, with rows that depend on the reading session's database and user.
    pub(super) fn table_of(
        self,
        name: &'static str,
        rows: impl Fn(&SystemCatalog) -> Vec<R> + Send + Sync + 'static,
    ) -> SystemTable {
        self.table(name, move |session| {
            now(session_system(session).map_or_else(Vec::new, |system| rows(&system)))
        })
    }
}
