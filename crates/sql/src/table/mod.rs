//! The store's tables as DataFusion table providers.
//!
//! A statement sees the version of a table that its transaction pinned. An operator collects its writes and passes them
//! to the transaction as one change, so a statement that fails leaves the table as it was.

mod actions;
mod change;
mod conflict;
pub(crate) mod insert;
pub(crate) mod load;
mod merge;
mod rules;
mod target;
mod update;
mod write;
mod written;

use std::sync::Arc;

use async_trait::async_trait;
use atoll_placement::Strategy;
use atoll_runtime::Runtime;
use atoll_store::TableId;
use atoll_store::database::TransactionReads;
use atoll_store::table::{
    ChunkWriter, Destination, TableDefinition, TableError, TableSnapshot, TableVersion,
    declared_schema, stored_schema,
};
use atoll_topology::NodeId;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{
    DFSchema, ResolvedTableReference, Result, Statistics, plan_datafusion_err, plan_err,
};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use actions::{ActedTable, PlannedActions};
pub(crate) use change::{ChangeKind, ChangedTable};
use insert::Insert;
pub(crate) use merge::{MergeAction, MergedTable};
pub(crate) use rules::{PlannedCheck, PlannedConflict, PlannedUpdate, WriteRules};
pub(crate) use target::{StaleStatement, WriteTarget, fresh};
use write::WriteExec;
pub(crate) use write::count_batch;
pub(crate) use written::{WrittenRows, WrittenRowsPlanner};

use atoll_sql_common::error::{stated_err, table_error};
use atoll_sql_common::names::plain;
use atoll_sql_exec::scan::{IndexLookup, LookupExec, ScanExec, statistics};
use atoll_sql_semantics::arithmetic::assigned;

/// A version of a table, under its name.
#[derive(Clone, Debug)]
pub(crate) struct PlacedTable {
    at: ResolvedTableReference,
    name: Arc<str>,
    id: TableId,
    runtime: Runtime,
    version: Arc<TableVersion>,
    /// The columns as planning sees them.
    schema: SchemaRef,
    /// The target of rows, for an INSERT.
    target: Option<Arc<WriteTarget>>,
    /// The default of each column for an INSERT that leaves it out.
    defaults: Arc<[Option<Expr>]>,
    /// For a materialized view, whether it has the rows of its query.
    populated: Option<bool>,
    /// What takes notes of what a transaction reads.
    reads: Option<TransactionReads>,
}

impl PlacedTable {
    /// The version of a table with a name.
    pub(crate) fn new(
        at: ResolvedTableReference,
        id: TableId,
        version: Arc<TableVersion>,
        runtime: Runtime,
    ) -> Self {
        let (name, schema) = (plain(&at).into(), Arc::clone(&version.definition().columns));
        let (target, defaults, populated, reads) = (None, Arc::new([]), None, None);
        Self { at, name, id, runtime, version, schema, target, defaults, populated, reads }
    }

    /// The same table, noted there when it is read.
    pub(crate) fn noting(self, reads: Option<TransactionReads>) -> Self {
        Self { reads, ..self }
    }

    /// Notes that rows of the table are read: those that a lookup finds, or any.
    fn note_read(&self, lookup: Option<&IndexLookup>) {
        let Some(reads) = &self.reads else { return };
        match lookup.and_then(IndexLookup::unique_key) {
            Some((unique, Some(key))) => reads.note_key(self.id, unique, key),
            Some((_, None)) => {}
            None => reads.note_table(self.id),
        }
    }

    /// The table of a materialized view.
    pub(crate) fn materialized(self, is_populated: bool) -> Self {
        Self { populated: Some(is_populated), ..self }
    }

    /// Whether it is a materialized view.
    pub(crate) fn is_materialized(&self) -> bool {
        self.populated.is_some()
    }

    /// Whether it can be read.
    pub(crate) fn is_readable(&self) -> bool {
        self.populated != Some(false)
    }

    /// Refuses changes of a materialized view's rows.
    pub(crate) fn check_changeable(&self) -> Result<()> {
        match self.is_materialized() {
            true => stated_err!(
                WRONG_OBJECT_TYPE,
                "cannot change materialized view \"{}\"; REFRESH MATERIALIZED VIEW computes its rows again",
                self.name
            ),
            false => Ok(()),
        }
    }

