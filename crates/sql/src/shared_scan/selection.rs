//! Statements that fit a shared scan: a select list, aggregates, an order or a limit over the rows of one table that
//! pass tests of single columns. They are compiled once and bound to values whenever they run.

use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::clock_scan::BatchQuery;
use atoll_store::database::DatabaseVersion;
use atoll_store::table::TableDefinition;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use datafusion::physical_expr::PhysicalExpr;

use super::above::{PlanAbove, only_scan};
use super::filters::{ColumnFilter, merged};
use super::table_scan::{AloneQuery, ScanAnswer, TableScan as SharedTableScan};
use crate::compiled::{Parameters, has_unknown_types, one_row, select_list};
use crate::database::{Database, Workers};
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
    /// Whether the ids of the rows come before what is computed of them.
    with_ids: bool,
    result: SelectionResult,
    schema: SchemaRef,
}

/// What becomes of the rows that pass.
#[derive(Debug)]
enum SelectionResult {
    /// They are the result.
    Columns,
    /// A select list, over their columns and behind these the parameters.
    Values(Vec<Arc<dyn PhysicalExpr>>),
    /// Aggregates, sorting, a limit.
    Above(PlanAbove),
}

/// The columns that a statement reads, and what becomes of them.
struct ReadRows {
    projection: Vec<usize>,
    result: SelectionResult,
}

/// The result of a selection, and the memory that is charged for it while it is kept.
#[derive(Debug)]
pub(crate) struct ScannedRows {
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) charge: Arc<MemoryReservation>,
}

/// The rows that a cycle found.
#[derive(Debug)]
pub(crate) struct VersionRows {
    pub(super) batches: Vec<RecordBatch>,
    /// What the cycle read.
    pub(super) version: Arc<DatabaseVersion>,
    pub(super) charge: Arc<MemoryReservation>,
}

/// A statement with its values.
#[derive(Debug)]
pub(crate) struct BoundSelection<'s> {
    selection: &'s SharedSelection,
    query: BatchQuery,
    parameters: RecordBatch,
}

/// Whether a selection from one table rides shared scans, as EXPLAIN says it; none for other plans.
pub(crate) fn sharing(
    state: &SessionState,
    plan: &LogicalPlan,
    parameters: &Parameters,
) -> Result<Option<String>> {
    let Some(scan) = only_scan(plan)? else { return Ok(None) };
    let provider = source_as_provider(&scan.source)?;
    let Some(table) = provider.downcast_ref::<PlacedTable>() else { return Ok(None) };
    let value = |expr: &Expr| parameters.value(state, expr);
    let mut conditions = Vec::new();
    for filter in scan.filters.iter().flat_map(split_conjunction) {
        if ColumnFilter::new(filter, &table.definition().columns, &value)?.is_none() {
            return Ok(Some(format!("no: {filter} is not a comparison of one column with values")));
        }
        conditions.push(filter.to_string());
    }
    let rides = !conditions.is_empty();
    Ok(rides.then(|| format!("with others that wait: {}", conditions.join(", "))))
}

impl SharedSelection {
    /// Compiles an optimized plan; none where it does not fit.
    pub(crate) async fn compile(
        state: &SessionState,
        plan: &LogicalPlan,
        parameters: &Parameters,
    ) -> Result<Option<Self>> {
        if has_unknown_types(plan) {
            return Ok(None);
        }
        let list = select_list(plan);
        let scan = match &list {
            Some((_, scan)) => *scan,
            None => match only_scan(plan)? {
                Some(scan) if scan.fetch.is_none() => scan,
                _ => return Ok(None),
            },
        };
        let provider = source_as_provider(&scan.source)?;
        let Some(table) = provider.downcast_ref::<PlacedTable>() else { return Ok(None) };
        let columns = Arc::clone(&table.definition().columns);
        let Some(filters) = column_filters(state, scan, &columns, parameters)? else {
            return Ok(None);
        };
        let read = match list {
            Some((exprs, _)) => ReadRows::listed(state, exprs, scan, &columns, parameters)?,
            None => match PlanAbove::new(state, plan).await? {
                Some(above) => ReadRows::above(above, &columns),
                None => return Ok(None),
            },
        };
        let Some(ReadRows { projection, result }) = read else { return Ok(None) };
        let schema = match &result {
            SelectionResult::Above(above) => above.schema(),
            _ => Arc::clone(plan.schema().inner()),
        };
        Ok(Some(Self {
            table: table.id(),
            name: table.name().into(),
            definition: Arc::clone(table.definition()),
            filters,
            projection: projection.into(),
            with_ids: false,
            result,
            schema,
        }))
    }

    /// Compiles the query of a change: a select list over its scan, the first of which is the id, and the columns of
    /// both.
    pub(super) fn of_ids(
        state: &SessionState,
        (exprs, scan, schema): (Vec<Expr>, &TableScan, SchemaRef),
        table: &PlacedTable,
        parameters: &Parameters,
    ) -> Result<Option<Self>> {
        let columns = Arc::clone(&table.definition().columns);
        let Some(filters) = column_filters(state, scan, &columns, parameters)? else {
            return Ok(None);
        };
        let values = exprs.into_iter().skip(1).collect();
        let read = ReadRows::listed(state, values, scan, &columns, parameters)?;
        let Some(ReadRows { projection, result }) = read else { return Ok(None) };
        Ok(Some(Self {
            table: table.id(),
            name: table.name().into(),
            definition: Arc::clone(table.definition()),
            filters,
            projection: projection.into(),
            with_ids: true,
            result,
            schema,
        }))
    }

