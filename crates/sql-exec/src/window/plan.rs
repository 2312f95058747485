//! What an operator computes, apart from its input.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::function::{WindowFunction, arguments};
use super::order::KeyOrder;
use super::rows::KeptBatch;

/// Bytes that a row takes beside those of its batch: its word, sorted, its number and its frame.
const ROW_BYTES: usize = 56;
/// Bytes that the result of a function takes for a row, and what it is computed from.
const RESULT_BYTES: usize = 40;

/// The functions over one order of rows.
#[derive(Clone, Debug)]
pub(super) struct WindowPlan {
    pub(super) exprs: Vec<Arc<dyn WindowExpr>>,
    pub(super) functions: Vec<WindowFunction>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) order: KeyOrder,
    /// The input's columns and those of the functions.
    pub(super) schema: SchemaRef,
}

impl WindowPlan {
    /// `None` if DataFusion computes one of the functions.
    pub(super) fn new(
        exprs: &[Arc<dyn WindowExpr>],
        input: &SchemaRef,
        schema: &SchemaRef,
    ) -> Option<Self> {
        let first = exprs.first()?;
        let functions: Option<Vec<_>> =
            exprs.iter().map(|expr| WindowFunction::new(expr.as_ref(), input)).collect();
        let mut keys: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
        let mut options = Vec::new();
        for key in first.partition_by() {
            if !keys.contains(key) {
                keys.push(Arc::clone(key));
                options.push(SortOptions::default());
            }
        }
        let partition = keys.len();
        for key in first.order_by() {
            if !keys.contains(&key.expr) {
                keys.push(Arc::clone(&key.expr));
                options.push(key.options);
            }
        }
        let types: Option<Vec<DataType>> =
            keys.iter().map(|key| key.data_type(input).ok()).collect();
        let fields: Vec<_> = types?.into_iter().map(SortField::new).collect();
        let sortable = RowConverter::supports_fields(&fields);
        let order = KeyOrder { options, partition };
        let (exprs, schema) = (exprs.to_vec(), Arc::clone(schema));
        sortable.then_some(Self { exprs, functions: functions?, keys, order, schema })
    }

    /// The order of the results; `None` if any order does.
    pub(super) fn ordering(&self) -> Option<LexOrdering> {
        let keys = self.keys.iter().zip(&self.order.options);
        LexOrdering::new(
            keys.map(|(key, options)| PhysicalSortExpr::new(Arc::clone(key), *options)),
        )
    }

    pub(super) fn partition_keys(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.keys[..self.order.partition]
    }

    /// The keys of the order after the partition keys, as texts.
    pub(super) fn order_keys(&self) -> String {
        let ordering = self.ordering().into_iter().flatten().skip(self.order.partition);
        ordering.map(|key| key.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// A batch with what is computed of it.
    pub(super) fn kept(&self, batch: RecordBatch) -> Result<KeptBatch> {
        let key = |key: &Arc<dyn PhysicalExpr>| {
            packable(key.evaluate(&batch)?.into_array(batch.num_rows())?)
        };
        let keys = self.keys.iter().map(key).collect::<Result<_>>()?;
        let arguments = arguments(&self.functions, &batch)?;
        Ok(KeptBatch { batch, keys, arguments })
    }

    /// Bytes that a row takes beside those of its batch.
    pub(super) fn row_bytes(&self) -> usize {
        ROW_BYTES + RESULT_BYTES * self.functions.len()
    }
}

/// Key columns of types that are packed, where there is one of the same order.
fn packable(column: ArrayRef) -> Result<ArrayRef> {
    let packed = match column.data_type() {
        DataType::Dictionary(_, values) => return packable(cast(&column, values)?),
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Boolean => DataType::UInt8,
        _ => return Ok(column),
    };
    Ok(cast(&column, &packed)?)
}

/// The columns that are given out, of those of the input and those of the functions after them.
#[derive(Clone, Debug)]
pub(super) struct OutputColumns {
    pub(super) columns: Vec<usize>,
    pub(super) schema: SchemaRef,
}

impl OutputColumns {
    pub(super) fn all(schema: &SchemaRef) -> Self {
        Self { columns: (0..schema.fields().len()).collect(), schema: Arc::clone(schema) }
    }

    /// Those of them that a projection keeps; `None` if it computes others.
    pub(super) fn projected(&self, projection: &ProjectionExec) -> Option<Self> {
        let column = |of: &ProjectionExpr| {
            let column = of.expr.downcast_ref::<Column>()?;
            self.columns.get(column.index()).copied()
        };
        let columns = projection.expr().iter().map(column).collect::<Option<_>>()?;
        Some(Self { columns, schema: projection.schema() })
    }
}

impl OutputColumns {
    /// These columns of a batch with all.
    pub(super) fn of(&self, all: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.columns.iter().map(|at| Arc::clone(all.column(*at))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(all.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl fmt::Display for OutputColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        f.write_str(&names.join(", "))
    }
}
