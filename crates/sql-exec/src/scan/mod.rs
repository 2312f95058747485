//! Scanning tables in placed memory.
//!
//! ```text
//! node 0   chunk 0  chunk 1 │ worker 0 ─► partition 0 ─► zones ─► tests on stored columns
//!          chunk 2  chunk 3 │ worker 1 ─► partition 1      ─► conjuncts on decoded rows
//! node 1   chunk 4  chunk 5 │ worker 2 ─► partition 2        ─► decode what is projected
//!          chunk 6  chunk 7 │ worker 3 ─► partition 3          ─► batches
//! ```
//!
//! A [`ScanExec`] reads the snapshot that was current when the query was planned. Filters, those
//! that joins derive at run time included, are evaluated here, and only the surviving rows of the
//! projected columns are decoded.

pub mod assign;
mod condition;
mod estimate;
mod filter;
mod index_ranges;
mod lookup;
mod progress;
mod row_condition;
mod statistics;
mod stored_predicate;
mod stream;

pub use condition::{ColumnCondition, ConditionKind};
pub(crate) use estimate::scaled;
pub use lookup::{IndexLookup, LookupExec};
pub use progress::ScanProgress;
pub use row_condition::{key_function, row_condition};

pub use statistics::statistics;
pub use statistics::whole;
pub use stored_predicate::whole_number;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use atoll_runtime::{Runtime, WorkerId};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Result, SplitPoint, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_expr::utils::{collect_columns, conjunction, reassign_expr_columns};
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
    RangePartitioning,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::memory::Gauge;
use assign::{Cuts, RowRange};
use atoll_sql_common::names::row_id_field;
use atoll_sql_common::operator::leaf;
use atoll_store::table::{TableSnapshot, TableVersion};

