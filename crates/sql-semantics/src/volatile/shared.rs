//! Rows that a query reads in several places and that are computed once for all of them: those of a CTE with
//! volatile calls, and of a plan around correlated subqueries whose rows would differ if it were read again.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::Session as PlanningSession;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, TableReference, internal_err, not_impl_err};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, UserDefinedLogicalNode,
    UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, execute_stream};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::future::{BoxFuture, Shared as SharedFuture};
use futures::{FutureExt, TryStreamExt, stream};
use parking_lot::Mutex;

use atoll_sql_common::operator::{PassThrough, PassThroughExec};

/// The rows of a plan in one of the places that read them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SharedNode {
    input: LogicalPlan,
    /// Identical in all places.
    number: u64,
}

/// Shares the rows of a plan among all copies of the result within a query. A limit that keeps all
/// rows stops filters from being pushed below one of the copies.
pub fn shared(plan: LogicalPlan) -> Result<LogicalPlan> {
    shared_as(plan, next())
}

/// A unique number.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Atomic::Relaxed)
}

fn shared_as(input: LogicalPlan, number: u64) -> Result<LogicalPlan> {
    let node = Arc::new(SharedNode { input, number });
    let plan = LogicalPlan::Extension(Extension { node });
    LogicalPlanBuilder::from(plan).limit(0, Some(usize::MAX >> 1))?.build()
}

/// Whether a plan reads the working table of a recursive query: its rows differ in each step, so they cannot
/// be shared.
pub fn is_in_recursion(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        // Its own recursive queries are inside it.
        if matches!(node, LogicalPlan::RecursiveQuery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        if let LogicalPlan::TableScan(scan) = node {
            found |= source_as_provider(&scan.source).is_ok_and(|table| table.is::<CteWorkTable>());
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether a node returns the same rows wherever a query reads it, regardless of its inputs.
pub fn is_shared(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(limit) => is_shared(&limit.input),
        LogicalPlan::Extension(extension) => extension.node.as_any().is::<SharedNode>(),
        _ => false,
    }
}

/// Evaluates these CTEs once if they contain volatile calls: DataFusion 55 evaluates a CTE's
/// query again for each reference, so `random()` in it would return different values. All references
/// share one plan; two subqueries that only look alike do not.
pub fn share_ctes(plan: LogicalPlan, names: &[TableReference]) -> Result<LogicalPlan> {
    let mut places: HashMap<*const LogicalPlan, usize> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::SubqueryAlias(alias) = node
            && names.contains(&alias.alias)
        {
            *places.entry(Arc::as_ptr(&alias.input)).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if places.values().all(|count| *count < 2) {
        return Ok(plan);
    }
    let mut known: HashMap<*const LogicalPlan, u64> = HashMap::new();
    // The plan must stay in place while its parts are identified by address.
    let copy = plan.clone();
    copy.transform_down_with_subqueries(|node| {
        let LogicalPlan::SubqueryAlias(alias) = &node else { return Ok(Transformed::no(node)) };
        let place = Arc::as_ptr(&alias.input);
        if !names.contains(&alias.alias)
            || places.get(&place).is_none_or(|count| *count < 2)
            || is_shared(&alias.input)
            || !is_volatile(&alias.input)?
        {
            return Ok(Transformed::no(node));
        }
        if is_in_recursion(&alias.input)? {
            return not_impl_err!(
                "WITH {} calls a volatile function such as random() within a step of a recursive \
                 query, and is used in several places",
                alias.alias
            );
        }
        let input = LogicalPlan::clone(&alias.input);
        let input = shared_as(input, *known.entry(place).or_insert_with(next))?;
        let alias = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(alias)))
    })
    .data()
}

/// Whether a plan calls functions that return different values each time.
pub fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    calls(plan, |node| !is_shared(node))
}

/// Whether a plan, or one whose rows it shares, calls such functions.
pub(super) fn has_calls(plan: &LogicalPlan) -> Result<bool> {
    calls(plan, |_| true)
}

fn calls(plan: &LogicalPlan, is_looked_at: fn(&LogicalPlan) -> bool) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if !is_looked_at(node) {
            return Ok(TreeNodeRecursion::Jump);
        }
        node.apply_expressions(|expr| {
            found = found || expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

impl PartialOrd for SharedNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.number.cmp(&other.number) {
            Ordering::Equal => self.input.partial_cmp(&other.input),
            order => Some(order),
        }
    }
}

impl UserDefinedLogicalNodeCore for SharedNode {
    fn name(&self) -> &str {
        "Shared"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared: {}", self.number)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self { input, number: self.number }),
            _ => internal_err!("Shared has one input"),
        }
    }
}

/// Plans [`SharedNode`] for one statement.
#[derive(Default)]
pub struct SharedPlanner {
    kept: Mutex<HashMap<u64, Arc<Kept>>>,
}

#[async_trait]
impl ExtensionPlanner for SharedPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn PlanningSession,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<SharedNode>() else { return Ok(None) };
        let [input] = physical_inputs else { return internal_err!("Shared has one input") };
        let kept = Arc::clone(self.kept.lock().entry(node.number).or_default());
        Ok(Some(PassThroughExec::plan(input, Share { kept, number: node.number })))
    }
}

/// Reads the rows of its input, or the rows that another place has already read.
#[derive(Clone)]
struct Share {
    kept: Arc<Kept>,
    number: u64,
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The rows, once a place has requested them.
#[derive(Default)]
struct Kept(Mutex<Option<AllRows>>);

type AllRows = SharedFuture<BoxFuture<'static, Result<Arc<Rows>, Arc<DataFusionError>>>>;

struct Rows {
    batches: Vec<RecordBatch>,
    /// Memory reserved for the rows.
    _charge: MemoryReservation,
}

impl PassThrough for Share {
    const NAME: &'static str = "SharedExec";
    const EVERY_ROW: bool = false;
    const KEEPS_ORDER: bool = false;

    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        ))
    }

    fn details(&self, _: &Arc<dyn ExecutionPlan>) -> String {
        format!("number={}", self.number)
    }

    fn distribution(&self) -> Distribution {
        Distribution::SinglePartition
    }

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        _: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let schema = input.schema();
        let rows = {
            let mut kept = self.kept.0.lock();
            match &*kept {
                Some(rows) => rows.clone(),
                None => {
                    let charge = MemoryConsumer::new(Self::NAME).register(context.memory_pool());
                    let rows = execute_stream(Arc::clone(input), context)?;
                    kept.insert(collected(rows, charge).boxed().shared()).clone()
                }
            }
        };
        let own = Arc::clone(&schema);
        let batches = async move {
            let rows = rows.await.map_err(DataFusionError::Shared)?;
            let count = rows.batches.len();
            Ok::<_, DataFusionError>(stream::iter((0..count).map(move |at| {
                // The types are the same, but places may differ in nullability.
                let columns = rows.batches[at].columns().to_vec();
                RecordBatch::try_new(Arc::clone(&own), columns).map_err(DataFusionError::from)
            })))
        };
        let batches = stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

async fn collected(
    mut rows: SendableRecordBatchStream,
    charge: MemoryReservation,
) -> Result<Arc<Rows>, Arc<DataFusionError>> {
    let mut batches = Vec::new();
    while let Some(batch) = rows.try_next().await.map_err(Arc::new)? {
        charge.try_grow(batch.get_array_memory_size()).map_err(Arc::new)?;
        batches.push(batch);
    }
    Ok(Arc::new(Rows { batches, _charge: charge }))
}
