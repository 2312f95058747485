//! A session: tables, settings, and the execution of statements on the workers.

mod alter;
mod aside;
#[cfg(test)]
mod cancel_tests;
mod change;
mod comments;
mod copy_in;
mod create;
mod declared;
mod definition;
mod dependents;
mod drive;
mod drop;
mod execute;
mod expand;
mod foreign;
mod form;
mod generated;
mod homonyms;
mod insert;
mod integers;
mod locking;
mod macros;
mod parameters;
mod planner;
mod planning;
mod point;
mod pool;
mod prepared;
mod progress;
mod raw_text;
mod returning;
mod rights;
mod rules;

mod sequence;
mod settings;
mod sharing;
mod split;
mod statement;
mod tag;
#[cfg(test)]
mod tests;
mod text_scope;
mod texts;
mod transaction;
mod upkeep;
mod variables;
mod views;
mod whole;
mod wide;

use std::fmt;
use std::sync::Arc;

use atoll_placement::{Arena, Kernel, Strategy};
use atoll_runtime::Runtime;
use atoll_topology::Machine;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, UrlTableFactory};
use datafusion::common::Result;
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::var_provider::VarType;
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::future::BoxFuture;
use parking_lot::Mutex;

pub use execute::{PlannedQuery, QueryResult};
pub(crate) use generated::{generated_sql, is_generated};
pub(crate) use parameters::ClientSettings;
pub use parameters::POSTGRESQL_VERSION;
pub(crate) use planner::StatementPlanner;
pub use planning::PlanningTimes;
pub use point::PreparedStatement;
pub(crate) use point::{Parameters, Shape, one_row, select_list};
pub use progress::ScanProgress;
pub use split::{Splitter, Statement, split_statements};
pub use transaction::TransactionState;
pub(crate) use transaction::{SharedTransaction, StatementHandle};

use crate::arithmetic::{CheckedArithmetic, PlanDivision};
use crate::catalog::{CATALOG, Catalogs, SCHEMA, StoredNames};
use crate::database::{Database, DatabaseOptions, Workers};
use crate::dialect::{Relations, SqlTypes, TypedLiterals};
use crate::files::read::FileNames;
use crate::files::spill::Spill;
use crate::float::CanonicalFloats;
use crate::memory;
use crate::pg_catalog::SystemCatalog;
use crate::rewrite::{CountedCopies, DependentJoins, NamedQuantified};
use crate::role::{Identity, may_use_files};
use crate::sample::{SamplePlanner, SampledRelations};
use crate::settings::{AtollOptions, SharedScan};
use crate::shared_scan::PlannedTexts;
use crate::table::PlacedTable;
use crate::timezone::{self, SessionTimeZone};
use crate::volatile::VolatileFilters;
use atoll_functions::PlanCalls;
use prepared::PreparedStatements;
use text_scope::SessionScope;
use transaction::SessionTransaction;
use variables::Variables;

/// A SQL session over the pools of a runtime. Clones share tables and settings.
#[derive(Clone)]
pub struct Session {
    context: SessionContext,
    catalogs: Catalogs,
    prepared: Arc<PreparedStatements>,
    scope: Arc<SessionScope>,
    /// Texts of statements that write: their plans hold the database, which cannot keep them itself.
    texts: Arc<PlannedTexts>,
    transaction: Arc<SessionTransaction>,
    /// The workers of its pool; none for the common ones.
    pool: Arc<Mutex<Option<Workers>>>,
    database: Database,
    spill: Spill,
    variables: Variables,
    parameters: ClientSettings,
    identity: Arc<Identity>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("database", &self.database).finish_non_exhaustive()
    }
}

impl Session {
    /// A session of a database in memory that has no other: [`Database::start`] and [`Database::session`].
    ///
    /// # Errors
    /// When the spill directory cannot be made.
    pub fn new(runtime: Runtime, options: DatabaseOptions) -> Result<Self> {
        Database::start(runtime, options)?.session()
    }

