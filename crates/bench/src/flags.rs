//! The flags that benchmarks have in common: one spelling and one meaning everywhere.

use std::path::PathBuf;
use std::time::Duration;

use atoll_runtime::THREADS_MAX;
use atoll_tools::bench::OutputArgs;
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::workload::Rig;
use atoll_topology::Machine;
use clap::{Args, ValueEnum, ValueHint};

use crate::rivals::Rival;

/// Bytes, for each byte of data, that all engines together take at most: data, files, partitions and
/// result of Atoll; and data, working memory and result of each rival.
const PEAK: (u64, u64) = (4, 3);

/// How often something is run, and where the results go.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Runs of each, in turn; the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Runs of each before them, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub(crate) warmup: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Competitors and settings.
#[derive(Args, Debug)]
pub(crate) struct ContestArgs {
    /// Engines to compare with: sqlite, duckdb, polars, datafusion, or none [default: all that can]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rivals: Vec<RivalName>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Seed of the random numbers [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Python that has the rivals [default: a virtual environment of Atoll's own, made on first use]
    #[arg(long, value_name = "FILE", env = "ATOLL_PYTHON", value_hint = ValueHint::ExecutablePath)]
    pub(crate) python: Option<PathBuf>,
    /// Longest time, in seconds, that an engine may take to load or to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, value_parser = seconds)]
    timeout: f64,
}

/// Flags of benchmarks of a primitive.
#[derive(Args, Debug)]
pub(crate) struct PrimitiveArgs {
    /// Workers, and threads of each rival; several numbers are compared [default: one for each cpu]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Vec<u16>,
    #[command(flatten)]
    pub(crate) contest: ContestArgs,
    /// How many rivals hold the data at a time
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Resident::Auto)]
    pub(crate) resident: Resident,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RivalName {
    Sqlite,
    Postgresql,
    Duckdb,
    Polars,
    Datafusion,
    None,
}

/// How many rivals hold the data at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Resident {
    /// All where memory allows it, else one
    Auto,
    /// All: they take turns
    All,
    /// One: rival after rival, each paired with Atoll
    One,
}

impl Resident {
    /// Rivals that hold the data at a time.
    pub(crate) fn together(self, data_bytes: u64, rivals: usize, rig: &Rig) -> usize {
        let (ours, theirs) = PEAK;
        let peak = data_bytes.saturating_mul(ours + theirs * rivals as u64);
        let memory = rig.context.arena().machine().memory();
        match self {
            Self::One => 1,
            Self::Auto if peak > memory.0 / 4 * 3 => 1,
            _ => rivals,
        }
    }
}

/// Reads seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=1e6).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds from 0.001 to 1000000".to_owned()),
    }
}

impl ContestArgs {
    /// Whether the user named the rivals: one that is missing then ends the run.
    pub(crate) fn names_rivals(&self) -> bool {
        !self.rivals.is_empty()
    }

    /// The rivals that were asked for, in the order in which they run; all of `able` unless any is
    /// named.
    ///
    /// # Errors
    /// For a rival that is not among `able`.
    pub(crate) fn rivals(&self, able: &[Rival]) -> Result<Vec<Rival>, CommandError> {
        let usage = |message: String| CommandError::with(Exit::Usage, message);
        if self.rivals.len() > 1 && self.rivals.contains(&RivalName::None) {
            return Err(usage("--rivals takes names or 'none', not both".to_owned()));
        }
        let named = |name: &RivalName| match name {
            RivalName::Sqlite => Some(Rival::Sqlite),
            RivalName::Postgresql => Some(Rival::Postgresql),
            RivalName::Duckdb => Some(Rival::Duckdb),
            RivalName::Polars => Some(Rival::Polars),
            RivalName::Datafusion => Some(Rival::Datafusion),
            RivalName::None => None,
        };
        let mut rivals: Vec<Rival> = match self.rivals.is_empty() {
            true => able.to_vec(),
            false => self.rivals.iter().filter_map(named).collect(),
        };
        rivals.sort_unstable();
        rivals.dedup();
        match rivals.iter().find(|rival| !able.contains(rival)) {
            None => Ok(rivals),
            Some(rival) => {
                let able = able.iter().map(|rival| rival.name()).chain(["none"]);
                let able = able.collect::<Vec<_>>().join(", ");
                Err(usage(format!(
                    "{rival} does not support this benchmark; --rivals is one of {able}"
                )))
            }
        }
    }

    /// How long an engine may take to load or to answer.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }

    /// The seed.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
}

impl PrimitiveArgs {
    /// Numbers of threads, in the order given.
    pub(crate) fn threads(&self, machine: &Machine) -> Vec<usize> {
        match self.threads.is_empty() {
            true => vec![machine.cpus.len().clamp(1, THREADS_MAX)],
            false => self.threads.iter().map(|threads| usize::from(*threads)).collect(),
        }
    }
}
