//! The rounds: in each, every case runs on Atoll and then on PostgreSQL.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use atoll_tools::bench::Better;
use serde_json::{Value, json};

use super::flight;
use super::pgbench::{self, PgbenchPlan};
use super::process::DatabaseServer;
use super::wire::WireClient;
use super::work::{QueryProtocol, ServerWork};
use crate::paired::PairedCase;
use crate::trials::{RunStop, SampleCase, TrialResults};

/// How long a client that measures waits for an answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// The statement whose result is large.
const WIDE: &str = "SELECT * FROM wide";

/// The plan of the measurements.
pub(super) struct ServerPlan {
    pub(super) work: Vec<ServerWork>,
    pub(super) clients: Vec<u16>,
    /// Threads of pgbench: one for each cpu.
    pub(super) threads: usize,
    pub(super) protocols: Vec<QueryProtocol>,
    pub(super) time: Duration,
    pub(super) scale: u32,
    pub(super) connections: u16,
    pub(super) rows: u64,
    pub(super) seed: u64,
    pub(super) pgbench: PathBuf,
    /// Those that do not count, and those that do.
    pub(super) rounds: (u32, u32),
}

/// One kind of measurement, and the cases that it fills.
struct Measured {
    work: ServerWork,
    clients: u16,
    protocol: QueryProtocol,
    cases: Vec<PairedCase>,
}

