//! A session: tables, settings, and the execution of statements on the workers.

mod cache;
#[cfg(test)]
mod cancel_tests;
mod ddl;
mod dml;
mod kept_rows;
mod plan;
mod settings;
mod statement;

mod start;
mod template;
#[cfg(test)]
mod tests;
mod transaction;
mod two_phase;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, OnceLock};

use atoll_placement::{Arena, Kernel, Strategy};
use atoll_runtime::Runtime;
use atoll_topology::{Machine, NodeId};
use datafusion::catalog::{CatalogProviderList, UrlTableFactory};
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::var_provider::VarType;
use datafusion::prelude::SessionContext;
use futures::future::BoxFuture;
use parking_lot::Mutex;

pub use cache::point::PreparedStatement;
use ddl::temporary::TemporaryTables;
pub use kept_rows::KeptRows;
pub use plan::column_origin::{ColumnOrigin, ColumnOrigins};
pub use plan::declared_operands::DeclaredType;
pub use plan::planning_times::PlanningTimes;
pub use statement::execute::PlannedQuery;
pub use statement::query_result::QueryResult;
pub use statement::split::{Splitter, Statement, split_statements};
use template::{SessionParts, SessionTemplate};
pub use transaction::TransactionState;

use crate::advisory::AdvisoryHolder;
use crate::catalog::{Catalogs, StoredNames};
use crate::client_settings::ClientSettings;
use crate::database::{Database, DatabaseOptions, Workers};
use crate::notifications::Listener;
use crate::pg_catalog::SystemCatalog;
use crate::role::{Identity, is_superuser, may_use_files};
use atoll_sql_common::names::SCHEMA;
use atoll_sql_common::settings::{AtollOptions, SharedScan};
use atoll_sql_exec::memory::SessionPool;
use atoll_sql_exec::watch::StatementWatch;
use atoll_sql_files::read::FileNames;
use atoll_sql_files::spill::Spill;
use cache::plan_cache::PlanCache;
use cache::prepared::PreparedStatements;
use cache::text_scope::SessionScope;
use plan::routine_calls::RoutineDepth;
use settings::variables::Variables;
use transaction::SessionTransaction;

/// A SQL session over the pools of a runtime. Clones share tables and settings.
#[derive(Clone)]
pub struct Session {
    context: SessionContext,
    template: Arc<SessionTemplate>,
    /// Whether the shared functions are registered in the context: they are added on demand.
    whole: Arc<OnceLock<()>>,
    catalogs: Catalogs,
    prepared: Arc<PreparedStatements>,
    scope: Arc<SessionScope>,
    /// Texts of write statements: their plans hold the database, which cannot keep them itself.
    texts: Arc<PlanCache>,
    /// Texts of queries, shared by the sessions of the database.
    shared_texts: Arc<PlanCache>,
    transaction: Arc<SessionTransaction>,
    /// The workers of its pool; `None` for the common ones.
    pool: Arc<Mutex<Option<Workers>>>,
    database: Database,
    spill: Spill,
    variables: Variables,
    parameters: ClientSettings,
    identity: Arc<Identity>,
    /// Its advisory locks, which end with it.
    advisory: Arc<AdvisoryHolder>,
    listener: Arc<Listener>,
    /// How many functions run inside one another.
    routines: Arc<RoutineDepth>,
    watch: StatementWatch,
    #[expect(dead_code, reason = "temporary tables end with it")]
    temporary: Arc<TemporaryTables>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("database", &self.database).finish_non_exhaustive()
    }
}

impl Session {
    /// The only session of a new database in memory: [`Database::start`] and [`Database::session`].
    ///
    /// # Errors
    /// If the spill directory cannot be created.
    pub fn new(runtime: Runtime, options: DatabaseOptions) -> Result<Self> {
        Database::start(runtime, options)?.session()
    }