    pub(crate) fn of(database: Database, identity: Identity) -> Result<Self> {
        let options = database.options();
        let spill = Spill::new(options.spill_directory.clone())?;
        let mut environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::clone(database.pool()))
            // DataFusion's cache of listings never looks at a directory again.
            .with_object_list_cache_limit(0);
        environment.disk_manager = Some(spill.disk());
        let may_use_files = may_use_files(&database, &identity);
        let files = may_use_files.then(|| Arc::new(FileNames::default()));
        let (identity, parameters) = (Arc::new(identity), ClientSettings::default());
        let mut catalogs =
            Catalogs::new(files.clone().map(|files| files as Arc<dyn UrlTableFactory>));
        catalogs.set_system(SystemCatalog {
            database: database.clone(),
            identity: Arc::clone(&identity),
            settings: parameters.clone(),
        });
        let config = config(database.runtime(), options.placement, database.limit());
        let mut state = SessionStateBuilder::new()
            .with_config(config.with_extension(Arc::clone(database.gauge())))
            .with_catalog_list(Arc::new(catalogs.clone()))
            .with_runtime_env(environment.build_arc()?)
            .with_expr_planners(vec![
                Arc::new(TypedLiterals),
                Arc::new(PlanDivision),
                Arc::new(PlanCalls),
            ])
            .with_default_features()
            .with_analyzer_rules(analyzer_rules())
            .with_optimizer_rules(crate::rewrite::optimizer_rules())
            .with_query_planner(Arc::new(SamplePlanner))
            .with_type_planner(Arc::new(SqlTypes))
            .with_optimizer_rule(Arc::new(CheckedArithmetic))
            .with_physical_optimizer_rules(crate::rules::physical_rules(
                database.pools().all().primitives(),
                database.limit(),
            ))
            .build();
        crate::files::register(&mut state)?;
        let context = SessionContext::new_with_state(state);
        atoll_functions::register(&context);
        crate::catalog::register_sequence_functions(&context);
        context.register_relation_planner(Arc::new(SampledRelations))?;
        context.register_relation_planner(Arc::new(Relations))?;
        timezone::refresh_functions(&context);
        if let Some(files) = files {
            files.set_state(context.state_weak_ref());
        }
        let knowledge = Arc::clone(database.knowledge());
        let (prepared, scope, texts, transaction, pool) = Default::default();
        let variables = Variables::default();
        context.register_variable(VarType::UserDefined, Arc::new(variables.clone()));
        crate::pg_catalog::register(&context);
        crate::system::register_session_functions(&context, &database, &identity, &parameters);
        let session = Self {
            context,
            catalogs,
            prepared,
            scope,
            texts,
            transaction,
            pool,
            database,
            spill,
            variables,
            parameters,
            identity,
        };
        crate::system::register(&session, &knowledge)?;
        Ok(session)
    }

    /// The database whose session it is.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Whose it is.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// The workers on all cores; statements run on those of the session's pool.
    pub fn runtime(&self) -> &Runtime {
        self.database.runtime()
    }

    /// The workers of the next statement.
    pub(crate) fn workers(&self) -> Workers {
        let own = self.pool.lock().clone();
        own.unwrap_or_else(|| self.database.pools().common())
    }

    /// The machine whose memory holds the tables.
    pub fn machine(&self) -> &Arc<Machine> {
        self.runtime().machine()
    }

    /// The kernel that placed them.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        self.runtime().kernel()
    }

    /// Where the memory of tables comes from.
    pub fn arena(&self) -> &Arena {
        self.database.arena()
    }

    /// DataFusion's context, for what a session does not offer itself. Plans that it executes run
    /// on the caller's runtime, not on the pools.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The placement of tables created from now on.
    pub fn placement(&self) -> Strategy {
        self.atoll_options().placement
    }

    /// The schema of names that are written without one.
    fn default_schema(&self) -> String {
        let state = self.context.state_ref();
        let state = state.read();
        state.config_options().catalog.default_schema.clone()
    }

    fn shared_scan(&self) -> SharedScan {
        self.atoll_options().shared_scan
    }

    fn atoll_options(&self) -> AtollOptions {
        // Without a copy of the state: prepared statements ask whenever they run.
        let state = self.context.state_ref();
        let state = state.read();
        state.config_options().extensions.get::<AtollOptions>().cloned().unwrap_or_default()
    }

    /// The names of its tables.
    pub(crate) fn catalogs(&self) -> &Catalogs {
        &self.catalogs
    }

    /// The names that the next statement sees.
    fn names(&self) -> Catalogs {
        let version = self.statement_version();
        self.catalogs.fork(StoredNames::new(version, self.runtime().clone()))
    }

    /// Names of all tables and views, ordered: plain in `public`, `schema.table` elsewhere.
    pub fn table_names(&self) -> Vec<String> {
        let all = self.names();
        let mut names = Vec::new();
        for catalog in all.catalog_names() {
            let Some(catalog) = all.catalog(&catalog) else { continue };
            for schema_name in catalog.schema_names() {
                let tables = catalog.schema(&schema_name).map(|schema| schema.table_names());
                names.extend(tables.into_iter().flatten().map(|name| match schema_name.as_str() {
                    SCHEMA => name,
                    other => format!("{other}.{name}"),
                }));
            }
        }
        names.sort();
        names
    }

    /// Names of the columns of a table or view; none where there is no such table.
    pub fn column_names<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            let query = format!("SELECT * FROM {table} LIMIT 0");
            match self.run(&query).await {
                Ok(result) => result.schema().fields().iter().map(|f| f.name().clone()).collect(),
                Err(_) => Vec::new(),
            }
        })
    }
}

