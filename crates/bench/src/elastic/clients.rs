//! The target: a process with TPC-H in memory, whose clients start on request.
//!
//! DataFusion represents a DBMS without knowledge of nodes: its threads run where the system puts them and its
//! tables lie where they were first touched. Atoll gives and takes its own cores (`SET atoll.cores`).

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use atoll_placement::LiveKernel;
use atoll_runtime::{Runtime, RuntimeOptions, WorkerId};
use atoll_sql::tpch::{LoadedTpchTable, QUERIES, TABLES, load};
use atoll_sql::{DatabaseOptions, Session};
use atoll_topology::Machine;
use clap::{Args, ValueEnum};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::protocol::Failed;

/// Lookups of a client of mixed work that is not an analyst.
const LOOKUPS: u32 = 200;

/// The engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ElasticEngine {
    /// DataFusion as it comes: its cores are given from outside
    Datafusion,
    /// Atoll, which gives itself cores: os is `all`, adaptive is `elastic`
    Atoll,
}

/// Arguments of the process.
#[derive(Args, Debug)]
pub(crate) struct ElasticClientsArgs {
    #[arg(long, value_enum)]
    engine: ElasticEngine,
    #[arg(long)]
    threads: usize,
    #[arg(long)]
    scale_factor: f64,
}

/// The work of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientWork {
    /// Each query once, in an order of the client's own.
    Random,
    /// Each query once, in TPC-H's order.
    Sequence,
    /// One query over and over.
    Single {
        /// Which.
        query: u8,
        /// How often.
        times: u32,
    },
    /// Every other client looks orders up by their key; the others as [`Random`](Self::Random).
    Mixed,
}

/// A line in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ClientsRequest {
    pub(super) work: ClientWork,
    pub(super) clients: u32,
    /// Only these queries.
    pub(super) queries: Vec<u8>,
    pub(super) seed: u64,
    /// Number of the region that the lab counts it as.
    pub(super) region: u8,
    /// What `atoll.cores` is to be.
    pub(super) cores: Option<String>,
}

/// A line out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ClientsAnswer {
    /// From the first question to the last answer.
    pub(super) seconds: f64,
    /// Every query sent.
    pub(super) asked: Vec<AskedQuery>,
    pub(super) lookups: u64,
}

impl ClientsAnswer {
    pub(super) fn queries_per_hour(&self) -> f64 {
        self.asked.len() as f64 / self.seconds.max(1e-9) * 3600.0
    }
}

/// A query and its time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct AskedQuery {
    pub(super) query: u8,
    pub(super) seconds: f64,
    pub(super) rows: usize,
}

/// The engine, its tables loaded. Clones are the same.
#[derive(Clone)]
enum Clients {
    Plain(Arc<tokio::runtime::Runtime>, SessionContext),
    Atoll(Box<Session>),
}

/// Loads, then answers line by line.
///
/// # Errors
/// Where it cannot load, or a line is not a request.
pub(crate) fn serve_clients(
    args: &ElasticClientsArgs,
    input: impl BufRead,
    output: &mut impl Write,
) -> Result<()> {
    let clients = Clients::load(args)?;
    reply(output, &ClientsAnswer::default())?;
    for line in input.lines() {
        let request: ClientsRequest = serde_json::from_str(&line?).context("not a request")?;
        atoll_marker::open(request.region);
        let answered = clients.answer(&request);
        atoll_marker::close(request.region);
        match answered {
            Ok(answer) => reply(output, &answer)?,
            Err(error) => reply(output, &Failed { error: format!("{error:#}") })?,
        }
    }
    Ok(())
}

fn reply(output: &mut impl Write, answer: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *output, answer)?;
    writeln!(output).and_then(|()| output.flush()).context("the benchmark has ended")
}

impl Clients {
    fn load(args: &ElasticClientsArgs) -> Result<Self> {
        let machine = Arc::new(Machine::discover().context("this machine cannot be described")?);
        let threads = RuntimeOptions { threads: Some(args.threads), ..RuntimeOptions::default() };
        let runtime = Runtime::start(machine, Arc::new(LiveKernel::new()), threads)?;
        let session = Session::new(runtime, DatabaseOptions::default())?;
        let mut done = |_: &LoadedTpchTable| {};
        session.runtime().block_on(load(&session, args.scale_factor, &mut done))?;
        match args.engine {
            ElasticEngine::Atoll => Ok(Self::Atoll(Box::new(session))),
            ElasticEngine::Datafusion => Self::plain(&session, args.threads),
        }
    }

    /// The same rows in DataFusion's own tables, in threads that nothing binds.
    fn plain(from: &Session, threads: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .context("cannot start tokio's threads")?;
        let config = SessionConfig::new().with_target_partitions(threads);
        let context = SessionContext::new_with_config(config);
        for table in TABLES {
            let batches = crate::session::run(from, &format!("SELECT * FROM {table}"))?;
            let schema = batches.first().context("a table without rows")?.schema();
            let mut parts = vec![Vec::new(); threads];
            for (at, batch) in batches.into_iter().enumerate() {
                parts[at % threads].push(batch);
            }
            context.register_table(table, Arc::new(MemTable::try_new(schema, parts)?))?;
        }
        Ok(Self::Plain(Arc::new(runtime), context))
    }

