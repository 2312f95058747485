//! The operator.

use std::fmt;
use std::sync::{Arc, OnceLock};

use atoll_primitives::Context as PrimitiveContext;
use atoll_primitives::aggregate::{Expected, Stage, Variant};
use atoll_runtime::CancelToken;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, OrderingRequirements, PhysicalExpr,
};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, InputOrderMode, Partitioning, PlanProperties,
    ReplaceChildrenOptions, Statistics,
};
use parking_lot::Mutex;

use super::collect::{GroupProgress, GroupRun};
use super::error::to_datafusion;
use super::grouped;
use super::query::GroupQuery;
use super::rule::{is_grouped, is_partitioned};
use crate::exchange::PartitionHomes;
use crate::scan::scaled;
use atoll_sql_common::settings::AggregateMethod;

/// How rows of one group are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gathering {
    /// They are in one partition already, and there one after another.
    Grouped,
    /// They are in one partition already.
    Partitioned,
    /// Each input is collected at its home, and each output reads its share of all of them: the
    /// exchange is part of the operator.
    Exchanged,
}

/// GROUP BY by the primitives, in one operator from rows to groups.
///
/// It replaces a partial aggregation, an exchange by hash and a final aggregation. All that
/// the plan sees of it is what the aggregation in one step would show, but for its partitioning where
/// it exchanges: its pieces are not those of DataFusion's hash.
#[derive(Debug)]
pub struct GroupExec {
    /// The operator that it replaces; never executed.
    whole: AggregateExec,
    query: Arc<GroupQuery>,
    primitives: PrimitiveContext,
    method: AggregateMethod,
    gathering: Gathering,
    outputs: usize,
    /// Statistics of the input when the operator was planned. Some are estimates, and later
    /// rules change them: they decide sizes and variants, never a result.
    expected: Arc<Expected>,
    /// The number of groups, as estimated on samples when first asked for.
    groups: Arc<OnceLock<Option<usize>>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    progress: Arc<Mutex<GroupProgress>>,
}

impl GroupExec {
    /// The operator for an aggregation. Returns `None` where DataFusion's is better: where input is
    /// grouped in part, or grouped by keys that do not fit 64 bits, or rows never end.
    pub(super) fn new(
        whole: AggregateExec,
        query: GroupQuery,
        primitives: PrimitiveContext,
        method: AggregateMethod,
        outputs: usize,
    ) -> Result<Option<Self>> {
        let gathering = match (is_partitioned(&whole), whole.input_order_mode()) {
            (true, InputOrderMode::Sorted) => Gathering::Grouped,
            (true, InputOrderMode::Linear) => Gathering::Partitioned,
            (true, InputOrderMode::PartiallySorted(_)) => return Ok(None),
            (false, _) => Gathering::Exchanged,
        };
        if whole.input().boundedness().is_unbounded() {
            return Ok(None);
        }
        let statistics =
            StatisticsContext::new().compute(whole.input().as_ref(), &StatisticsArgs::new())?;
        let expected = query.expected(&statistics);
        let fits = match gathering {
            Gathering::Grouped => grouped::fits(&query, &expected),
            _ => query.has_keys_of_known_types(),
        };
        if !fits {
            return Ok(None);
        }
        let group = Self {
            properties: properties(&whole, gathering, outputs),
            whole,
            expected: Arc::new(expected),
            groups: Arc::default(),
            query: Arc::new(query),
            primitives,
            method,
            gathering,
            outputs,
            metrics: ExecutionPlanMetricsSet::new(),
            progress: Arc::default(),
        };
        Ok(Some(group))
    }

    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        self.whole.input()
    }

    /// Workers and memory, with the token that is raised when the query's result was dropped.
    fn primitives(&self, context: &TaskContext) -> PrimitiveContext {
        let primitives = self.primitives.clone();
        match context.session_config().get_extension::<CancelToken>() {
            Some(cancel) => primitives.with_cancel(cancel.as_ref().clone()),
            None => primitives,
        }
    }

    fn grouped_plan(&self, primitives: PrimitiveContext) -> grouped::GroupedPlan {
        grouped::GroupedPlan {
            context: primitives,
            query: Arc::clone(&self.query),
            expected: Arc::clone(&self.expected),
            schema: self.schema(),
        }
    }

    /// A run with `outputs` outputs.
    fn run(&self, outputs: usize, context: &TaskContext) -> Result<GroupRun> {
        let variant = match self.method {
            AggregateMethod::Auto | AggregateMethod::Off => Variant::Auto,
            AggregateMethod::Local => Variant::Local,
            AggregateMethod::Ring => Variant::Ring,
            AggregateMethod::Migrate => Variant::Migrate,
        };
        let GroupQuery { query, input, .. } = self.query.as_ref();
        let primitives = self.primitives(context);
        let stage = Stage::new(primitives, query, input, outputs, &self.expected, variant);
        Ok(GroupRun {
            stage: Arc::new(stage.map_err(to_datafusion)?),
            query: Arc::clone(&self.query),
            runtime: self.primitives.runtime().clone(),
            schema: self.schema(),
            rows: context.session_config().batch_size().max(1),
            metrics: self.metrics.clone(),
        })
    }

    /// The variant that runs, and the reason.
    fn variant(&self) -> String {
        if self.gathering == Gathering::Grouped {
            return "variant=runs, reason=rows come grouped by the key".to_owned();
        }
        match self.progress.lock().chosen() {
            Some((variant, reason)) => {
                let why = reason.strip_prefix(&format!("{variant}: ")).unwrap_or(&reason);
                format!("variant={variant}, reason={why}")
            }
            None => match self.method {
                AggregateMethod::Auto | AggregateMethod::Off => {
                    "variant=auto, reason=the first rows decide: local for few groups, else ring"
                        .to_owned()
                }
                other => format!("variant={other}, reason=atoll.aggregate"),
            },
        }
    }
}