/// DataFusion's analyzer with what comes before types are settled, and after.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(SessionTimeZone));
    rules.push(Arc::new(CheckedArithmetic));
    rules.push(Arc::new(CountedCopies));
    rules.push(Arc::new(NamedQuantified));
    rules.push(Arc::new(CanonicalFloats));
    rules.push(Arc::new(VolatileFilters));
    rules.push(Arc::new(DependentJoins));
    rules
}

/// The placed tables of a catalog with their names (`schema.table` outside of `public`), ordered by
/// name.
pub(crate) async fn placed_tables(
    catalog: &dyn CatalogProvider,
) -> Result<Vec<(String, PlacedTable)>> {
    let mut tables = Vec::new();
    for schema_name in catalog.schema_names() {
        let Some(schema) = catalog.schema(&schema_name) else { continue };
        for name in schema.table_names() {
            let Some(table) = schema.table(&name).await? else { continue };
            if let Some(placed) = table.downcast_ref::<PlacedTable>() {
                let full = match schema_name.as_str() {
                    SCHEMA => name,
                    other => format!("{other}.{name}"),
                };
                tables.push((full, placed.clone()));
            }
        }
    }
    tables.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tables)
}

/// Joins up to this build side are broadcast to all partitions rather than exchanged: probing a
/// shared table of that size costs less than moving both sides.
const BROADCAST_BYTES: usize = 64 << 20;
const BROADCAST_ROWS: usize = 2 << 20;

/// Hash joins whose integer keys fill this share of their range, or whose range is that small, look
/// their rows up in an array instead of hashing. An array of this density takes 1 KB for each row, too
/// much where the memory limit is below `ARRAY_MAP_LIMIT_MIN`.
const ARRAY_MAP_DENSITY_MIN: f64 = 0.004;
const ARRAY_MAP_RANGE: usize = 1 << 20;
const ARRAY_MAP_LIMIT_MIN: usize = 2 << 30;

/// Parentheses and sub-queries inside one another, until `datafusion.sql_parser.recursion_limit` says
/// otherwise. DataFusion's 50 are fewer than programs write.
const NESTING_MAX: usize = 200;

fn config(runtime: &Runtime, placement: Strategy, limit: usize) -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(runtime.worker_count())
        // It is a schema of our own.
        .with_information_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false);
    let options = config.options_mut();
    options.sql_parser.collect_spans = true;
    options.execution.time_zone = Some(timezone::DEFAULT.to_owned());
    if let Ok(levels) = ConfigNonZeroUsize::try_new(NESTING_MAX) {
        options.sql_parser.recursion_limit = levels;
    }
    options.optimizer.hash_join_single_partition_threshold = BROADCAST_BYTES;
    options.optimizer.hash_join_single_partition_threshold_rows = BROADCAST_ROWS;
    if limit >= ARRAY_MAP_LIMIT_MIN {
        options.execution.perfect_hash_join_min_key_density = ARRAY_MAP_DENSITY_MIN;
        options.execution.perfect_hash_join_small_build_threshold = ARRAY_MAP_RANGE;
    }
    // The logical plan knows better than the physical one what cannot be NULL (a CASE whose condition
    // excludes it), and the check takes that for a defect.
    options.execution.skip_physical_aggregate_schema_check = true;
    // A file for each batch that an exchange spills: of two open ones the reader of DataFusion 55 waits for
    // the older, while what it needs may come in the newer (apache/datafusion#24883).
    if let Ok(each) = ConfigNonZeroUsize::try_new(1) {
        options.execution.max_spill_file_size_bytes = each;
    }
    memory::fit(options, limit);
    // Nanoseconds end in 2262, INT96 does not.
    options.execution.parquet.coerce_int96 = Some("us".to_owned());
    options.explain.show_statistics = false;
    options.explain.physical_plan_only = true;
    options.extensions.insert(AtollOptions { placement, ..AtollOptions::default() });
    config
}
