//! The shared parts of all sessions of a database, made once: functions, rules, file formats, settings while they are
//! unchanged, and the system tables. A session copies pointers.

use std::sync::Arc;

use atoll_runtime::Runtime;
use atoll_topology::{Bytes, Knowledge};
use datafusion::common::Result;
use datafusion::common::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::optimizer::{Analyzer, AnalyzerRule, OptimizerRule};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::catalog::{Catalogs, KeptNames};
use crate::database::Pools;
use crate::pg_catalog::{SystemCatalog, SystemHandle};
use crate::role::Identity;
use crate::table::PlacedTable;
use atoll_functions::PlanCalls;
use atoll_sql_common::functions::SharedFunctions;
use atoll_sql_common::names::{CATALOG, NameList, SCHEMA};
use atoll_sql_common::settings::{AtollOptions, ColumnNames};
use atoll_sql_exec::memory::{self, Gauge};
use atoll_sql_exec::sample::SampledRelations;
use atoll_sql_parse::dialect::{Relations, SqlTypes};
use atoll_sql_semantics::arithmetic::{CheckedArithmetic, PlanDivision, TextInput};
use atoll_sql_semantics::enums::{self, EnumOperands};
use atoll_sql_semantics::float::CanonicalFloats;
use atoll_sql_semantics::rewrite::{
    CanonicalTexts, CountedCopies, DependentJoins, EmptySubqueries, KeptOrder, NamedQuantified,
    OrderedTexts, OuterAggregates, OuterNames, RecursiveMarks,
};
use atoll_sql_semantics::sql_to_plan::PlanWholeRows;
use atoll_sql_semantics::timezone::{self, SessionTimeZone};
use atoll_sql_semantics::type_resolution::{
    DatesBesideTimestamps, DecimalsBesideFloats, PlanDates, TypedLiterals,
};
use atoll_sql_semantics::volatile::{VolatileColumns, VolatileFilters};

use crate::session::ddl::column_notes::column_notes;
use crate::session::plan::query_planner::AtollQueryPlanner;

/// The initial state of a session.
pub(super) struct SessionTemplate {
    state: SessionState,
    names: KeptNames,
}

/// The inputs of the template.
pub(super) struct TemplateParts<'a> {
    pub(super) pools: &'a Pools,
    pub(super) knowledge: &'a Arc<Knowledge>,
    pub(super) pool: &'a Arc<dyn MemoryPool>,
    pub(super) gauge: &'a Arc<Gauge>,
    pub(super) limit: usize,
    /// Atoll's own settings.
    pub(super) options: AtollOptions,
}

/// The session's parts.
pub(super) struct SessionParts<'a> {
    pub(super) catalogs: &'a Catalogs,
    pub(super) system: &'a Arc<SystemCatalog>,
    /// Its spill files.
    pub(super) disk: Arc<DiskManager>,
    /// Its memory pool.
    pub(super) pool: Arc<dyn MemoryPool>,
    /// Its memory limit.
    pub(super) session_memory: Option<Bytes>,
    /// The naming of unnamed columns.
    pub(super) column_names: ColumnNames,
}

