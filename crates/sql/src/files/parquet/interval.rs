//! INTERVAL columns: read as the bytes they are, and made intervals of months, days and nanoseconds.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, IntervalMonthDayNanoArray, RecordBatch,
};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef,
};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ColumnStatistics, Result, Statistics, exec_datafusion_err, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

use super::metadata::INTERVAL_BYTES;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// The schema of a table over files whose schema DataFusion inferred: it takes every INTERVAL for one
/// of days and milliseconds.
pub(super) fn with_months(schema: &SchemaRef) -> SchemaRef {
    let is_interval = |field: &FieldRef| matches!(field.data_type(), DataType::Interval(_));
    if !schema.fields().iter().any(is_interval) {
        return Arc::clone(schema);
    }
    let field = |field: &FieldRef| match is_interval(field) {
        true => Arc::new(Field::clone(field).with_data_type(INTERVAL)),
        false => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Statistics without bounds of intervals, which have none that could be told.
pub(super) fn without_bounds(mut statistics: Statistics, schema: &Schema) -> Statistics {
    for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
        if *field.data_type() == INTERVAL {
            *column = ColumnStatistics::new_unknown().with_byte_size(column.byte_size);
        }
    }
    statistics
}

/// Adapts expressions over the table to files: columns of intervals are made of their bytes, all else
/// is left to the factory below.
#[derive(Debug)]
pub(super) struct IntervalAdapterFactory(Arc<dyn PhysicalExprAdapterFactory>);

impl IntervalAdapterFactory {
    pub(super) fn over(below: Option<Arc<dyn PhysicalExprAdapterFactory>>) -> Self {
        Self(below.unwrap_or_else(|| Arc::new(DefaultPhysicalExprAdapterFactory)))
    }
}

impl PhysicalExprAdapterFactory for IntervalAdapterFactory {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let is_interval = |field: &FieldRef| {
            *field.data_type() == DataType::FixedSizeBinary(INTERVAL_BYTES)
                && table.field_with_name(field.name()).is_ok_and(|it| *it.data_type() == INTERVAL)
        };
        if !file.fields().iter().any(is_interval) {
            return self.0.create(table, file);
        }
        // For the adapter below the column has its type already.
        let field = |field: &FieldRef| match is_interval(field) {
            true => Arc::new(Field::clone(field).with_data_type(INTERVAL)),
            false => Arc::clone(field),
        };
        let typed: Vec<FieldRef> = file.fields().iter().map(field).collect();
        let typed = Arc::new(Schema::new_with_metadata(typed, file.metadata().clone()));
        let below = self.0.create(Arc::clone(&table), Arc::clone(&typed))?;
        Ok(Arc::new(IntervalAdapter { below, typed }))
    }
}

#[derive(Debug)]
struct IntervalAdapter {
    below: Arc<dyn PhysicalExprAdapter>,
    /// The file's schema with its intervals typed.
    typed: SchemaRef,
}

impl PhysicalExprAdapter for IntervalAdapter {
    fn rewrite(&self, expression: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let adapted = self.below.rewrite(expression)?;
        let made = adapted.transform_up(|node| {
            let is_interval = node.downcast_ref::<Column>().is_some_and(|column| {
                let field = self.typed.fields().get(column.index());
                field.is_some_and(|field| *field.data_type() == INTERVAL)
            });
            Ok(match is_interval {
                true => Transformed::yes(Arc::new(IntervalOf(node)) as _),
                false => Transformed::no(node),
            })
        });
        made.data()
    }
}

/// The interval that twelve bytes are.
#[derive(Debug, Eq)]
struct IntervalOf(Arc<dyn PhysicalExpr>);

impl PartialEq for IntervalOf {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Hash for IntervalOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for IntervalOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl PhysicalExpr for IntervalOf {
    fn data_type(&self, _input: &Schema) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn nullable(&self, input: &Schema) -> Result<bool> {
        self.0.nullable(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let bytes = self.0.evaluate(batch)?.into_array(batch.num_rows())?;
        let bytes = bytes.as_fixed_size_binary_opt().ok_or_else(|| {
            exec_datafusion_err!("an INTERVAL is read as {}, not as its bytes", bytes.data_type())
        })?;
        Ok(ColumnarValue::Array(intervals(bytes)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(child), true) => Ok(Arc::new(Self(child))),
            _ => internal_err!("IntervalOf has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}

/// Little-endian months, days and milliseconds, by Parquet's LogicalTypes.md.
fn intervals(bytes: &FixedSizeBinaryArray) -> ArrayRef {
    let interval = |bytes: &[u8]| {
        let part = |at: usize| {
            bytes[at..at + 4].iter().rev().fold(0_u32, |part, byte| (part << 8) | u32::from(*byte))
        };
        let nanoseconds = i64::from(part(8)) * NANOSECONDS_PER_MILLISECOND;
        IntervalMonthDayNano::new(part(0).cast_signed(), part(4).cast_signed(), nanoseconds)
    };
    let intervals: IntervalMonthDayNanoArray =
        bytes.iter().map(|bytes| bytes.map(interval)).collect();
    Arc::new(intervals)
}
