//! Elastic cores (Dominico 2018): TPC-H of many clients on a DBMS that knows nothing of nodes, under the system's
//! own scheduling and with the cores that `atoll elastic` gives it, mode by mode in turn.
//!
//! | Work | Paper | Clients |
//! |---|---|---|
//! | `random` | figure 6 | `--clients`, each runs the queries in its own order |
//! | `sequence` | figure 5 | the most clients, all in TPC-H's order |
//! | `single` | figures 1, 3 and 4 | one, which repeats Q6 |
//! | `thresholds` | section 4 | the most clients, `adaptive` under several thresholds |
//! | `mixed` | section 3.3 | the most clients, every other one looks orders up |

mod clients;
mod follow;
mod overhead;
mod plot;
mod published;
mod report;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use atoll_elastic::decide::CorePolicy;
use atoll_elastic::mode::Mode;
use atoll_tools::bench::{Document, Form, Manifest, OutputArgs, json};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use atoll_topology::Machine;
use clap::{Args, ValueEnum};
use serde_json::json as object;

use crate::flags;
use crate::programs::own_command;
use crate::rivals::RivalProcess;
use clients::{ClientWork, ClientsAnswer, ClientsRequest, ElasticEngine};
use follow::followed;
use report::{ElasticCase, ElasticReport, ModeRun};

pub(crate) use clients::{ElasticClientsArgs, serve_clients};
pub(crate) use overhead::{ElasticLoadArgs, run_load};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench elastic                                        DataFusion, followed from outside
  atoll bench elastic --engine atoll                         Atoll, which gives itself cores
  atoll bench elastic --work random --clients 1,16,256 -o elastic.md -o elastic.svg
  atoll bench elastic --work thresholds --thresholds 10:70,5:50,20:90
  atoll bench elastic --overhead                             what following costs: 200 threads, 8 GB
  atoll lab run --machine opteron-8387-4 --count region -- \\
      atoll bench elastic --scale-factor 0.01 --clients 4 --queries 6 --runs 1     counted, by node

The modes take turns: os (all cores, the system schedules), dense, sparse, adaptive. Next to them stand the
published figures. On a machine of one node the modes differ in the number of cores only; the output says so.";

/// Repetitions of Q6 by one client.
const SINGLE: u32 = 50;
/// The region that the lab counts runs as that do not count.
const WARMUP_REGION: u8 = 63;
/// The query of figures 1, 3 and 4.
const SINGLE_QUERY: u8 = 6;

/// Arguments of `atoll bench elastic`.
#[derive(Args, Debug)]
pub(crate) struct ElasticArgs {
    /// Scale factor of TPC-H; the paper's is 1
    #[arg(long, value_name = "SCALE", default_value_t = 1.0)]
    scale_factor: f64,
    /// Engine
    #[arg(long, value_enum, default_value = "datafusion")]
    engine: ElasticEngine,
    /// Threads of the engine [default: one for each cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Clients that ask at a time; several numbers are compared
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,4,16,64,256",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    clients: Vec<u32>,
    /// Queries by number, such as 1,6,18 [default: all 22]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(1..=22))]
    queries: Vec<u8>,
    /// Kinds of work
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_enum,
        default_value = "random,single,sequence,thresholds,mixed"
    )]
    work: Vec<WorkName>,
    /// Modes, in turn; os always runs
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "dense,sparse,adaptive"
    )]
    modes: Vec<Mode>,
    /// Lower and upper thresholds of the load for `thresholds`, percent
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = thresholds,
          default_value = "10:70,5:50,10:50,10:90,30:70")]
    thresholds: Vec<Thresholds>,
    /// Runs of each, in turn
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Seed of the orders
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Longest time, in seconds, that loading or a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0, value_parser = flags::seconds)]
    timeout: f64,
    /// Measure what following costs instead
    #[arg(long)]
    overhead: bool,
    #[command(flatten)]
    load: overhead::OverheadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WorkName {
    Random,
    Single,
    Sequence,
    Thresholds,
    Mixed,
}

/// Thresholds of the load, percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thresholds {
    thmin: i64,
    thmax: i64,
}

fn thresholds(text: &str) -> Result<Thresholds, String> {
    let pair =
        text.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    match pair {
        Some((thmin, thmax)) if 0 <= thmin && thmin < thmax && thmax <= 100 => {
            Ok(Thresholds { thmin, thmax })
        }
        _ => Err("expected two percentages such as 10:70, the lower one first".to_owned()),
    }
}

/// Measures and writes the results.
pub(crate) fn run(args: &ElasticArgs) -> Result<(), CommandError> {
    let outputs = args.output.outputs(!args.overhead)?;
    if args.overhead {
        return overhead::run(&args.load, &outputs);
    }
    let machine = Machine::discover().context("this machine cannot be described")?;
    let mut manifest = Manifest::new(&machine, args.runs, 1, args.seed);
    let report = measure(args, &machine)?;
    let version = match args.engine {
        ElasticEngine::Atoll => env!("CARGO_PKG_VERSION"),
        ElasticEngine::Datafusion => datafusion::DATAFUSION_VERSION,
    };
    manifest.end([(report.engine.clone(), version.to_owned())]);
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "elastic",
            manifest: &manifest,
            measurements: report.measurements(),
            details: &report,
        }),
        Form::Svg => Ok(plot::plot(&report)),
        Form::Text => Ok(report.to_markdown(&manifest)),
    })?;
    report.problems.iter().for_each(terminal::say_error);
    match report.problems.is_empty() {
        true => Ok(()),
        false => Err(CommandError::quietly(Exit::Statement)),
    }
}

/// One setting.
struct Setting {
    name: &'static str,
    work: ClientWork,
    clients: u32,
    thresholds: Vec<Thresholds>,
}

