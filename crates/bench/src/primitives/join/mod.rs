//! `bench join`: rows of one table matched with those of another, both payloads summed, against the
//! rivals.

mod data;
mod ours;

use anyhow::Result;
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::workload::{Keys, count};
use clap::{Args, ValueEnum};

use super::bandwidth::{Bound, Meter};
use super::contest::{self, Contest, ContestSettings};
use super::report::Case;
use super::sweep::Sweep;
use crate::flags::PrimitiveArgs;
use crate::rivals::ANALYTIC;
use crate::rivals::columns::RivalOperation;
use data::{Data, Sides};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench join                                     2^22 with 2^26 rows on a unique key, all rivals
  atoll bench join --keys sparse --duplicates 4
  atoll bench join --matches 10% --rivals polars,datafusion
  atoll bench join --algorithm radix,mpsm --threads 1,2 --rivals none
  atoll bench join --build 1,2^10 --probe 2^10 --keys zipf,hot

SELECT count(*), sum(b.v), sum(p.v) FROM p JOIN b ON p.k = b.k over tables of two columns of 64-bit
integers that every engine holds in its own memory. Runs alternate: Atoll, rival, Atoll, next rival. Every
result is checked against the data. The limit is the time in which the workers read both tables once. The
phases of mpsm are those of Li et al. 2013, figure 9; its speed-up over threads is that of figure 8.";

/// Arguments.
#[derive(Args, Debug)]
pub(crate) struct JoinArgs {
    /// Rows of the smaller table
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2^22", value_parser = count)]
    build: Vec<u64>,
    /// Rows of the larger table
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2^26", value_parser = count)]
    probe: Vec<u64>,
    /// Rows of the smaller table with the same key
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = count)]
    duplicates: Vec<u64>,
    /// Share of the rows of the larger table that match: 10% or 0.1
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_value = "100%", value_parser = share)]
    matches: Vec<f64>,
    /// Distribution of the keys; zipf and hot apply to the larger table
    #[arg(long, value_name = "HOW", value_delimiter = ',', default_value = "dense", value_enum)]
    keys: Vec<Keys>,
    /// Atoll's join algorithms
    #[arg(long, value_name = "HOW", value_delimiter = ',', default_value = "radix", value_enum)]
    algorithm: Vec<Algorithm>,
    #[command(flatten)]
    shared: PrimitiveArgs,
}

/// Atoll's joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Algorithm {
    /// The hash join, which picks between one table and partitions
    Radix,
    /// The sort-merge join in four phases, pieces read along the ring
    Mpsm,
}

fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number * unit >= 0.001 && number * unit <= 1.0 => Ok(number * unit),
        _ => Err("expected a share from 0.1% to 100%".to_owned()),
    }
}

/// Runs it.
pub(crate) fn run(args: &JoinArgs) -> Result<(), CommandError> {
    let all = args.data();
    if let Some(wrong) = all.iter().find_map(|data| data.mistake()) {
        return Err(CommandError::with(Exit::Usage, wrong));
    }
    let mut sweep = Sweep::start("join", &args.shared, &ANALYTIC)?;
    for threads in sweep.threads.clone() {
        let rig = sweep.rig(threads)?;
        let meter = Meter::new(&rig)?;
        for data in &all {
            let case = case(&meter, &sweep.settings, *data, &args.algorithm)?;
            sweep.add(case);
        }
    }
    sweep.end()
}

impl JoinArgs {
    /// Every combination.
    fn data(&self) -> Vec<Data> {
        let mut all = Vec::new();
        for build in &self.build {
            for probe in &self.probe {
                for keys in &self.keys {
                    for duplicates in &self.duplicates {
                        all.extend(self.matches.iter().map(|matches| Data {
                            build: *build,
                            probe: *probe,
                            duplicates: *duplicates,
                            matches: *matches,
                            keys: *keys,
                            seed: self.shared.contest.seed(),
                        }));
                    }
                }
            }
        }
        all
    }
}

fn case(
    meter: &Meter<'_>,
    settings: &ContestSettings,
    data: Data,
    algorithms: &[Algorithm],
) -> Result<Option<Case>> {
    let rig = meter.rig;
    let sides = data.sides(rig)?;
    let contest = Contest {
        title: data.to_string(),
        query: Some((RivalOperation::Join, vec![("b", &sides.build), ("p", &sides.probe)])),
        expected: sides.expected,
        ours: algorithms.iter().map(|algorithm| ours::own(rig, &sides, *algorithm)).collect(),
        here: Vec::new(),
    };
    let measured = contest::run(meter, settings, contest)?;
    let Sides { build, probe, .. } = &sides;
    let bytes = build.bytes() + probe.bytes();
    Ok(Case::from_runs(data.labels(rig.threads), (Bound::Read, bytes), &measured))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_percent_or_parts_of_one() {
        assert_eq!((share("10%"), share("0.5"), share("1")), (Ok(0.1), Ok(0.5), Ok(1.0)));
        for text in ["", "0", "101%", "-1", "x%", "NaN", "inf"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