    /// Whether its table is declared as it was.
    pub(crate) fn is_current(&self, version: &DatabaseVersion) -> bool {
        let table = version.table(self.table);
        table.is_some_and(|table| Arc::ptr_eq(table.definition(), &self.definition))
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
        let (projection, with_ids) = (Arc::clone(&self.projection), self.with_ids);
        let query = |tests| BatchQuery { tests, projection, with_ids, limit: usize::MAX };
        Ok(tests.map(|tests| BoundSelection { selection: self, query: query(tests), parameters }))
    }
}

impl BoundSelection<'_> {
    /// Counts the query as one that runs by itself, where no other one waits or runs; none where it should ride.
    pub(crate) fn alone(&self, database: &Database, workers: &Workers) -> Option<AloneQuery> {
        self.selection.scan(database, workers).alone()
    }

    /// Rides the next cycle; none where the ordinary way has to answer: the table was altered, or the rows
    /// are too many.
    pub(crate) async fn ride(
        self,
        database: &Database,
        workers: &Workers,
        state: impl FnOnce() -> SessionState,
    ) -> Result<Option<ScannedRows>> {
        let selection = self.selection;
        let Some(found) = self.find(database, workers).await? else { return Ok(None) };
        let VersionRows { batches, charge, .. } = found;
        let batches = match &selection.result {
            SelectionResult::Above(above) => {
                let (above, state) = (above.clone(), state());
                workers.run(async move { above.run(batches, &state).await }).await?
            }
            _ => batches,
        };
        Ok(Some(ScannedRows { batches, charge }))
    }

    /// The rows that the next cycle finds; none as [`ride`](Self::ride).
    pub(crate) async fn find(
        self,
        database: &Database,
        workers: &Workers,
    ) -> Result<Option<VersionRows>> {
        let Self { selection, query, parameters } = self;
        let scan = selection.scan(database, workers);
        let definition = Arc::clone(&selection.definition);
        let answered = match scan.ask(database, workers.clone(), definition, query).await? {
            ScanAnswer::Rows(answered) => answered,
            ScanAnswer::Elsewhere => return Ok(None),
        };
        let batches = answered.parts.into_iter();
        let batches = batches.map(|(columns, rows)| selection.batch(columns, rows, &parameters));
        let batches = batches.collect::<Result<_>>()?;
        Ok(Some(VersionRows { batches, version: answered.version, charge: answered.charge }))
    }
}

impl SharedSelection {
    fn scan(&self, database: &Database, workers: &Workers) -> Arc<SharedTableScan> {
        let version = database.store().published();
        database.shared_scans().of(self.table, &self.name, workers.pool(), &version)
    }

    /// Rows that a worker found, as far as they are computed one by one.
    fn batch(
        &self,
        mut columns: Vec<ArrayRef>,
        rows: usize,
        parameters: &RecordBatch,
    ) -> Result<RecordBatch> {
        let ids = if self.with_ids { columns.pop() } else { None };
        let columns = match &self.result {
            SelectionResult::Values(values) => evaluated(values, columns, rows, parameters)?,
            _ => columns,
        };
        let schema = match &self.result {
            SelectionResult::Above(above) => above.rows(),
            _ => &self.schema,
        };
        let columns = ids.into_iter().chain(columns).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }
}

impl ReadRows {
    /// For a select list: its columns, or what it computes of them.
    fn listed(
        state: &SessionState,
        exprs: Vec<Expr>,
        scan: &TableScan,
        columns: &Schema,
        parameters: &Parameters,
    ) -> Result<Option<Self>> {
        let plain: Option<Vec<usize>> =
            exprs.iter().map(|expr| plain_column(expr, columns)).collect();
        if let Some(projection) = plain {
            return Ok(Some(Self { projection, result: SelectionResult::Columns }));
        }
        let mut projection: Vec<usize> = Vec::new();
        for column in exprs.iter().flat_map(Expr::column_refs) {
            let Ok(at) = columns.index_of(&column.name) else { return Ok(None) };
            if !projection.contains(&at) {
                projection.push(at);
            }
        }
        let read = Arc::new(columns.project(&projection)?);
        let row = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &read)?;
        let values = exprs.into_iter().map(|expr| parameters.over(state, expr, &row));
        let result = SelectionResult::Values(values.collect::<Result<_>>()?);
        Ok(Some(Self { projection, result }))
    }

    /// For a plan above the scan: the columns of the scan.
    fn above(above: PlanAbove, columns: &Schema) -> Option<Self> {
        let fields = above.rows().fields().iter();
        let projection = fields.map(|field| columns.index_of(field.name()).ok());
        let projection = projection.collect::<Option<_>>()?;
        Some(Self { projection, result: SelectionResult::Above(above) })
    }
}

/// The filters of a scan; none where one of them does not fit.
fn column_filters(
    state: &SessionState,
    scan: &TableScan,
    columns: &Schema,
    parameters: &Parameters,
) -> Result<Option<Vec<ColumnFilter>>> {
    let value = |expr: &Expr| parameters.value(state, expr);
    let filters = scan.filters.iter().flat_map(split_conjunction);
    filters.map(|filter| ColumnFilter::new(filter, columns, &value)).collect()
}

/// The select list over rows, behind whose columns are the parameters.
fn evaluated(
    values: &[Arc<dyn PhysicalExpr>],
    mut columns: Vec<ArrayRef>,
    rows: usize,
    parameters: &RecordBatch,
) -> Result<Vec<ArrayRef>> {
    for parameter in parameters.columns() {
        let value = ScalarValue::try_from_array(parameter, 0)?;
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