    /// The same table in another version.
    pub(crate) fn in_version(&self, version: Arc<TableVersion>) -> Self {
        Self { version, ..self.clone() }
    }

    /// The same table without its rows, for cached plans: they must not keep dropped chunks alive.
    pub(crate) fn without_rows(&self) -> Result<Self> {
        let (name, definition) = (Arc::clone(self.version.name()), Arc::clone(self.definition()));
        let empty = TableVersion::new(name, definition, self.destination().clone());
        Ok(self.in_version(Arc::new(empty.map_err(table_error)?)).noting(None))
    }

    /// The table as the target of an INSERT: DataFusion 55 gives VALUES the target's columns, and fails on a NULL in
    /// them with a message that names neither. Writing the rows reports it instead.
    pub(crate) fn as_target(&self, target: WriteTarget, defaults: Vec<Option<Expr>>) -> Self {
        let schema = self.written_schema();
        Self { schema, target: Some(Arc::new(target)), defaults: defaults.into(), ..self.clone() }
    }

    /// The table for planning expressions over its rows.
    pub(crate) fn as_rows(&self) -> Self {
        let schema = self.written_schema();
        Self { schema, ..self.clone() }
    }

    /// The columns, all nullable.
    fn nullable_fields(&self) -> impl Iterator<Item = Field> {
        self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true))
    }

    /// Its full name.
    pub(crate) fn at(&self) -> &ResolvedTableReference {
        &self.at
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its identity, independent of its name.
    pub(crate) fn id(&self) -> TableId {
        self.id
    }

    /// Its declarations.
    pub(crate) fn definition(&self) -> &Arc<TableDefinition> {
        self.version.definition()
    }

    /// Type of a column.
    pub(crate) fn type_of(&self, column: usize) -> DataType {
        self.columns().field(column).data_type().clone()
    }

    /// The workers that fill it.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Its rows and indexes.
    pub(crate) fn version(&self) -> &Arc<TableVersion> {
        &self.version
    }

    /// A writer on `node` of chunks for this table, the first of which has the number `first`.
    pub(crate) fn writer(&self, node: NodeId, first: usize) -> ChunkWriter {
        let (name, schema) = (Arc::clone(&self.name), Arc::clone(self.columns()));
        ChunkWriter::new(name, schema, self.destination().clone(), node, first)
    }

    /// Its columns as stored.
    pub(crate) fn columns(&self) -> &SchemaRef {
        &self.definition().columns
    }

    /// The snapshot that its scans read. The first call after rows changed puts them into chunks.
    ///
    /// # Errors
    /// If there is not enough memory for them.
    pub(crate) fn snapshot(&self) -> Result<Arc<TableSnapshot>> {
        self.note_read(None);
        self.version.view().map_err(table_error)
    }

    /// The placement of its chunks.
    pub(crate) fn strategy(&self) -> &Strategy {
        &self.definition().placement
    }

    fn destination(&self) -> &Destination {
        self.version.destination()
    }

    /// Reads the table: the rows that an index finds, or all rows that pass the filters. With `ids` the row ids follow the
    /// columns, under this name.
    fn read(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
        ids: Option<&str>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.is_readable() {
            return stated_err!(
                NOT_IN_PREREQUISITE_STATE,
                "materialized view \"{0}\" has not been populated; use REFRESH MATERIALIZED VIEW {0}",
                self.name
            );
        }
        let conjuncts = conjuncts(state, self.columns(), filters)?;
        let name = Arc::clone(&self.name);
        if let Some(lookup) = IndexLookup::from_conjuncts(&self.version, &conjuncts)? {
            self.note_read(Some(&lookup));
            let all = || (0..self.columns().fields().len()).collect();
            let projection = projection.cloned().unwrap_or_else(all);
            let version = Arc::clone(&self.version);
            return Ok(Arc::new(LookupExec::new(name, version, lookup, projection, ids)?));
        }
        let (snapshot, runtime) = (self.snapshot()?, self.runtime.clone());
        let scan = ScanExec::new(name, runtime, snapshot, projection, conjuncts, limit)?;
        let scan = scan.with_indexes(&self.version);
        Ok(match ids {
            Some(ids) => Arc::new(scan.with_ids(ids)?),
            None => Arc::new(scan),
        })
    }

    /// The columns of written rows, all nullable, since they are still to be checked.
    pub(crate) fn written_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.nullable_fields().collect::<Vec<_>>()))
    }

    /// Casts rows to the types of the columns.
    pub(crate) fn assigned(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let mut columns = rows.columns().iter().zip(self.columns().fields());
        match columns.all(|(column, field)| column.data_type() == field.data_type()) {
            true => Ok(rows),
            false => self.typed(&rows),
        }
    }

    /// A batch with the columns of the table, in its names and types.
    pub(crate) fn typed(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(self.columns().fields());
        let columns =
            columns.map(|(column, field)| match column.data_type() == field.data_type() {
                true => Ok(Arc::clone(column)),
                false => assigned(column, field.data_type()),
            });
        Ok(RecordBatch::try_new(self.written_schema(), columns.collect::<Result<_, _>>()?)?)
    }

    /// Refuses NULL in columns that are NOT NULL.
    pub(crate) fn check_nulls(&self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().zip(self.columns().fields());
        for (row_column, field) in columns {
            if !field.is_nullable() && row_column.logical_null_count() > 0 {
                let (column, table) = (field.name().clone(), self.name.to_string());
                return Err(table_error(TableError::Null { column, table }));
            }
        }
        Ok(())
    }

    /// The target of its rows.
    ///
    /// # Errors
    /// If it is not the target of an INSERT.
    pub(crate) fn insert_target(&self) -> Result<&Arc<WriteTarget>> {
        let target = self.target.as_ref();
        target.ok_or_else(|| {
            plan_datafusion_err!("table '{}' is not the target of this statement", self.name)
        })
    }

    /// Inserts the rows of a plan; with `returning` it returns them, else their number.
    pub(crate) fn insert_exec(
        &self,
        input: Arc<dyn ExecutionPlan>,
        returning: bool,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let insert = Insert { table: self.clone(), target: Arc::clone(self.insert_target()?) };
        let schema = returning.then(|| self.written_schema());
        Ok(Arc::new(WriteExec::new(Arc::new(insert), input, schema)))
    }
}