    fn answer(&self, request: &ClientsRequest) -> Result<ClientsAnswer> {
        if let (Self::Atoll(session), Some(cores)) = (self, &request.cores) {
            crate::session::run(session, &format!("SET atoll.cores = '{cores}'"))?;
        }
        let orders = self.orders()?;
        let begun = Instant::now();
        let mut waiting = Vec::new();
        for client in 0..request.clients {
            let work = ClientTask::for_client(request, client, orders);
            let clients = self.clone();
            waiting.push(self.spawn(client, async move { clients.work(work).await })?);
        }
        let mut answer = ClientsAnswer::default();
        for client in waiting {
            let (asked, lookups) = self.wait(client)??;
            answer.asked.extend(asked);
            answer.lookups += lookups;
        }
        answer.seconds = begun.elapsed().as_secs_f64();
        Ok(answer)
    }

    /// The largest key of an order.
    fn orders(&self) -> Result<u64> {
        let sql = "SELECT max(o_orderkey) FROM orders";
        let rows = match self {
            Self::Atoll(session) => crate::session::run(session, sql)?,
            Self::Plain(runtime, context) => {
                runtime.block_on(async { context.sql(sql).await?.collect().await })?
            }
        };
        let column = rows.first().context("no order")?.column(0);
        let text = datafusion::arrow::util::display::array_value_to_string(column, 0)?;
        text.parse()
            .with_context(|| format!("the largest key of orders is '{text}'; expected a number"))
    }

    fn spawn<T: Send + 'static>(
        &self,
        client: u32,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<tokio::task::JoinHandle<T>> {
        Ok(match self {
            Self::Plain(runtime, _) => runtime.spawn(work),
            Self::Atoll(session) => session.runtime().spawn_on(WorkerId(client), work),
        })
    }

    fn wait<T>(&self, task: tokio::task::JoinHandle<T>) -> Result<T> {
        let waited = match self {
            Self::Plain(runtime, _) => runtime.block_on(task),
            Self::Atoll(session) => session.runtime().block_on(task),
        };
        waited.context("a client failed")
    }

    async fn work(self, task: ClientTask) -> Result<(Vec<AskedQuery>, u64)> {
        let session = match &self {
            Self::Atoll(session) => Some(session.database().session()?),
            Self::Plain(..) => None,
        };
        let mut asked = Vec::new();
        for query in &task.queries {
            let begun = Instant::now();
            let sql = QUERIES[usize::from(*query) - 1];
            let rows =
                self.ask(session.as_ref(), sql).await.with_context(|| format!("Q{query}"))?;
            asked.push(AskedQuery { query: *query, seconds: begun.elapsed().as_secs_f64(), rows });
        }
        for key in &task.lookups {
            let sql = format!("SELECT * FROM orders WHERE o_orderkey = {key}");
            self.ask(session.as_ref(), &sql).await?;
        }
        Ok((asked, task.lookups.len() as u64))
    }

    /// Rows of an answer.
    async fn ask(&self, own: Option<&Session>, sql: &str) -> Result<usize> {
        let batches = match (self, own) {
            (Self::Plain(_, context), _) => context.sql(sql).await?.collect().await?,
            (Self::Atoll(session), own) => own.unwrap_or(session).run(sql).await?.collect().await?,
        };
        Ok(batches.iter().map(|batch| batch.num_rows()).sum())
    }
}

/// What one client does.
#[derive(Debug, PartialEq)]
struct ClientTask {
    queries: Vec<u8>,
    lookups: Vec<u64>,
}

impl ClientTask {
    fn for_client(request: &ClientsRequest, client: u32, orders: u64) -> Self {
        let mut random = StdRng::seed_from_u64(request.seed ^ (u64::from(client) << 32));
        let mut queries = request.queries.clone();
        match request.work {
            ClientWork::Sequence => Self { queries, lookups: Vec::new() },
            ClientWork::Single { query, times } => {
                Self { queries: vec![query; times as usize], lookups: Vec::new() }
            }
            ClientWork::Mixed if client % 2 == 1 => {
                let lookups = (0..LOOKUPS).map(|_| random.random_range(1..=orders.max(1)));
                Self { queries: Vec::new(), lookups: lookups.collect() }
            }
            ClientWork::Random | ClientWork::Mixed => {
                queries.shuffle(&mut random);
                Self { queries, lookups: Vec::new() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(work: ClientWork, seed: u64) -> Vec<ClientTask> {
        let queries = (1..=22).collect();
        let request = ClientsRequest { work, clients: 4, queries, seed, region: 0, cores: None };
        (0..4).map(|client| ClientTask::for_client(&request, client, 6000)).collect()
    }

    #[test]
    fn each_client_has_an_order_of_its_own_that_the_seed_decides() {
        let random = tasks(ClientWork::Random, 1);
        assert_eq!(random, tasks(ClientWork::Random, 1));
        assert_ne!(random, tasks(ClientWork::Random, 2));
        assert_ne!(random[0], random[1]);
        let all: Vec<u8> = (1..=22).collect();
        for task in random {
            let mut queries = task.queries;
            queries.sort_unstable();
            assert_eq!(queries, all);
        }
        assert!(tasks(ClientWork::Sequence, 1).iter().all(|task| task.queries == all));
    }

    #[test]
    fn every_other_client_of_mixed_work_looks_orders_up() {
        let mixed = tasks(ClientWork::Mixed, 1);
        let lookups: Vec<usize> = mixed.iter().map(|task| task.lookups.len()).collect();
        assert_eq!(lookups, [0, 200, 0, 200]);
        assert!(mixed[1].lookups.iter().all(|key| (1..=6000).contains(key)));
        let single = tasks(ClientWork::Single { query: 6, times: 3 }, 1);
        assert_eq!(single[0].queries, [6, 6, 6]);
    }
}
