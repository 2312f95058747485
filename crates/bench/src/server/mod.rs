//! `atoll serve` against PostgreSQL, each as a process, driven by pgbench and by a client that discards its results.

mod flight;
mod pgbench;
mod process;
mod rounds;
mod wire;
mod work;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use atoll_runtime::THREADS_MAX;
use atoll_tools::bench::{Document, Form, Manifest, Measurement, json};
use atoll_tools::exit::CommandError;
use atoll_tools::terminal;
use clap::{Args, ValueEnum, ValueHint};
use serde::{Deserialize, Serialize};

use crate::cache;
use crate::flags::{RunArgs, seconds};
use crate::paired::{self, PairedCase};
use crate::trials::{ResultArgs, TrialResults, until_signal};
use crate::worker::this_machine;
use process::{DatabaseServer, PostgresPrograms, find_pgbench};
use rounds::{ServerPlan, measure};
use work::{QueryProtocol, ServerWork};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench server
  atoll bench server --work tpcb --clients 1 --seconds 30 --directory /var/tmp
  atoll bench server --work select,connect --rivals none --json
  atoll bench server --work rows,flight
  atoll bench server --results server-results      keeps each sample; with --resume goes on when stopped

pgbench and PostgreSQL come from the distribution (Debian: apt-get install postgresql). Both servers listen on
loopback, ask for no password and sync every commit; clients and servers share the cpus.";

/// Arguments of `atoll bench server`.
#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    /// What to measure [default: all]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    work: Vec<ServerWork>,
    /// Clients of pgbench
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 8, 32, 64],
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: Vec<u16>,
    /// How pgbench -S sends its statements
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',',
          default_values_t = [QueryProtocol::Simple, QueryProtocol::Prepared])]
    protocol: Vec<QueryProtocol>,
    /// Seconds of each run of pgbench, whole ones
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// Scale of pgbench's tables: 100,000 accounts each
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    scale: u32,
    /// Connections that are idle
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// Rows of the large result
    #[arg(long, value_name = "N", default_value_t = 10_000_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rows: u64,
    /// Server to compare with
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ServerRival::Postgresql)]
    rivals: ServerRival,
    /// Directory in which databases are created and removed [default: that of temporary files]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
    /// Atoll's workers [default: one for each cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Option<u16>,
    /// Seed of pgbench's keys
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// The other server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ServerRival {
    Postgresql,
    None,
}

/// Measures and writes the results.
pub(crate) fn run(args: &ServerArgs) -> Result<(), CommandError> {
    let outputs = args.run.output.outputs(false)?;
    let (manifest, report, is_stopped) = contest(args)?;
    if is_stopped && report.measurements().is_empty() {
        return Err(args.results.stopped());
    }
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "server",
            manifest: &manifest,
            measurements: report.measurements(),
            details: &report,
        }),
        _ => Ok(format!("# bench server\n\n{manifest}{report}")),
    })?;
    if is_stopped { Err(args.results.stopped()) } else { Ok(()) }
}

/// Measures; also whether a signal ended it.
fn contest(args: &ServerArgs) -> Result<(Manifest, ServerReport, bool)> {
    let (machine, _) = this_machine()?;
    let threads = args.threads.map_or(machine.cpus.len(), usize::from).clamp(1, THREADS_MAX);
    let (runs, warmup) = (args.run.runs, args.run.warmup);
    let mut manifest = Manifest::new(&machine, runs, warmup, args.seed);
    let directory = || cache::databases(args.directory.as_deref());
    let plan = ServerPlan {
        work: match args.work.is_empty() {
            true => ServerWork::value_variants().to_vec(),
            false => args.work.clone(),
        },
        clients: args.clients.clone(),
        threads: machine.cpus.len(),
        protocols: args.protocol.clone(),
        time: Duration::from_secs_f64(args.seconds),
        scale: args.scale,
        connections: args.connections,
        rows: args.rows,
        seed: args.seed,
        pgbench: find_pgbench()?,
        rounds: (warmup, runs),
    };
    let programs = match args.rivals {
        ServerRival::Postgresql => Some(PostgresPrograms::find()?),
        ServerRival::None => None,
    };
    let versions: Vec<(String, String)> =
        programs.iter().map(|it| ("postgresql".to_owned(), it.version())).collect();
    let shared = SharedSettings {
        machine: machine.name.clone(),
        seconds: args.seconds,
        scale: args.scale,
        threads,
        seed: args.seed,
        postgresql: versions.first().map(|(_, version)| version.clone()),
    };
    let kept = TrialResults::of(&args.results, &shared)?;
    let (cases, is_stopped) = until_signal(|stop| {
        let mut servers = vec![DatabaseServer::atoll(directory()?, threads, stop)?];
        if let Some(programs) = &programs {
            servers.push(DatabaseServer::postgresql(programs, directory()?, stop)?);
        }
        let cases = measure(&plan, &servers, &kept, stop, &mut |what| terminal::say(what))?;
        Ok((cases, stop.is_stopped()))
    })?;
    manifest.end(versions);
    let report = ServerReport { scale: args.scale, seconds: args.seconds, cases };
    Ok((manifest, report, is_stopped))
}

/// Settings that all kept samples share.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct SharedSettings {
    machine: String,
    seconds: f64,
    scale: u32,
    threads: usize,
    seed: u64,
    postgresql: Option<String>,
}

/// The results.
#[derive(Debug, Serialize)]
struct ServerReport {
    scale: u32,
    /// Seconds of each run of pgbench.
    seconds: f64,
    cases: Vec<PairedCase>,
}

impl ServerReport {
    /// For `bench compare`.
    fn measurements(&self) -> Vec<Measurement> {
        self.cases.iter().flat_map(PairedCase::measurements).collect()
    }
}

impl fmt::Display for ServerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scale, seconds, .. } = self;
        writeln!(f, "- pgbench at scale {scale}, runs of {seconds} s, durability fsync")?;
        writeln!(
            f,
            "- PostgreSQL with shared_buffers of 1 GB and max_connections of 1200, else as installed\n"
        )?;
        f.write_str(&paired::table(&self.cases))
    }
}
