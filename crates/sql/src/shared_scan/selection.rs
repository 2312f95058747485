//! Statements that fit a shared scan: a select list over the rows of one table that pass tests of single
//! columns. They are compiled once and bound to values whenever they run.

use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::clock_scan::BatchQuery;
use atoll_store::table::TableDefinition;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;

use super::filters::{ColumnFilter, merged};
use super::table_scan::{AloneQuery, ScanAnswer};
use crate::database::Database;
use crate::session::{Parameters, one_row, select_list};
use crate::table::PlacedTable;

/// A statement that fits; see the module.
#[derive(Debug)]
pub(crate) struct SharedSelection {
    table: TableId,
    name: Arc<str>,
    definition: Arc<TableDefinition>,
    filters: Vec<ColumnFilter>,
    /// Columns that are read of the rows that pass.
    projection: Arc<[usize]>,
    /// The select list, over these columns and behind them the parameters; none where it is these columns.
    values: Option<Vec<Arc<dyn PhysicalExpr>>>,
    schema: SchemaRef,
    limit: usize,
}

/// A statement with its values.
#[derive(Debug)]
pub(crate) struct BoundSelection<'s> {
    selection: &'s SharedSelection,
    query: BatchQuery,
    parameters: RecordBatch,
}

impl SharedSelection {
    /// Compiles an optimized plan; none where it does not fit.
    pub(crate) fn compile(
        state: &SessionState,
        plan: &LogicalPlan,
        parameters: &Parameters,
    ) -> Result<Option<Self>> {
        let Some((exprs, scan)) = select_list(plan) else { return Ok(None) };
        // The type of a parameter by itself is known when it has its value.
        if plan.schema().fields().iter().any(|field| field.data_type().is_null()) {
            return Ok(None);
        }
        let provider = datafusion::catalog::default_table_source::source_as_provider(&scan.source)?;
        let Some(table) = provider.downcast_ref::<PlacedTable>() else { return Ok(None) };
        let columns = Arc::clone(&table.definition().columns);
        let value = |expr: &Expr| parameters.value(state, expr);
        let mut filters = Vec::new();
        for filter in scan.filters.iter().flat_map(split_conjunction) {
            match ColumnFilter::new(filter, &columns, &value)? {
                Some(filter) => filters.push(filter),
                None => return Ok(None),
            }
        }
        let mut projection: Vec<usize> = Vec::new();
        for expr in &exprs {
            for column in expr.column_refs() {
                let Ok(at) = columns.index_of(&column.name) else { return Ok(None) };
                if !projection.contains(&at) {
                    projection.push(at);
                }
            }
        }
        let plain: Option<Vec<usize>> =
            exprs.iter().map(|expr| plain_column(expr, &columns)).collect();
        let (projection, values) = match plain {
            Some(plain) => (plain, None),
            None => {
                let read = Arc::new(columns.project(&projection)?);
                let row = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &read)?;
                let values = exprs.into_iter().map(|expr| parameters.over(state, expr, &row));
                (projection, Some(values.collect::<Result<_>>()?))
            }
        };
        Ok(Some(Self {
            table: table.id(),
            name: table.name().into(),
            definition: Arc::clone(table.definition()),
            filters,
            projection: projection.into(),
            values,
            schema: Arc::clone(plan.schema().inner()),
            limit: usize::MAX,
        }))
    }

    /// The columns of the result.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The statement with these values; none where one of them needs the ordinary way.
    pub(crate) fn bind(&self, parameters: &[ArrayRef]) -> Result<Option<BoundSelection<'_>>> {
        let parameters = one_row(parameters)?;
        let filters = self.filters.iter().map(|filter| filter.bind(&parameters));
        let tests = merged(filters.collect::<Result<_>>()?);
        let projection = Arc::clone(&self.projection);
        let query = |tests| BatchQuery { tests, projection, with_ids: false, limit: self.limit };
        Ok(tests.map(|tests| BoundSelection { selection: self, query: query(tests), parameters }))
    }
}

impl BoundSelection<'_> {
    /// Counts the query as one that runs by itself, where no other one waits or runs; none where it should ride.
    pub(crate) fn alone(&self, database: &Database) -> Option<AloneQuery> {
        database.shared_scans().of(self.selection.table, &self.selection.name).alone()
    }

    /// Rides the next cycle; none where the ordinary way has to answer: the table was altered, or the rows
    /// are too many.
    pub(crate) async fn ride(self, database: &Database) -> Result<Option<Vec<RecordBatch>>> {
        let Self { selection, query, parameters } = self;
        let scan = database.shared_scans().of(selection.table, &selection.name);
        let definition = Arc::clone(&selection.definition);
        let parts = match scan.ask(database, definition, query).await? {
            ScanAnswer::Rows(parts) => parts,
            ScanAnswer::Elsewhere => return Ok(None),
        };
        let batches = parts.parts.into_iter().map(|(columns, rows)| {
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let columns = match &selection.values {
                None => columns,
                Some(values) => evaluated(values, columns, rows, &parameters)?,
            };
            Ok(RecordBatch::try_new_with_options(Arc::clone(&selection.schema), columns, &options)?)
        });
        batches.collect::<Result<Vec<_>>>().map(Some)
    }
}

/// The select list over rows, behind whose columns are the parameters.
fn evaluated(
    values: &[Arc<dyn PhysicalExpr>],
    mut columns: Vec<ArrayRef>,
    rows: usize,
    parameters: &RecordBatch,
) -> Result<Vec<ArrayRef>> {
    for parameter in parameters.columns() {
        let value = datafusion::common::ScalarValue::try_from_array(parameter, 0)?;
        columns.push(value.to_array_of_size(rows)?);
    }
    let fields = columns.iter().map(|column| Field::new("", column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
    values.iter().map(|value| value.evaluate(&batch)?.into_array(rows)).collect()
}

fn plain_column(expr: &Expr, columns: &Schema) -> Option<usize> {
    match expr {
        Expr::Column(Column { name, .. }) => columns.index_of(name).ok(),
        Expr::Alias(alias) => plain_column(&alias.expr, columns),
        _ => None,
    }
}
