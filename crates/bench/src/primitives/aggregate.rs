//! `bench aggregate`: the sum of a column by key, against the rivals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use atoll_primitives::aggregate::Variant;
use atoll_tools::exit::CommandError;
use atoll_tools::workload::{
    ColumnTable, Draw, Keys, Permutation, Rig, Zipf, count, rows_of, scramble, shown, sums, timed,
};
use clap::Args;
use serde_json::{Value, json};

use super::bandwidth::{Bound, Meter};
use super::contest::{self, Contest, ContestOutcome, ContestSettings, Own};
use super::report::Case;
use super::sql::{SqlTable, integers};
use super::sweep::Sweep;
use crate::check::{Check, mixed};
use crate::flags::PrimitiveArgs;
use crate::rivals::ANALYTIC;
use crate::rivals::columns::RivalOperation;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench aggregate                                  2^26 rows, 2^10 to 2^24 groups, all rivals
  atoll bench aggregate --keys sparse,zipf,hot --groups 2^20
  atoll bench aggregate --variant auto,local,ring,migrate --rivals none
  atoll bench aggregate --sql --groups 2^15              the primitive, and SQL over the same rows
  atoll bench aggregate --rows 1,2^10,2^20 --groups 2^10 --threads 1,2,8
  atoll bench aggregate --rows 2^28 --groups 2^24 --rivals polars --json -o run.json

SELECT k, sum(v) FROM t GROUP BY k over two columns of 64-bit integers that every engine holds in its own
memory. Runs alternate: Atoll, rival, Atoll, next rival. Every result is checked against the data. The
limit is the time in which the workers read the rows once. Measure on an idle machine.";

/// Arguments.
#[derive(Args, Debug)]
pub(crate) struct AggregateArgs {
    /// Rows of key and value
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2^26", value_parser = count)]
    rows: Vec<u64>,
    /// Groups that keys are drawn from
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2^10,2^15,2^20,2^24", value_parser = count)]
    groups: Vec<u64>,
    /// Distribution of the keys over the groups
    #[arg(long, value_name = "HOW", value_delimiter = ',', default_value = "dense", value_enum)]
    keys: Vec<Keys>,
    /// Atoll's aggregation variants: auto, local, naive, ring, migrate, migrate-copy (Li et al. 2013,
    /// section 4.3)
    #[arg(long, value_name = "HOW", value_delimiter = ',', default_value = "auto")]
    variant: Vec<Variant>,
    /// Also by SQL, from a table in placed memory
    #[arg(long)]
    sql: bool,
    #[command(flatten)]
    shared: PrimitiveArgs,
}

/// Runs it.
pub(crate) fn run(args: &AggregateArgs) -> Result<(), CommandError> {
    let mut sweep = Sweep::start("aggregate", &args.shared, &ANALYTIC)?;
    let seed = sweep.settings.seed;
    for threads in sweep.threads.clone() {
        let rig = sweep.rig(threads)?;
        let meter = Meter::new(&rig)?;
        for rows in &args.rows {
            let of_keys = |keys: &Keys| {
                let keys = *keys;
                args.groups.iter().map(move |groups| Data {
                    rows: *rows,
                    groups: *groups,
                    keys,
                    seed,
                })
            };
            for data in args.keys.iter().flat_map(of_keys) {
                let case = case(&meter, &sweep.settings, data, args)?;
                sweep.add(case);
            }
        }
    }
    sweep.end()
}

fn case(
    meter: &Meter<'_>,
    settings: &ContestSettings,
    data: Data,
    args: &AggregateArgs,
) -> Result<Option<Case>> {
    let rig = meter.rig;
    let table = data.table(rig)?;
    let sql_table = args.sql.then(|| SqlTable::load(rig, &table)).transpose()?;
    let mut all: Vec<Own<'_>> =
        args.variant.iter().map(|variant| ours(rig, &table, *variant)).collect();
    all.extend(sql_table.as_ref().map(by_sql));
    let Data { rows, groups, keys, .. } = data;
    let contest = Contest {
        title: format!("{} rows in {} groups by {keys} keys", shown(rows), shown(groups)),
        query: Some((RivalOperation::Aggregate, vec![("t", &table)])),
        expected: data.expected(rig)?,
        ours: all,
        here: Vec::new(),
    };
    let measured = contest::run(meter, settings, contest)?;
    Ok(Case::from_runs(data.labels(rig.threads), (Bound::Read, table.bytes()), &measured))
}