    pub(crate) fn with_identity(database: Database, identity: Identity) -> Result<Self> {
        let (options, template) = (database.options(), database.template()?);
        let spill = Spill::new(options.spill_directory.clone())?;
        let watch = database.activity().watch_of(identity.number);
        let AtollOptions { session_memory, column_names, .. } = template.first_options(&identity);
        watch.memory().set_limit(session_memory);
        let pool = Arc::new(SessionPool::new(database.pool(), watch.memory()));
        let may_use_files = may_use_files(&database, &identity);
        let files = may_use_files.then(|| Arc::new(FileNames::default()));
        let (identity, parameters) = (Arc::new(identity), ClientSettings::default());
        parameters.connect_as(&identity.user, is_superuser(&database, &identity));
        let prepared = Arc::<PreparedStatements>::default();
        let system = Arc::new(SystemCatalog {
            database: database.clone(),
            identity: Arc::clone(&identity),
            settings: parameters.clone(),
            prepared: Arc::clone(&prepared) as _,
        });
        let mut catalogs =
            Catalogs::new(files.clone().map(|files| files as Arc<dyn UrlTableFactory>));
        catalogs.set_system(Arc::clone(&system) as _);
        let temporary = Arc::new(TemporaryTables::new(&database));
        catalogs.set_temporary(&temporary.schema);
        catalogs.restore(template.names());
        let parts = SessionParts {
            catalogs: &catalogs,
            system: &system,
            disk: spill.disk(),
            pool,
            session_memory,
            column_names,
        };
        let context = SessionContext::new_with_state(template.state(parts));
        if let Some(files) = files {
            files.set_state(context.state_weak_ref());
        }
        let Ok(shared_texts) = database.extension(|| Ok::<_, Infallible>(PlanCache::default()));
        let (texts, transaction, pool, whole) = Default::default();
        let scope = Arc::<SessionScope>::default();
        let follows = Arc::clone(&scope);
        parameters.connect(context.state_weak_ref(), move || follows.forget());
        let variables = Variables::default();
        context.register_variable(VarType::UserDefined, Arc::new(variables.clone()));
        crate::session_functions::register_sequences(&context);
        atoll_sql_common::functions::register_random(&context);
        crate::session_functions::register_settings(&context, &database, &identity, &parameters);
        let advisory = Arc::new(AdvisoryHolder::of_session(database.advisory()));
        crate::session_functions::register_advisory(&context, &advisory, &parameters, &watch);
        crate::session_functions::register_transaction_ids(&context);
        let listener = Arc::new(Listener::new(database.notifications()));
        crate::session_functions::register_notifications(&context, &listener, identity.process());
        Ok(Self {
            context,
            template,
            whole,
            catalogs,
            prepared,
            scope,
            texts,
            shared_texts,
            transaction,
            pool,
            database,
            spill,
            variables,
            parameters,
            identity,
            advisory,
            listener,
            routines: Arc::default(),
            watch,
            temporary,
        })
    }

    /// The database whose session it is.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The session's user.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// The same session with another number for statistics and cancellation: for a client that runs several statements
    /// at a time.
    pub fn watched_as(&self, number: u32) -> Self {
        let watch = self.database.activity().watch_of(number);
        watch.set_home(self.home());
        Self { watch, ..self.clone() }
    }

    /// The workers on all cores; statements run on those of the session's pool.
    pub fn runtime(&self) -> &Runtime {
        self.database.runtime()
    }

    /// The workers of the next statement.
    pub(crate) fn workers(&self) -> Workers {
        let own = self.pool.lock().clone();
        own.unwrap_or_else(|| self.database.pools().common()).driven_on(self.home())
    }

    /// The node whose threads serve it; `None` for any.
    pub fn home(&self) -> Option<NodeId> {
        self.watch.home()
    }

    /// The machine whose memory holds the tables.
    pub fn machine(&self) -> &Arc<Machine> {
        self.runtime().machine()
    }

    /// The kernel that placed them.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        self.runtime().kernel()
    }

    /// The memory of tables.
    pub fn arena(&self) -> &Arena {
        self.database.arena()
    }

    /// DataFusion's context, for what a session does not offer itself. Plans that it executes run
    /// on the caller's runtime, not on the pools.
    pub fn context(&self) -> &SessionContext {
        self.whole.get_or_init(|| atoll_sql_common::functions::fill(&self.context));
        &self.context
    }

    /// The session's current settings and functions, without those functions that it shares.
    pub(crate) fn state(&self) -> SessionState {
        self.context.state()
    }

    /// The placement of tables created from now on.
    pub fn placement(&self) -> Strategy {
        self.atoll_options().placement
    }

    fn shared_scan(&self) -> SharedScan {
        self.atoll_options().shared_scan
    }

    /// Its initial settings under `atoll.`.
    fn first_options(&self) -> AtollOptions {
        self.template.first_options(&self.identity)
    }

    fn atoll_options(&self) -> AtollOptions {
        // Without a copy of the state: prepared statements call this whenever they run.
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
        let mut names = self.catalogs.fork(StoredNames::new(version, self.runtime().clone()));
        self.follow_search_path(&mut names, &mut self.catalog_options());
        names
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

    /// Names of the columns of a table or view; empty if there is no such table.
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
