//! The flags that all benchmarks of the primitives have.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atoll_runtime::THREADS_MAX;
use atoll_topology::Machine;
use clap::{ValueEnum, ValueHint};

use super::driver::Rival;
use super::paired::Settings;
use super::report::Report;
use super::rig::Rig;
use crate::bench::form::{Form, document, put};
use crate::exit::{Ends, Exit};

/// Most rows of a table.
const ROWS_MAX: u64 = 1 << 32;
/// Bytes, for each byte of data, that everybody at work takes at most: data, files, partitions and
/// result of Atoll; and data, working memory and result of each rival.
const PEAK: (u64, u64) = (4, 3);

/// The flags.
#[derive(clap::Args, Debug)]
pub(crate) struct Shared {
    /// Workers, and threads of each rival; several are compared [default: one for each cpu]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Vec<u16>,
    /// Engines to compare with: duckdb, polars, datafusion, or none [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rivals: Vec<RivalName>,
    /// Runs of each, in turn; the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Seed of the data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Python that has the rivals [default: $ATOLL_PYTHON, else a virtual environment of Atoll's own,
    /// made on first use]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    python: Option<PathBuf>,
    /// Longest time, in seconds, that a rival may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, value_parser = seconds)]
    patience: f64,
    /// How many rivals hold the data at a time
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Resident::Auto)]
    resident: Resident,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// File to write to instead of stdout; ends in .txt or .json
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RivalName {
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
    /// One: rival after rival, each beside Atoll
    One,
}

impl Resident {
    /// Rivals that hold the data at a time.
    pub(super) fn together(self, data_bytes: u64, rivals: usize, rig: &Rig) -> usize {
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

/// Reads `2^26`, or a number of rows or groups.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no number of rows or groups; write it as 2^20 or 1000000");
    let number = match text.split_once('^') {
        Some(("2", power)) => {
            let power = power.parse().map_err(|_| wrong())?;
            1_u64.checked_shl(power).ok_or_else(wrong)?
        }
        _ => text.parse().map_err(|_| wrong())?,
    };
    match number {
        1..=ROWS_MAX => Ok(number),
        _ => Err(format!("choose 1 to 2^{}", ROWS_MAX.ilog2())),
    }
}

/// Writes a count as it is typed: `2^20` where it is a power of two above 1000.
pub(crate) fn shown(count: u64) -> String {
    match count.is_power_of_two() && count > 1000 {
        true => format!("2^{}", count.ilog2()),
        false => count.to_string(),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=1e6).contains(&seconds) => Ok(seconds),
        _ => Err("seconds from 0.001 to 1000000".to_owned()),
    }
}

impl Shared {
    /// How the results are to be written; told before anything is run.
    pub(crate) fn form(&self) -> Result<Form, Ends> {
        let form = Form::asked_for(self.json.then_some(Form::Json), self.output.as_deref())?;
        match form {
            Form::Svg => {
                Err(Ends::with(Exit::Usage, "there is no picture of this; end it in .txt or .json"))
            }
            form => Ok(form),
        }
    }

    /// How runs are made.
    pub(crate) fn settings(&self) -> Result<Settings, Ends> {
        if self.rivals.len() > 1 && self.rivals.contains(&RivalName::None) {
            return Err(Ends::with(Exit::Usage, "--rivals takes names or 'none', not both"));
        }
        let named = |name: &RivalName| match name {
            RivalName::Duckdb => Some(Rival::Duckdb),
            RivalName::Polars => Some(Rival::Polars),
            RivalName::Datafusion => Some(Rival::Datafusion),
            RivalName::None => None,
        };
        let mut rivals: Vec<Rival> = match self.rivals.is_empty() {
            true => Rival::value_variants().to_vec(),
            false => self.rivals.iter().filter_map(named).collect(),
        };
        rivals.sort_unstable();
        rivals.dedup();
        Ok(Settings {
            rivals,
            runs: self.runs,
            python: self.python.clone(),
            patience: Duration::from_secs_f64(self.patience),
            resident: self.resident,
        })
    }

    /// Numbers of threads, in the order given.
    pub(crate) fn threads(&self, machine: &Arc<Machine>) -> Vec<usize> {
        match self.threads.is_empty() {
            true => vec![machine.cpus.len().clamp(1, THREADS_MAX)],
            false => self.threads.iter().map(|threads| usize::from(*threads)).collect(),
        }
    }

    /// Writes a report where and how it was asked for.
    pub(crate) fn write(&self, form: Form, report: &Report) -> Result<(), Ends> {
        let text = match form {
            Form::Json => document(report)?,
            _ => report.to_string(),
        };
        put(self.output.as_ref(), &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_powers_of_two_or_numbers() {
        for (text, number) in [("2^0", 1), ("2^26", 1 << 26), ("1000", 1000), ("2^32", ROWS_MAX)] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "0", "2^33", "2^99", "3^2", "-1", "2^", "1e6", "99999999999999999999"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert_eq!(
            (shown(1 << 20), shown(1000), shown(8)),
            ("2^20".into(), "1000".into(), "8".into())
        );
    }
}