impl SessionTemplate {
    /// A template for the sessions of a database.
    ///
    /// # Errors
    /// If DataFusion refuses a part.
    pub(super) fn new(parts: &TemplateParts<'_>) -> Result<Self> {
        let runtime = parts.pools.all().runtime();
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(parts.pool))
            // DataFusion's cache of listings never looks at a directory again.
            .with_object_list_cache_limit(0);
        let config = config(runtime, parts.options.clone(), parts.limit);
        let mut state = SessionStateBuilder::new()
            .with_config(config.with_extension(Arc::clone(parts.gauge)))
            .with_runtime_env(environment.build_arc()?)
            .with_expr_planners(vec![
                Arc::new(TypedLiterals),
                Arc::new(PlanDates),
                Arc::new(PlanDivision),
                Arc::new(PlanWholeRows),
                Arc::new(PlanCalls),
            ])
            .with_default_features()
            .with_analyzer_rules(analyzer_rules())
            .with_optimizer_rules(optimizer_rules())
            .with_query_planner(Arc::new(AtollQueryPlanner))
            .with_type_planner(Arc::new(SqlTypes::default()))
            .with_physical_optimizer_rules(atoll_sql_exec::rules::physical_rules(
                parts.pools.all().primitives(),
                parts.limit,
                atoll_sql_files::physical_rules(),
            ))
            .build();
        atoll_sql_files::register(&mut state)?;
        let context = SessionContext::new_with_state(state);
        atoll_functions::register(&context);
        context.register_udf(atoll_sql_common::functions::pg_sleep());
        enums::functions().into_iter().for_each(|function| context.register_udf(function));
        crate::pg_catalog::register(&context);
        context.register_relation_planner(Arc::new(SampledRelations))?;
        context.register_relation_planner(Arc::new(Relations { declared: column_notes }))?;
        let state = SharedFunctions::take(context.state())?;
        let catalogs = Catalogs::new(None);
        crate::system::register(&catalogs, runtime, parts.knowledge)?;
        Ok(Self { state, names: catalogs.kept() })
    }

    /// The names of a new session.
    pub(super) fn names(&self) -> KeptNames {
        self.names.clone()
    }

    /// The initial settings of a session.
    pub(super) fn settings(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    /// Atoll's own settings. The process's own session has only the common memory limit; the naming of columns depends
    /// on the protocol.
    pub(super) fn first_options(&self, identity: &Identity) -> AtollOptions {
        let options = self.settings().extensions.get::<AtollOptions>().cloned();
        let mut options = options.unwrap_or_default();
        options.session_memory = options.session_memory.filter(|_| identity.number != 0);
        options.column_names = identity.column_names;
        options
    }

    /// The state of a new session.
    pub(super) fn state(&self, parts: SessionParts<'_>) -> SessionState {
        let environment = RuntimeEnv {
            disk_manager: parts.disk,
            memory_pool: parts.pool,
            ..RuntimeEnv::clone(self.state.runtime_env())
        };
        let mut state = SessionStateBuilder::from(self.state.clone())
            .with_catalog_list(NameList::new(parts.catalogs.clone()))
            .with_runtime_env(Arc::new(environment))
            .build();
        // The builder copies the settings; those of the template are shared until they are changed.
        *state.config_mut() =
            self.state.config().clone().with_extension(Arc::new(SystemHandle::new(parts.system)));
        let of_template = self.state.config_options().extensions.get::<AtollOptions>();
        let differs = |options: &AtollOptions| {
            options.session_memory != parts.session_memory
                || options.column_names != parts.column_names
        };
        if of_template.is_some_and(differs) {
            let extensions = &mut state.config_mut().options_mut().extensions;
            if let Some(options) = extensions.get_mut::<AtollOptions>() {
                options.session_memory = parts.session_memory;
                options.column_names = parts.column_names;
            }
        }
        state
    }
}

/// DataFusion's analyzer with the rules before and after type coercion.
/// DataFusion's logical rules with Atoll's: what is right first, then what is fast.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = vec![atoll_sql_exec::window::first_of_each()];
    rules.extend(atoll_sql_semantics::rewrite::optimizer_rules());
    rules.push(Arc::new(CheckedArithmetic::last()));
    rules.push(atoll_sql_exec::group::finest_sets());
    rules
}

fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(OuterNames));
    rules.insert(1, Arc::new(OuterAggregates));
    rules.insert(2, Arc::new(KeptOrder));
    rules.insert(3, Arc::new(EnumOperands));
    rules.insert(4, Arc::new(SessionTimeZone));
    rules.insert(5, Arc::new(EmptySubqueries));
    rules.insert(6, Arc::new(CanonicalTexts));
    rules.insert(7, Arc::new(OrderedTexts));
    rules.insert(8, Arc::new(DatesBesideTimestamps));
    rules.insert(9, Arc::new(DecimalsBesideFloats));
    rules.insert(10, Arc::new(TextInput));
    rules.push(Arc::new(CheckedArithmetic));
    rules.push(Arc::new(CountedCopies));
    rules.push(Arc::new(NamedQuantified));
    rules.push(Arc::new(CanonicalFloats { is_canonical: |table| table.is::<PlacedTable>() }));
    rules.push(Arc::new(DependentJoins));
    rules.push(Arc::new(VolatileColumns));
    rules.push(Arc::new(VolatileFilters));
    rules.push(Arc::new(RecursiveMarks));
    rules
}

/// Joins up to this build side are broadcast to all partitions rather than exchanged: probing a
/// shared table of that size costs less than moving both sides.
const BROADCAST_BYTES: usize = 64 << 20;
const BROADCAST_ROWS: usize = 2 << 20;

/// Hash joins whose integer keys fill this share of their range, or whose range is that small, look up rows in an array
/// instead of hashing. An array of this density takes 1 KB for each row, too much if the memory limit is below
/// `ARRAY_MAP_LIMIT_MIN`.
const ARRAY_MAP_DENSITY_MIN: f64 = 0.004;
const ARRAY_MAP_RANGE: usize = 1 << 20;
const ARRAY_MAP_LIMIT_MIN: usize = 2 << 30;

/// Maximum nesting of parentheses and subqueries, until `datafusion.sql_parser.recursion_limit` says otherwise.
/// DataFusion's 50 are fewer than programs write.
const NESTING_MAX: usize = 200;

fn config(runtime: &Runtime, own: AtollOptions, limit: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(runtime.worker_count())
        // It is a schema of our own.
        .with_information_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false);
    let options = config.options_mut();
    options.sql_parser.collect_spans = true;
    // A number with a point is exact.
    options.sql_parser.parse_float_as_decimal = true;
    options.execution.time_zone = Some(timezone::DEFAULT.to_owned());
    // `KeptOrder` drops meaningless sorts of subqueries, once it knows which.
    options.sql_parser.enable_subquery_sort_elimination = false;
    if let Ok(levels) = ConfigNonZeroUsize::try_new(NESTING_MAX) {
        options.sql_parser.recursion_limit = levels;
    }
    options.optimizer.hash_join_single_partition_threshold = BROADCAST_BYTES;
    options.optimizer.hash_join_single_partition_threshold_rows = BROADCAST_ROWS;
    if limit >= ARRAY_MAP_LIMIT_MIN {
        options.execution.perfect_hash_join_min_key_density = ARRAY_MAP_DENSITY_MIN;
        options.execution.perfect_hash_join_small_build_threshold = ARRAY_MAP_RANGE;
    }
    // The logical plan determines better than the physical one what cannot be NULL (a CASE whose condition excludes
    // it), which the check takes for a defect.
    options.execution.skip_physical_aggregate_schema_check = true;
    // It moves struct fields below outer joins that pad them: NULL where `coalesce(x, 7)` is 7 (DataFusion 55.2,
    // `extract_leaf_expressions.rs`).
    options.optimizer.enable_leaf_expression_pushdown = false;
    // A file for each batch that an exchange spills: with two open ones the reader of DataFusion 55 waits for the
    // older, while the batch that it needs may come in the newer (apache/datafusion#24883).
    if let Ok(each) = ConfigNonZeroUsize::try_new(1) {
        options.execution.max_spill_file_size_bytes = each;
    }
    memory::fit(options, limit);
    // Nanoseconds end in 2262, INT96 does not.
    options.execution.parquet.coerce_int96 = Some("us".to_owned());
    options.explain.show_statistics = false;
    options.explain.physical_plan_only = true;
    options.extensions.insert(own);
    config
}