#[async_trait]
impl TableProvider for PlacedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let all: Vec<usize> = (0..self.columns().fields().len()).collect();
        Some(statistics(&*self.snapshot().ok()?, &all))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match filter.is_volatile() {
            true => TableProviderFilterPushDown::Unsupported,
            false => TableProviderFilterPushDown::Exact,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.read(state, projection, filters, limit, None)
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if op != InsertOp::Append {
            return plan_err!(
                "{op} is not supported on table '{}'; use CREATE OR REPLACE TABLE … AS",
                self.name
            );
        }
        self.insert_exec(input, false)
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        let column = self.schema.index_of(column).ok()?;
        self.defaults.get(column)?.as_ref()
    }
}

/// The columns in which a table stores a query's result; all nullable.
pub(crate) fn stored_columns(schema: &Schema) -> SchemaRef {
    declared_schema(&stored_schema(schema), &[])
}

/// A failing row as PostgreSQL shows it: `(1, NULL, two)`.
fn text_of_row(rows: &RecordBatch, row: usize) -> String {
    let value = |column: &ArrayRef| match column.is_null(row) {
        true => "NULL".to_owned(),
        false => array_value_to_string(column, row).unwrap_or_default(),
    };
    let values: Vec<String> = rows.columns().iter().map(value).collect();
    format!("failing row contains ({})", values.join(", "))
}

/// The filters over the table's columns, one predicate per conjunct.
fn conjuncts(
    state: &dyn Session,
    schema: &Schema,
    filters: &[Expr],
) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    let schema = DFSchema::try_from(schema.clone())?;
    let mut conjuncts = Vec::new();
    for filter in filters {
        let predicate = state.create_physical_expr(filter.clone(), &schema)?;
        conjuncts.extend(split_conjunction(&predicate).into_iter().cloned());
    }
    Ok(conjuncts)
}