/// The settings of each kind of work.
fn settings(args: &ElasticArgs) -> Vec<Setting> {
    let most = args.clients.iter().copied().max().unwrap_or(1);
    let usual = CorePolicy::default();
    let usual = vec![Thresholds { thmin: usual.thmin, thmax: usual.thmax }];
    let one = |name, work, clients| Setting { name, work, clients, thresholds: usual.clone() };
    let mut settings = Vec::new();
    for name in &args.work {
        match name {
            WorkName::Random => {
                let clients = args.clients.iter();
                settings.extend(clients.map(|clients| one("random", ClientWork::Random, *clients)));
            }
            WorkName::Sequence => settings.push(one("sequence", ClientWork::Sequence, most)),
            WorkName::Mixed => settings.push(one("mixed", ClientWork::Mixed, most)),
            WorkName::Single => {
                let query = args.queries.first().copied().unwrap_or(SINGLE_QUERY);
                let query = if args.queries.contains(&SINGLE_QUERY) { SINGLE_QUERY } else { query };
                settings.push(one("single", ClientWork::Single { query, times: SINGLE }, 1));
            }
            WorkName::Thresholds => settings.push(Setting {
                thresholds: args.thresholds.clone(),
                ..one("thresholds", ClientWork::Random, most)
            }),
        }
    }
    settings
}

fn measure(args: &ElasticArgs, machine: &Machine) -> Result<ElasticReport> {
    let mut target = Target::start(args, machine)?;
    let mut report = ElasticReport::new(args.engine, args.scale_factor, target.threads, machine)?;
    let queries: Vec<u8> = match args.queries.is_empty() {
        true => (1..=22).collect(),
        false => args.queries.clone(),
    };
    for setting in settings(args) {
        for thresholds in &setting.thresholds {
            let settings = object!({
                "work": setting.name, "clients": setting.clients,
                "thmin": thresholds.thmin, "thmax": thresholds.thmax,
            });
            let mut case = ElasticCase::new(settings);
            for run in 0..=args.runs {
                // Only adaptive when thresholds are compared.
                let is_sweep = setting.name == "thresholds";
                // The first run warms up: it does not count.
                let is_warmup = run == 0;
                let is_given = |mode: &&Mode| !is_warmup && (!is_sweep || **mode == Mode::Adaptive);
                let given = args.modes.iter().filter(is_given);
                for mode in std::iter::once(None).chain(given.map(|mode| Some(*mode))) {
                    let request = ClientsRequest {
                        work: setting.work,
                        clients: setting.clients,
                        queries: queries.clone(),
                        seed: args.seed.wrapping_add(u64::from(run)),
                        region: if is_warmup { WARMUP_REGION } else { region(mode) },
                        cores: None,
                    };
                    if let Some(done) = target.run(machine, mode, *thresholds, request)? {
                        if is_warmup {
                            continue;
                        }
                        terminal::say(case.add(mode_name(mode), done));
                    }
                }
            }
            report.add(case);
        }
    }
    report.finish();
    Ok(report)
}

/// The region that the lab counts a mode as: 0 is the system's own scheduling.
fn region(mode: Option<Mode>) -> u8 {
    mode.map_or(0, |mode| 1 + mode as u8)
}

/// The name of a mode; `None` is the system's own scheduling.
fn mode_name(mode: Option<Mode>) -> &'static str {
    mode.map_or("os", Mode::name)
}

/// The process that answers.
struct Target {
    engine: ElasticEngine,
    threads: usize,
    process: RivalProcess,
}

impl Target {
    fn start(args: &ElasticArgs, machine: &Machine) -> Result<Self> {
        let threads = args.threads.map_or(machine.cpus.len(), usize::from).max(1);
        let engine = args.engine.to_possible_value().context("an engine without a name")?;
        let mut command = own_command()?;
        command.args(["elastic-clients", "--engine", engine.get_name(), "--threads"]);
        command.arg(threads.to_string()).arg("--scale-factor").arg(args.scale_factor.to_string());
        terminal::say(format_args!(
            "{}: TPC-H of scale factor {}",
            engine.get_name(),
            args.scale_factor
        ));
        let patience = Duration::from_secs_f64(args.timeout);
        let mut process = RivalProcess::start(engine.get_name(), &mut command, patience)?;
        match process.receive::<ClientsAnswer>()? {
            Ok(_) => Ok(Self { engine: args.engine, threads, process }),
            Err(error) => bail!("the tables cannot be loaded: {error}"),
        }
    }

    /// A run under a mode; None if the engine has no such mode.
    fn run(
        &mut self,
        machine: &Machine,
        mode: Option<Mode>,
        thresholds: Thresholds,
        mut request: ClientsRequest,
    ) -> Result<Option<ModeRun>> {
        let policy = mode.map(|mode| CorePolicy {
            mode,
            thmin: thresholds.thmin,
            thmax: thresholds.thmax,
            ..CorePolicy::default()
        });
        let outside = match (self.engine, mode) {
            (ElasticEngine::Datafusion, _) => policy.as_ref(),
            (ElasticEngine::Atoll, None | Some(Mode::Adaptive)) => {
                request.cores = Some(if mode.is_some() { "elastic" } else { "all" }.to_owned());
                None
            }
            // Its workers bind themselves and ignore cores given from outside.
            (ElasticEngine::Atoll, Some(Mode::Dense | Mode::Sparse)) => return Ok(None),
        };
        let (pid, process) = (self.process.pid(), &mut self.process);
        let (answer, followed) =
            followed(machine, pid, outside, || process.ask::<ClientsAnswer>(&request))?;
        let is_unknown = self.engine == ElasticEngine::Atoll && mode.is_some();
        Ok(Some(ModeRun { answer, followed, is_cores_unknown: is_unknown }))
    }
}
