//! RETURNING of statements about one row by its key, or with listed rows.

use std::sync::Arc;

use atoll_store::table::{Row, TableVersion};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::PhysicalExpr;

use super::compile::read_columns;
use super::run::{PointValues, taken};
use crate::compiled::{Parameters, projected};
use crate::table::{PlacedTable, WrittenRows};
use atoll_sql_common::error::table_error;

/// The RETURNING list of a plan.
pub(super) struct ReturningList<'p> {
    pub(super) written: &'p WrittenRows,
    exprs: Vec<Expr>,
    schema: SchemaRef,
}

/// The same, compiled.
#[derive(Debug)]
pub(super) struct ReturnedRows {
    /// The columns read from the table.
    columns: Vec<usize>,
    /// These, followed by the parameters.
    row: SchemaRef,
    values: Vec<Arc<dyn PhysicalExpr>>,
    /// The names of the values.
    pub(super) schema: SchemaRef,
}

impl<'p> ReturningList<'p> {
    /// The list of an optimized plan; `None` if it does more than select from written rows.
    pub(super) fn try_from_plan(plan: &'p LogicalPlan) -> Option<Self> {
        let (exprs, LogicalPlan::Extension(leaf)) = projected(plan)? else { return None };
        let written = leaf.node.as_any().downcast_ref()?;
        Some(Self { written, exprs, schema: Arc::clone(plan.schema().inner()) })
    }

    /// Compiles the list over rows of a table; `None` if it reads other tables too.
    pub(super) fn compile(
        self,
        state: &SessionState,
        table: &PlacedTable,
        parameters: &Parameters,
    ) -> Result<Option<ReturnedRows>> {
        let (all, written) = (table.written_schema(), self.written.schema());
        let Some((Some(called), _)) = written.iter().next() else { return Ok(None) };
        if written.inner().fields() != all.fields() || self.exprs.iter().any(Expr::is_volatile) {
            return Ok(None);
        }
        let columns = read_columns(table, &self.exprs);
        let row = DFSchema::try_from_qualified_schema(called.clone(), &all.project(&columns)?)?;
        let values =
            self.exprs.into_iter().map(|expr| parameters.physical(state, expr, Some(&row), None));
        let values = values.collect::<Result<_>>()?;
        let row = parameters.behind(&row)?;
        Ok(Some(ReturnedRows { columns, row, values, schema: self.schema }))
    }
}

impl ReturnedRows {
    /// Evaluates the list over rows of the table.
    pub(super) fn of_rows(
        &self,
        table: &TableVersion,
        rows: &[Row],
        parameters: &PointValues<'_>,
    ) -> Result<RecordBatch> {
        let read = table.codec().decode_arrays(rows, &self.columns).map_err(table_error)?;
        self.select(read, rows.len(), parameters)
    }

    /// Evaluates the list over a batch with all columns of the table.
    pub(super) fn of_batch(
        &self,
        rows: &RecordBatch,
        parameters: &PointValues<'_>,
    ) -> Result<RecordBatch> {
        let read = self.columns.iter().map(|at| Arc::clone(rows.column(*at))).collect();
        self.select(read, rows.num_rows(), parameters)
    }

    fn select(
        &self,
        mut read: Vec<ArrayRef>,
        rows: usize,
        parameters: &PointValues<'_>,
    ) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = |schema: &SchemaRef, columns| {
            RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        };
        if let Some(taken) = taken(&self.values, read.len()) {
            return Ok(batch(&self.schema, taken.map(|at| Arc::clone(&read[at])).collect())?);
        }
        // After the parameters of the statement come sequence numbers, which it does not read.
        let given = self.row.fields().len() - read.len();
        let given = parameters.values.iter().take(given).map(|value| value.to_array_of_size(rows));
        read.extend(given.collect::<Result<Vec<_>>>()?);
        let row = batch(&self.row, read)?;
        let values = self.values.iter().map(|value| value.evaluate(&row)?.into_array(rows));
        Ok(batch(&self.schema, values.collect::<Result<_>>()?)?)
    }
}