/// Reads the pinned snapshot of one table; see the module.
#[derive(Clone, Debug)]
pub struct ScanExec {
    table: Arc<str>,
    runtime: Runtime,
    snapshot: Arc<TableSnapshot>,
    /// What the snapshot shows, if it has ordered indexes.
    indexed: Option<Arc<TableVersion>>,
    projection: Vec<usize>,
    /// Whether the ids of the rows follow these columns.
    with_ids: bool,
    schema: SchemaRef,
    /// Conjuncts over the table's schema.
    fixed: Vec<Arc<dyn PhysicalExpr>>,
    /// Filters of operators above, over the table's schema, tightened while the query runs.
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    parts: Arc<Vec<Vec<RowRange>>>,
    /// The cuts of the partitions by key, if any.
    cuts: Option<Cuts>,
    fetch: Option<usize>,
    /// Share of rows that pass the fixed conjuncts, as estimated on a sample.
    selectivity: f64,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ScanExec {
    /// A scan of the snapshot's `projection`; `fixed` are conjuncts over the table's schema.
    pub fn new(
        table: Arc<str>,
        runtime: Runtime,
        snapshot: Arc<TableSnapshot>,
        projection: Option<&Vec<usize>>,
        fixed: Vec<Arc<dyn PhysicalExpr>>,
        fetch: Option<usize>,
    ) -> Result<Self> {
        let projection = match projection {
            Some(projection) => projection.clone(),
            None => (0..snapshot.schema.fields().len()).collect(),
        };
        let schema = Arc::new(snapshot.schema.project(&projection)?);
        let selectivity = estimate::selectivity(&snapshot, &fixed)?;
        let (parts, cuts) = parts(&snapshot, &runtime);
        let properties = Arc::new(properties(&snapshot, &projection, &schema, &parts, &cuts)?);
        Ok(Self {
            table,
            runtime,
            snapshot,
            indexed: None,
            projection,
            with_ids: false,
            schema,
            fixed,
            dynamic: Vec::new(),
            parts: Arc::new(parts),
            cuts,
            fetch,
            selectivity,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The same with the ids of the rows as a last column of this name.
    pub fn with_ids(mut self, name: &str) -> Result<Self> {
        let fields = self.schema.fields().iter().cloned();
        let id = Arc::new(row_id_field(name));
        self.schema = Arc::new(Schema::new(fields.chain([id]).collect::<Vec<_>>()));
        let Self { snapshot, projection, schema, parts, cuts, .. } = &self;
        let properties = properties(snapshot, projection, schema, parts, cuts)?;
        Ok(Self { with_ids: true, properties: Arc::new(properties), ..self })
    }

    /// The same of this version, whose indexes may find the first rows of an order.
    pub fn with_indexes(self, version: &Arc<TableVersion>) -> Self {
        let has_indexes = !version.definition().indexes.is_empty();
        Self { indexed: has_indexes.then(|| Arc::clone(version)), ..self }
    }

    /// The lookup of the first `fetch` rows in the order of one of its columns, if an index finds them among few rows.
    pub(crate) fn first_rows(
        &self,
        column: usize,
        options: SortOptions,
        fetch: usize,
    ) -> Result<Option<LookupExec>> {
        let (Some(version), Some(column)) = (&self.indexed, self.projection.get(column)) else {
            return Ok(None);
        };
        if !self.dynamic.is_empty() || self.fetch.is_some() {
            return Ok(None);
        }
        let found = IndexLookup::first_rows(version, &self.fixed, *column, options, fetch)?;
        let Some(lookup) = found else { return Ok(None) };
        let ids =
            self.schema.fields().last().filter(|_| self.with_ids).map(|id| id.name().as_str());
        let (table, version) = (Arc::clone(&self.table), Arc::clone(version));
        LookupExec::new(table, version, lookup, self.projection.clone(), ids).map(Some)
    }

    /// Whether its partitions are cut at these points.
    pub(crate) fn is_cut_at(&self, points: &[i64]) -> bool {
        self.cuts.as_ref().is_some_and(|cuts| cuts.points == points)
    }

    /// Distinct values of the column of this name before any filter, as estimated on a sample.
    pub(crate) fn distinct_values(&self, name: &str) -> Option<usize> {
        let column = self.snapshot.schema.index_of(name).ok()?;
        estimate::distinct_values(&self.snapshot, column)
    }

    /// Number of rows before any filter.
    pub(crate) fn table_rows(&self) -> usize {
        self.snapshot.rows
    }

    /// Bytes of the columns that it reads, before any filter.
    pub(crate) fn table_bytes(&self) -> usize {
        let filters = self.fixed.iter().chain(&self.dynamic);
        let filtered = filters.flat_map(collect_columns).map(|column| column.index());
        let columns: BTreeSet<usize> = filtered.chain(self.projection.iter().copied()).collect();
        let blocks = self.snapshot.chunks.iter().flat_map(|chunk| &chunk.block_bytes);
        blocks.map(|block| columns.iter().map(|column| block[*column]).sum::<usize>()).sum()
    }

    /// Its counters while it runs, which outlive it.
    pub(crate) fn counts(&self) -> ExecutionPlanMetricsSet {
        self.metrics.clone()
    }

    /// The same scan cut at other points of the column it is cut by; `None` if that would read
    /// much of the table from another node.
    pub(crate) fn with_cut_points(&self, points: &[i64]) -> Result<Option<Self>> {
        let Some(cuts) = &self.cuts else { return Ok(None) };
        let cuts = Cuts { column: cuts.column, points: points.to_vec() };
        let mut rising = self.snapshot.rising_columns().iter();
        let Some(rising) = rising.find(|rising| rising.column == cuts.column) else {
            return Ok(None);
        };
        let Some(parts) = assign::by_cuts(&self.snapshot, &self.runtime, rising, &cuts) else {
            return Ok(None);
        };
        let cuts = Some(cuts);
        let properties = properties(&self.snapshot, &self.projection, &self.schema, &parts, &cuts)?;
        Ok(Some(Self {
            parts: Arc::new(parts),
            cuts,
            properties: Arc::new(properties),
            ..self.clone()
        }))
    }

    fn homes(&self) -> String {
        let homes: Vec<String> = (0..self.parts.len())
            .map(|partition| self.runtime.node_of(WorkerId(partition as u32)).to_string())
            .collect();
        homes.join(",")
    }
}

/// Cuts by key if the table's order allows it, else between blocks.
fn parts(snapshot: &TableSnapshot, runtime: &Runtime) -> (Vec<Vec<RowRange>>, Option<Cuts>) {
    let partitions = assign::partition_count(snapshot, runtime);
    if partitions > 1 {
        for rising in snapshot.rising_columns() {
            if let Some(cuts) = assign::cut_points(snapshot, rising, partitions)
                && let Some(parts) = assign::by_cuts(snapshot, runtime, rising, &cuts)
                && (rising.is_whole() || assign::are_balanced(&parts))
            {
                return (parts, Some(cuts));
            }
        }
    }
    (assign::by_blocks(snapshot, runtime), None)
}

/// Most columns by which a scan says that it is ordered: DataFusion compares them with each other at every step of a
/// plan, and all columns of a table of one row rise.
const ORDERINGS_MAX: usize = 32;

fn properties(
    snapshot: &TableSnapshot,
    projection: &[usize],
    schema: &SchemaRef,
    parts: &[Vec<RowRange>],
    cuts: &Option<Cuts>,
) -> Result<PlanProperties> {
    let orderings = snapshot
        .rising()
        .filter_map(|column| projection.iter().position(|c| *c == column))
        .filter_map(|at| ascending(schema, at))
        .take(ORDERINGS_MAX);
    let equivalence = EquivalenceProperties::new_with_orderings(Arc::clone(schema), orderings);
    let partitioning =
        range(projection, schema, cuts)?.unwrap_or(Partitioning::UnknownPartitioning(parts.len()));
    Ok(PlanProperties::new(
        equivalence,
        partitioning,
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
    .with_scheduling_type(SchedulingType::Cooperative))
}

fn ascending(schema: &Schema, column: usize) -> Option<LexOrdering> {
    let expr = Arc::new(ColumnExpr::new(schema.field(column).name(), column));
    let options = SortOptions { descending: false, nulls_first: false };
    LexOrdering::new(vec![PhysicalSortExpr::new(expr, options)])
}

fn range(
    projection: &[usize],
    schema: &Schema,
    cuts: &Option<Cuts>,
) -> Result<Option<Partitioning>> {
    let Some(cuts) = cuts else { return Ok(None) };
    let Some(at) = projection.iter().position(|column| *column == cuts.column) else {
        return Ok(None);
    };
    let Some(ordering) = ascending(schema, at) else { return Ok(None) };
    let data_type = schema.field(at).data_type();
    let points = cuts
        .points
        .iter()
        .map(|point| Ok(SplitPoint::new(vec![estimate::constant(*point, data_type)?])))
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(Partitioning::Range(RangePartitioning::try_new(ordering, points)?)))
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        if kind == DisplayFormatType::TreeRender {
            return write!(f, "table={}\nhomes={}", self.table, self.homes());
        }
        write!(f, "ScanExec: table={}, columns=[{}]", self.table, columns.join(", "))?;
        write!(f, ", partitions={}, homes=[{}]", self.parts.len(), self.homes())?;
        if let Some(cuts) = &self.cuts {
            write!(f, ", cut_by={}", self.snapshot.schema.field(cuts.column).name())?;
        }
        let filters: Vec<_> = self.fixed.iter().chain(&self.dynamic).cloned().collect();
        if !filters.is_empty() {
            write!(f, ", filter={}", conjunction(filters))?;
        }
        match self.fetch {
            Some(fetch) => write!(f, ", fetch={fetch}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ScanExec {
    leaf!("ScanExec", properties);

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.fixed.iter().chain(&self.dynamic), f)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batch_rows = context.session_config().batch_size();
        let gauge = Gauge::from_context(&context);
        Ok(Box::pin(stream::ScanStream::new(self, partition, batch_rows, gauge)?))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut whole = statistics(&self.snapshot, &self.projection);
        if self.with_ids {
            whole.column_statistics.push(ColumnStatistics::new_unknown());
        }
        let share = match args.partition() {
            None => 1.0,
            Some(partition) => {
                let rows: usize = self.parts[partition].iter().map(|piece| piece.rows.len()).sum();
                (rows as f64 / self.snapshot.rows.max(1) as f64).min(1.0)
            }
        };
        let exact = args.partition().is_none() && self.fixed.is_empty() && self.dynamic.is_empty();
        Ok(Arc::new(match exact {
            true => whole.with_fetch(self.fetch, 0, 1)?,
            false => {
                estimate::scaled(whole, share * self.selectivity).with_fetch(self.fetch, 0, 1)?
            }
        }))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self { fetch, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        // Each partition stops there separately; together they may return more.
        if self.parts.len() == 1 { self.fetch } else { None }
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters: Vec<_> = result.parent_filters.into_iter().map(|f| f.filter).collect();
        // A limit counts the rows that pass the filters it was planned with.
        if filters.is_empty()
            || self.fetch.is_some()
            || !config.optimizer.enable_dynamic_filter_pushdown
        {
            return Ok(FilterPushdownPropagation::with_parent_pushdown_result(vec![
                PushedDown::No;
                filters.len()
            ]));
        }
        let mut scan = self.clone();
        let mut taken = Vec::with_capacity(filters.len());
        for filter in filters {
            taken.push(scan.take(filter)?);
        }
        Ok(FilterPushdownPropagation::with_parent_pushdown_result(taken)
            .with_updated_node(Arc::new(scan) as _))
    }
}

impl ScanExec {
    /// Takes a filter over this scan's output: a fixed one for good, a dynamic one as a help.
    fn take(&mut self, filter: Arc<dyn PhysicalExpr>) -> Result<PushedDown> {
        use datafusion::physical_expr::expressions::DynamicFilterTracking;
        use datafusion::physical_expr_common::physical_expr::is_volatile;
        if is_volatile(&filter) {
            return Ok(PushedDown::No);
        }
        let over_table = reassign_expr_columns(filter, &self.snapshot.schema)?;
        if DynamicFilterTracking::classify(&over_table).contains_dynamic_filter() {
            // Bounds of nested values are computed in another order than they are compared in.
            let schema = &self.snapshot.schema;
            let nested = |at: &ColumnExpr| schema.field(at.index()).data_type().is_nested();
            if collect_columns(&over_table).iter().any(nested) {
                return Ok(PushedDown::No);
            }
            self.dynamic.push(over_table);
        } else {
            self.fixed.push(over_table);
            self.selectivity = estimate::selectivity(&self.snapshot, &self.fixed)?;
        }
        Ok(PushedDown::Yes)
    }
}