fn ours<'a>(rig: &'a Rig, table: &'a ColumnTable, variant: Variant) -> Own<'a> {
    let run = move || {
        let (seconds, outcome) = timed(|| sums(rig, table, variant))?;
        let check = Check::of_rows(outcome.batches.iter().flat_map(rows_of));
        let note = format!("{}: {}", outcome.variant, outcome.reason);
        let phases = outcome.phases.iter().map(|it| (it.name.clone(), it.time.as_secs_f64()));
        Ok(ContestOutcome { seconds, check, note: Some(note), phases: phases.collect() })
    };
    Own { name: variant.to_string(), run: Box::new(run) }
}

/// The query that the rivals run, planned again in each run.
fn by_sql(table: &SqlTable) -> Own<'_> {
    let run = || {
        let (seconds, batches) = timed(|| table.run("SELECT k, sum(v) FROM t GROUP BY k"))?;
        let mut check = Check::default();
        for batch in &batches {
            check = check.and(Check::of_rows(rows_of(&integers(batch)?)));
        }
        Ok(ContestOutcome { seconds, check, ..ContestOutcome::default() })
    };
    Own { name: "sql".to_owned(), run: Box::new(run) }
}

/// The distribution of the rows.
#[derive(Clone, Copy, Debug)]
struct Data {
    rows: u64,
    groups: u64,
    keys: Keys,
    seed: u64,
}

impl Data {
    /// Group and value of each row.
    fn of_row(self) -> impl Fn(u64) -> (u64, i64) + Send + Sync + 'static {
        let Self { rows, groups, keys, seed } = self;
        let zipf = Zipf::new(groups);
        let places = Permutation::new(seed, groups);
        let rising =
            move |row: u64| (u128::from(row) * u128::from(groups) / u128::from(rows)) as u64;
        move |row| {
            let mut draw = Draw::for_row(seed, 0, row);
            let group = match keys {
                Keys::Dense | Keys::Sparse => draw.below(groups),
                Keys::Zipf => places.at(zipf.draw(&mut draw)),
                Keys::Hot if draw.below(10) > 0 => places.at(0),
                Keys::Hot => draw.below(groups),
                Keys::Sorted => rising(row),
                Keys::Reversed => rising(rows - 1 - row),
            };
            (group, draw.value())
        }
    }

    /// The key of a group.
    fn key(self, group: u64) -> i64 {
        match self.keys {
            Keys::Sparse => scramble(group ^ scramble(self.seed)) as i64,
            _ => group as i64,
        }
    }

    fn table(self, rig: &Rig) -> Result<ColumnTable> {
        let of_row = self.of_row();
        ColumnTable::make(rig, self.rows, move |row| {
            let (group, value) = of_row(row);
            (self.key(group), value)
        })
    }

    /// The expected result, computed from the rows' numbers without grouping them. The sum of
    /// `mixed(key) · sum` over the groups is that of `mixed(key) · value` over the rows.
    fn expected(self, rig: &Rig) -> Result<Check> {
        let words = self.groups.div_ceil(64) as usize;
        let seen: Arc<Vec<AtomicU64>> = Arc::new((0..words).map(|_| AtomicU64::new(0)).collect());
        let (of_row, workers) = (self.of_row(), rig.threads as u64);
        let shared = Arc::clone(&seen);
        let step = rig.context.on_workers("expected", move |worker, _| {
            let worker = u64::from(worker.0);
            let rows = self.rows * worker / workers..self.rows * (worker + 1) / workers;
            Ok(rows.fold(0_u64, |sum, row| {
                let (group, value) = of_row(row);
                let (word, bit) = (&shared[(group / 64) as usize], 1 << (group % 64));
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
                sum.wrapping_add(mixed(self.key(group)).wrapping_mul(value as u64))
            }))
        });
        let (sums, _) = rig.wait(step)?;
        let groups = (0..self.groups).filter(|group| {
            seen[(group / 64) as usize].load(Ordering::Relaxed) >> (group % 64) & 1 == 1
        });
        let groups = Check::of_rows(groups.map(|group| (self.key(group), 0)));
        let checksum = sums.into_iter().fold(groups.checksum, u64::wrapping_add);
        Ok(Check { checksum, ..groups })
    }

    fn labels(self, threads: usize) -> Value {
        json!({
            "rows": self.rows,
            "groups": self.groups,
            "keys": self.keys.to_string(),
            "threads": threads,
        })
    }
}