/// Measures all of a plan, or what a signal leaves time for; Atoll is the first of the servers.
pub(super) fn measure<P>(
    plan: &ServerPlan,
    servers: &[DatabaseServer],
    kept: &TrialResults<P>,
    stop: &RunStop,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PairedCase>> {
    let mut measured = measurements(plan);
    progress("pgbench -i");
    prepare(plan, servers, &mut measured)?;
    let (warmup, runs) = plan.rounds;
    for round in 0..warmup + runs {
        progress(&format!("round {} of {}", round + 1, warmup + runs));
        for it in measured.iter_mut().filter(|it| it.work != ServerWork::Init) {
            for server in servers {
                let case = it.sample(server, round);
                let samples =
                    kept.samples(case, stop, || run(plan, server, it, u64::from(round)))?;
                it.add(server, &samples.unwrap_or_default());
            }
            // Of rounds that do not count nothing may stay.
            if round + 1 == warmup || (round < warmup && stop.is_stopped()) {
                it.cases.iter_mut().for_each(PairedCase::forget);
            }
        }
        if stop.is_stopped() {
            break;
        }
    }
    let mut cases: Vec<PairedCase> = measured.into_iter().flat_map(|it| it.cases).collect();
    cases.retain(|case| case.subjects.iter().any(|it| !it.samples.is_empty()));
    cases.iter_mut().for_each(PairedCase::finish);
    Ok(cases)
}

impl Measured {
    /// The samples of a server in a round.
    fn sample(&self, server: &DatabaseServer, round: u32) -> SampleCase {
        let settings = self.cases.first().map(|case| case.settings.clone()).unwrap_or_default();
        SampleCase { settings, subject: server.name.to_owned(), round }
    }

    fn add(&mut self, server: &DatabaseServer, samples: &[f64]) {
        for (case, sample) in self.cases.iter_mut().zip(samples) {
            case.add(server.name, *sample);
        }
    }
}

fn measurements(plan: &ServerPlan) -> Vec<Measured> {
    let mut all = Vec::new();
    for work in &plan.work {
        let (clients, protocols) = match work {
            ServerWork::Select => (&plan.clients[..], &plan.protocols[..]),
            ServerWork::TpcB => (&plan.clients[..], &[QueryProtocol::Simple][..]),
            _ => (&[1][..], &[QueryProtocol::Simple][..]),
        };
        for protocol in protocols {
            for clients in clients {
                let cases = cases(plan, *work, *clients, *protocol);
                all.push(Measured { work: *work, clients: *clients, protocol: *protocol, cases });
            }
        }
    }
    all
}

fn cases(
    plan: &ServerPlan,
    work: ServerWork,
    clients: u16,
    protocol: QueryProtocol,
) -> Vec<PairedCase> {
    let of = |settings: &Value, unit, better| PairedCase::new(settings.clone(), unit, better);
    match work {
        ServerWork::Init => {
            let settings = json!({ "work": "pgbench -i", "scale": plan.scale });
            vec![of(&settings, "s", Better::Less)]
        }
        ServerWork::Select | ServerWork::TpcB => {
            let name = if work == ServerWork::Select { "pgbench -S" } else { "pgbench, TPC-B" };
            let settings = json!({ "work": name, "protocol": protocol.name(), "clients": clients });
            let rate = of(&settings, "transactions/s", Better::More);
            vec![
                rate,
                of(&settings, "ms, p50", Better::Less),
                of(&settings, "ms, p99", Better::Less),
            ]
        }
        ServerWork::Connect => vec![of(&json!({ "work": "connect" }), "ms", Better::Less)],
        ServerWork::Idle => {
            let settings = json!({ "work": "idle", "connections": plan.connections });
            vec![of(&settings, "MB", Better::Less)]
        }
        ServerWork::Rows | ServerWork::Flight => {
            let is_flight = work == ServerWork::Flight;
            let name = if is_flight { "8 columns, Flight SQL" } else { "8 columns" };
            let settings = json!({ "work": name, "rows": plan.rows });
            vec![of(&settings, "rows/s", Better::More), of(&settings, "MB/s", Better::More)]
        }
    }
}

/// Creates the requested tables.
fn prepare(plan: &ServerPlan, servers: &[DatabaseServer], measured: &mut [Measured]) -> Result<()> {
    let mut init = measured.iter_mut().find(|it| it.work == ServerWork::Init);
    for server in servers {
        let begun = Instant::now();
        pgbench::init(&plan.pgbench, server, plan.scale)?;
        if let Some(init) = &mut init {
            init.cases[0].add(server.name, begun.elapsed().as_secs_f64());
        }
        if plan.work.iter().any(|work| matches!(work, ServerWork::Rows | ServerWork::Flight)) {
            let mut client = connect(server)?;
            client.run(&format!(
                "CREATE TABLE wide AS SELECT i AS a, i * 7 AS b, i % 100 AS c, i * 0.5::DOUBLE AS d, \
                 'item ' || i AS e, i % 2 = 0 AS f, DATE '2026-01-01' + (i % 1000)::INT AS g, -i AS h \
                 FROM generate_series(1, {}) AS n(i)",
                plan.rows
            ))?;
        }
    }
    Ok(())
}

fn connect(server: &DatabaseServer) -> Result<WireClient> {
    WireClient::connect(server.address, server.user, server.database, PATIENCE)
}

fn run(
    plan: &ServerPlan,
    server: &DatabaseServer,
    measured: &Measured,
    round: u64,
) -> Result<Vec<f64>> {
    let samples = match measured.work {
        ServerWork::Init => Vec::new(),
        ServerWork::Select | ServerWork::TpcB | ServerWork::Connect => {
            let script = match measured.work {
                ServerWork::Select => &["-S"][..],
                ServerWork::Connect => &["-S", "-C", "-n"],
                _ => &[],
            };
            let run = PgbenchPlan {
                script,
                clients: measured.clients,
                threads: plan.threads,
                protocol: measured.protocol,
                time: plan.time,
                seed: plan.seed + round,
            };
            let run = pgbench::run(&plan.pgbench, server, &run)?;
            match run.connecting_ms {
                Some(connecting) => vec![connecting],
                None => vec![run.rate, run.p50_ms, run.p99_ms],
            }
        }
        ServerWork::Idle => vec![idle_megabytes(server, plan.connections)?],
        ServerWork::Rows | ServerWork::Flight => {
            let over_flight = server.flight.filter(|_| measured.work == ServerWork::Flight);
            let begun = Instant::now();
            let all = match over_flight {
                Some(address) => flight::discard(address, WIDE, PATIENCE)?,
                None => connect(server)?.run(WIDE)?,
            };
            ensure!(all.rows == plan.rows, "{} sent {} rows", server.name, all.rows);
            let seconds = begun.elapsed().as_secs_f64();
            vec![all.rows as f64 / seconds, all.bytes as f64 / 1e6 / seconds]
        }
    };
    Ok(samples)
}

/// Memory of idle connections after one statement each, on top of a first one, with which the server's code
/// comes into memory.
fn idle_megabytes(server: &DatabaseServer, connections: u16) -> Result<f64> {
    let idle = || {
        let mut client = connect(server)?;
        client.run("SELECT 1")?;
        client.rest();
        Ok(client)
    };
    let _first = idle()?;
    let before = server.memory()?;
    let _clients = (0..connections).map(|_| idle()).collect::<Result<Vec<_>>>()?;
    let added = server.memory()?.saturating_sub(before);
    Ok(added as f64 / 1e6)
}
