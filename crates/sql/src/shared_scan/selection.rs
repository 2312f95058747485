//! Statements that fit a shared scan: a select list, aggregates, an order or a limit over the rows of one table that
//! pass tests of single columns. They are compiled once and bound to values at each execution.

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
    /// Columns read from the rows that pass.
    projection: Arc<[usize]>,
    /// Whether the row ids come before the computed columns.
    with_ids: bool,
    result: SelectionResult,
    schema: SchemaRef,
}

/// The processing of the rows that pass.
#[derive(Debug)]
enum SelectionResult {
    /// Returned as they are.
    Columns,
    /// A select list, over their columns followed by the parameters.
    Values(Vec<Arc<dyn PhysicalExpr>>),
    /// Aggregates, sorting, a limit.
    Above(PlanAbove),
}

/// The columns that a statement reads, and their processing.
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
    /// The version that the cycle read.
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

/// The EXPLAIN text on whether a selection from one table shares scans; `None` for other plans.
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
        match ColumnFilter::new(filter, &table.definition().columns, &value)? {
            None => {
                let reason = format!("no: {filter} is not a comparison of one column with values");
                return Ok(Some(reason));
            }
            Some(compared) if is_indexed(&compared, table.definition()) => {
                return Ok(Some(format!("no: an index has the column of {filter}")));
            }
            Some(_) => {}
        }
        conditions.push(filter.to_string());
    }
    let rides = !conditions.is_empty();
    Ok(rides.then(|| format!("with others that wait: {}", conditions.join(", "))))
}

impl SharedSelection {
    /// Compiles an optimized plan; `None` if it does not fit.
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
        if !table.is_readable() {
            return Ok(None);
        }
        let columns = Arc::clone(&table.definition().columns);
        let Some(filters) = column_filters(state, scan, table.definition(), parameters)? else {
            return Ok(None);
        };
        let read = match list {
            Some((exprs, _)) => ReadRows::listed(state, exprs, scan, &columns, parameters)?,
            None => match PlanAbove::new(state, plan).await? {
                Some(above) => ReadRows::above(above, &columns),
                None => return Ok(None),
            },
        };
        let Some(read) = read else { return Ok(None) };
        let schema = match &read.result {
            SelectionResult::Above(above) => above.schema(),
            _ => Arc::clone(plan.schema().inner()),
        };
        Ok(Some(Self::new(table, filters, read, schema, false)))
    }

    /// Compiles the query of a change: a select list over its scan, which begins with the id, and the columns of both.
    pub(super) fn of_ids(
        state: &SessionState,
        (exprs, scan, schema): (Vec<Expr>, &TableScan, SchemaRef),
        table: &PlacedTable,
        parameters: &Parameters,
    ) -> Result<Option<Self>> {
        let columns = Arc::clone(&table.definition().columns);
        let Some(filters) = column_filters(state, scan, table.definition(), parameters)? else {
            return Ok(None);
        };
        let values = exprs.into_iter().skip(1).collect();
        let read = ReadRows::listed(state, values, scan, &columns, parameters)?;
        Ok(read.map(|read| Self::new(table, filters, read, schema, true)))
    }

    fn new(
        table: &PlacedTable,
        filters: Vec<ColumnFilter>,
        ReadRows { projection, result }: ReadRows,
        schema: SchemaRef,
        with_ids: bool,
    ) -> Self {
        let (table, name, definition) =
            (table.id(), table.name().into(), Arc::clone(table.definition()));
        let projection = projection.into();
        Self { table, name, definition, filters, projection, with_ids, result, schema }
    }

    /// Whether the definition of its table is unchanged.
    pub(crate) fn is_current(&self, version: &DatabaseVersion) -> bool {
        let table = version.table(self.table);
        table.is_some_and(|table| Arc::ptr_eq(table.definition(), &self.definition))
    }

    /// The columns of the result.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Binds the statement to these values; `None` if one of them requires normal execution.
    pub(crate) fn bind(&self, parameters: &[ArrayRef]) -> Result<Option<BoundSelection<'_>>> {
        let parameters = one_row(parameters)?;
        let filters = self.filters.iter().map(|filter| filter.bind(&parameters));
        let tests = filters.collect::<Result<Option<_>>>()?.map(merged);
        let (projection, with_ids) = (Arc::clone(&self.projection), self.with_ids);
        let query = |tests| BatchQuery { tests, projection, with_ids, limit: usize::MAX };
        Ok(tests.map(|tests| BoundSelection { selection: self, query: query(tests), parameters }))
    }
}

impl BoundSelection<'_> {
    /// Counts the query as running alone, if no other one waits or runs; `None` if it should ride.
    pub(crate) fn alone(&self, database: &Database, workers: &Workers) -> Option<AloneQuery> {
        self.selection.scan(database, workers).alone()
    }

    /// Rides the next cycle; `None` if normal execution has to answer: the table was altered, or there are too many
    /// rows.
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

    /// The rows that the next cycle finds; `None` as in [`ride`](Self::ride).
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
        database.shared_scans().get_or_create(self.table, &self.name, workers.pool(), &version)
    }

    /// The output for rows that a worker found, if they are computed one by one.
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
    /// For a select list: its columns or computed values.
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

/// The filters of a scan; `None` if one of them does not fit.
fn column_filters(
    state: &SessionState,
    scan: &TableScan,
    definition: &TableDefinition,
    parameters: &Parameters,
) -> Result<Option<Vec<ColumnFilter>>> {
    let value = |expr: &Expr| parameters.value(state, expr);
    let filters = scan.filters.iter().flat_map(split_conjunction);
    let filters = filters.map(|filter| ColumnFilter::new(filter, &definition.columns, &value));
    let filters = filters.collect::<Result<Option<Vec<ColumnFilter>>>>()?;
    Ok(filters.filter(|filters| !filters.iter().any(|filter| is_indexed(filter, definition))))
}

/// Whether an index may find the rows that pass a filter sooner than a scan: the statement is planned, which counts them.
fn is_indexed(filter: &ColumnFilter, definition: &TableDefinition) -> bool {
    let mut indexes = definition.indexes.iter();
    let ranged = filter.ranged();
    ranged.is_some() && indexes.any(|index| ranged == index.keys.first().map(|key| key.column))
}

/// The select list over rows followed by the parameters.
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
