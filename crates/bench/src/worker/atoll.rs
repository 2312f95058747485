//! Atoll, as a program that embeds it has it.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use atoll_runtime::{Runtime, RuntimeOptions, WorkerId};
use atoll_sql::{DatabaseOptions, Session, SqlError};
use atoll_topology::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::{ExecutionPlan, collect};

use super::{Engine, Host, WorkerArgs, values};
use crate::protocol::Placement;
use crate::tpch_data;

/// Name of the operators that read tables in placed memory.
const SCAN: &str = "ScanExec";

/// The state of errors that no user's mistake explains.
const INTERNAL: &str = "XX000";

/// Pages and threads as the kernel reports them, in the order of [`Placement`]'s fields.
const PLACEMENT: &str = "
    SELECT sum(CASE WHEN found_node = wanted_node THEN pages ELSE 0 END) AS at_home,
           sum(CASE WHEN found_node <> wanted_node THEN pages ELSE 0 END) AS elsewhere,
           sum(CASE WHEN found_node IS NOT NULL AND wanted_node IS NULL THEN pages ELSE 0 END) AS free,
           (SELECT count(*) FROM atoll.workers) AS workers,
           (SELECT count(*) FROM atoll.workers WHERE bound) AS workers_bound
    FROM atoll.pages";

/// A session with all tables in placed memory.
pub(super) struct Atoll {
    session: Session,
    options: DatabaseOptions,
}

impl Atoll {
    /// A session with that many workers and no table.
    pub(super) fn start(options: &WorkerArgs, (machine, kernel): Host) -> Result<Self> {
        let threads =
            RuntimeOptions { threads: Some(options.threads), ..RuntimeOptions::default() };
        let runtime = Runtime::start(machine, kernel, threads)?;
        let mut session_options = DatabaseOptions::default();
        if let Some(bytes) = options.memory_limit {
            session_options.memory_limit = Bytes(bytes);
        }
        let session = Session::new(runtime, session_options.clone())?;
        Ok(Self { session, options: session_options })
    }

    /// Loads the tables from their files, if any.
    pub(super) fn load(options: &WorkerArgs, host: Host) -> Result<Self> {
        let atoll = Self::start(options, host)?;
        let Some(directory) = &options.data else { return Ok(atoll) };
        for (table, file) in tpch_data::files(directory) {
            let file = file.replace('\'', "''");
            let sql = format!("CREATE TABLE {table} AS SELECT * FROM '{file}'");
            atoll.query(&sql).with_context(|| format!("cannot load {table}"))?;
        }
        Ok(atoll)
    }

    /// The session.
    pub(super) fn session(&self) -> &Session {
        &self.session
    }
}

impl Engine for Atoll {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let run = async { self.session.run(sql).await?.collect().await };
        let outcome = self.session.runtime().block_on(run);
        outcome.map_err(|error: SqlError| match error.state.code() {
            INTERNAL => anyhow!("Internal error, SQLSTATE {INTERNAL}: {error}"),
            _ => error.into(),
        })
    }

    fn reset(&mut self, statements: &[String]) -> Result<()> {
        self.session = Session::new(self.session.runtime().clone(), self.options.clone())?;
        for sql in statements {
            self.query(sql)?;
        }
        Ok(())
    }

    fn scanned_bytes(&self, sql: &str) -> Result<Option<u64>> {
        let (session, sql) = (self.session.clone(), sql.to_owned());
        // On a worker, as the scans of a query are.
        let run = self.session.runtime().spawn_on(WorkerId(0), async move {
            let (plan, context) = session.plan(&sql).await?;
            collect(Arc::clone(&plan), context).await?;
            anyhow::Ok(plan)
        });
        let plan = self.session.runtime().block_on(run).context("a worker failed")??;
        Ok(scanned_bytes(&plan))
    }

    fn placement(&self) -> Result<Option<Placement>> {
        let (_, rows) = values::from_batches(&self.query(PLACEMENT)?)?;
        let numbers: Vec<u64> = rows
            .into_iter()
            .flatten()
            .map(|value| value.as_deref().unwrap_or("0").parse())
            .collect::<Result<_, _>>()
            .context("atoll.pages and atoll.workers count in whole numbers")?;
        let [pages_at_home, pages_elsewhere, pages_free, workers, workers_bound] = numbers[..]
        else {
            return Ok(None);
        };
        Ok(Some(Placement { pages_at_home, pages_elsewhere, pages_free, workers, workers_bound }))
    }
}

/// Bytes that the scans of an executed plan counted; None if no scan counted.
fn scanned_bytes(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let own = (plan.name() == SCAN).then(|| plan.metrics()).flatten().and_then(|metrics| {
        let of = |name: &str| Some(metrics.sum_by_name(name)?.as_usize() as u64);
        Some(of("bytes_local")? + of("bytes_remote")?)
    });
    let below = plan.children().into_iter().filter_map(scanned_bytes);
    own.into_iter().chain(below).reduce(|sum, bytes| sum + bytes)
}