impl DisplayAs for GroupExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.whole.group_expr().expr().iter();
        let keys: Vec<String> = keys.map(|(expr, name)| alias(&expr.to_string(), name)).collect();
        let functions = self.whole.aggr_expr().iter();
        let functions: Vec<&str> = functions.map(|function| function.name()).collect();
        let (keys, functions) = (keys.join(", "), functions.join(", "));
        let gathering = match self.gathering {
            Gathering::Exchanged => {
                format!(
                    "exchanged, homes={}",
                    PartitionHomes::for_partitions(self.primitives.runtime(), self.outputs)
                )
            }
            Gathering::Partitioned | Gathering::Grouped => "partitioned".to_owned(),
        };
        let variant = self.variant();
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(
                f,
                "GroupExec: gby=[{keys}], aggr=[{functions}], input={gathering}, {variant}"
            ),
            DisplayFormatType::TreeRender => {
                writeln!(f, "gby={keys}")?;
                writeln!(f, "aggr={functions}")?;
                writeln!(f, "{variant}")
            }
        }
    }
}

fn properties(whole: &AggregateExec, gathering: Gathering, outputs: usize) -> Arc<PlanProperties> {
    let partitioning = match gathering {
        Gathering::Exchanged => Partitioning::UnknownPartitioning(outputs),
        // Groups of a hash table are unordered.
        Gathering::Partitioned => whole.properties().output_partitioning().clone(),
        Gathering::Grouped => return Arc::clone(whole.properties()),
    };
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(whole.schema()),
        partitioning,
        EmissionType::Final,
        whole.input().boundedness(),
    ))
}

fn alias(expr: &str, name: &str) -> String {
    if expr.split('@').next() == Some(name) { name.to_owned() } else { format!("{expr} as {name}") }
}

impl ExecutionPlan for GroupExec {
    fn name(&self) -> &'static str {
        "GroupExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.whole.children()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        match self.gathering {
            Gathering::Exchanged => {
                InputDistributionRequirements::new(vec![Distribution::UnspecifiedDistribution])
            }
            _ => self.whole.input_distribution_requirements(),
        }
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        match self.gathering {
            Gathering::Grouped => self.whole.required_input_ordering(),
            _ => vec![None],
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        // Groups come in the order of their keys, as the properties say; but an order of other columns is not that of the
        // input's columns at their positions, to which DataFusion 55.2 would push a sort.
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.whole.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let replaced = Arc::new(self.whole.clone()).replace_children(children, options)?;
        let Some(whole) = replaced.downcast_ref::<AggregateExec>() else {
            return datafusion::common::internal_err!(
                "an AggregateExec became a {}",
                replaced.name()
            );
        };
        let whole = whole.clone();
        // Rows that were grouped may be grouped no longer, and vice versa.
        let gathering = match self.gathering {
            Gathering::Grouped if !is_grouped(&whole) => Gathering::Partitioned,
            same => same,
        };
        Ok(Arc::new(Self {
            properties: properties(&whole, gathering, self.outputs),
            whole,
            query: Arc::clone(&self.query),
            primitives: self.primitives.clone(),
            method: self.method,
            gathering,
            outputs: self.outputs,
            expected: Arc::clone(&self.expected),
            groups: Arc::clone(&self.groups),
            metrics: ExecutionPlanMetricsSet::new(),
            progress: Arc::default(),
        }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(recompute))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        match self.gathering {
            Gathering::Grouped => {
                let plan = self.grouped_plan(self.primitives(&context));
                let input = self.input().execute(partition, context)?;
                grouped::stream(&plan, partition, input, &self.metrics)
            }
            Gathering::Partitioned => {
                let run = self.run(1, &context)?;
                self.progress.lock().shows(&run.stage);
                let input = self.input().execute(partition, context)?;
                Ok(make_cooperative(run.alone(partition, input)))
            }
            Gathering::Exchanged => {
                let make = || self.run(self.outputs, &context);
                let output = (partition, self.outputs);
                let stream =
                    GroupProgress::output(&self.progress, self.input(), output, &context, make)?;
                Ok(make_cooperative(stream))
            }
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.whole.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let whole = self.whole.statistics_from_inputs(input_stats, args)?;
        let Some(rows) = whole.num_rows.get_value().filter(|_| args.partition().is_none()) else {
            return Ok(whole);
        };
        let groups = self.groups.get_or_init(|| self.query.expected_groups(self.input()));
        Ok(match groups.filter(|groups| groups < rows) {
            Some(groups) => Arc::new(scaled(whole.as_ref().clone(), groups as f64 / *rows as f64)),
            None => whole,
        })
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.whole.cardinality_effect()
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        self.whole.gather_filters_for_pushdown(phase, parent_filters, config)
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_any(child_pushdown_result))
    }
}
