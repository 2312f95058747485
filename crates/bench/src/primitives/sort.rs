//! `bench sort`: rows of key and value in the order of their keys, against the rivals and the standard
//! library.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use arrow_array::Int64Array;
use arrow_array::cast::AsArray;
use atoll_placement::NodeBuffer;
use atoll_primitives::sort::{SortBy, SortedRun, sort};
use atoll_primitives::{Part, PrimitiveError};
use atoll_runtime::StepReport;
use atoll_tools::exit::CommandError;
use atoll_tools::workload::{
    ColumnTable, Draw, Keys, PART_ROWS, Permutation, Rig, Zipf, count, scramble, shown, timed,
};
use clap::Args;
use serde_json::json;

use super::bandwidth::{Bound, Meter};
use super::contest::{self, Contest, ContestOutcome, ContestSettings, Own};
use super::report::Case;
use super::sweep::Sweep;
use crate::check::Check;
use crate::flags::PrimitiveArgs;
use crate::rivals::ANALYTIC;
use crate::rivals::columns::RivalOperation;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench sort                                     2^26 rows of random 64-bit keys, all rivals
  atoll bench sort --keys dense,sorted,reversed,zipf --rows 2^22
  atoll bench sort --rows 2^10,2^20 --rivals none      against sort_unstable of the standard library

SELECT k, v FROM t ORDER BY k over two columns of 64-bit integers that every engine holds in its own
memory. 'std' is the standard library's sort_unstable_by_key on one thread, of rows that lie together.
Runs alternate; every result is checked. The limit is the time in which the workers copy the rows once.";

/// Arguments.
#[derive(Args, Debug)]
pub(crate) struct SortArgs {
    /// Rows of key and value
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2^26", value_parser = count)]
    rows: Vec<u64>,
    /// Distribution of the keys, over as many keys as rows
    #[arg(long, value_name = "HOW", value_delimiter = ',', default_value = "sparse", value_enum)]
    keys: Vec<Keys>,
    #[command(flatten)]
    shared: PrimitiveArgs,
}

/// Runs it.
pub(crate) fn run(args: &SortArgs) -> Result<(), CommandError> {
    let mut sweep = Sweep::start("sort", &args.shared, &ANALYTIC)?;
    for threads in sweep.threads.clone() {
        let rig = sweep.rig(threads)?;
        let meter = Meter::new(&rig)?;
        for rows in &args.rows {
            for keys in &args.keys {
                let case = case(&meter, &sweep.settings, (*rows, *keys))?;
                sweep.add(case);
            }
        }
    }
    sweep.end()
}

fn case(
    meter: &Meter<'_>,
    settings: &ContestSettings,
    (rows, keys): (u64, Keys),
) -> Result<Option<Case>> {
    let rig = meter.rig;
    let table = table(rig, rows, keys, settings.seed)?;
    let expected = Check::of_rows(table.rows());
    let contest = Contest {
        title: format!("{} rows of {keys} keys", shown(rows)),
        query: Some((RivalOperation::Sort, vec![("t", &table)])),
        expected,
        ours: vec![ours(rig, &table)],
        here: vec![standard(&table)],
    };
    let measured = contest::run(meter, settings, contest)?;
    let labels = json!({ "rows": rows, "keys": keys.to_string(), "threads": rig.threads });
    Ok(Case::from_runs(labels, (Bound::Copy, table.bytes()), &measured))
}

fn table(rig: &Rig, rows: u64, keys: Keys, seed: u64) -> Result<ColumnTable> {
    let (zipf, places) = (Zipf::new(rows), Permutation::new(seed, rows));
    ColumnTable::make(rig, rows, move |row| {
        let mut draw = Draw::for_row(seed, 0, row);
        let key = match keys {
            Keys::Dense => draw.below(rows),
            Keys::Sparse => scramble(draw.below(u64::MAX)),
            Keys::Zipf => places.at(zipf.draw(&mut draw)),
            Keys::Hot if draw.below(10) > 0 => places.at(0),
            Keys::Hot => draw.below(rows),
            Keys::Sorted => row,
            Keys::Reversed => rows - 1 - row,
        };
        (key as i64, draw.value())
    })
}

/// Atoll's sort of row numbers by key, and the columns in their order.
fn ours<'a>(rig: &'a Rig, table: &'a ColumnTable) -> Own<'a> {
    let run = move || {
        let (seconds, (columns, steps)) = timed(|| sorted(rig, table))?;
        let rows = columns.iter().flat_map(|[keys, values]| words(keys).zip(words(values)));
        let rows: Vec<(i64, i64)> = rows.collect();
        let phases = steps.iter().map(|step| (step.name.clone(), step.time.as_secs_f64()));
        let phases = phases.collect();
        Ok(ContestOutcome { seconds, check: check(&rows)?, phases, ..ContestOutcome::default() })
    };
    Own { name: "sort".to_owned(), run: Box::new(run) }
}

fn words(buffer: &NodeBuffer) -> impl Iterator<Item = i64> {
    buffer.as_slice().as_chunks().0.iter().map(|word| i64::from_ne_bytes(*word))
}

/// Keys and values of a run, sorted.
type Columns = [NodeBuffer; 2];

fn sorted(rig: &Rig, table: &ColumnTable) -> Result<(Vec<Columns>, Vec<StepReport>)> {
    let sorted = rig.wait(sort(&rig.context, &table.parts, SortBy::column(0)))?;
    let (runs, mut steps) = (Arc::new(sorted.runs), sorted.steps);
    let (context, values) = (rig.context.clone(), Arc::new(Values::from_table(table)));
    let (all, next) = (Arc::clone(&runs), AtomicUsize::new(0));
    let gathered = rig.context.on_workers("gather values", move |_, task| {
        let mut gathered = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = all.get(number) else { return Ok(gathered) };
            task.check()?;
            gathered.push((number, columns(&context, run, &values)?));
        }
    });
    let (gathered, step) = rig.wait(gathered)?;
    steps.push(step);
    let mut gathered: Vec<(usize, Columns)> = gathered.into_iter().flatten().collect();
    gathered.sort_unstable_by_key(|(number, _)| *number);
    Ok((gathered.into_iter().map(|(_, columns)| columns).collect(), steps))
}

/// Columns of a run, on its node.
fn columns(
    context: &atoll_primitives::Context,
    run: &SortedRun,
    values: &Values,
) -> Result<Columns, PrimitiveError> {
    let column = || context.arena().allocate(run.home(), 8 * run.rows().len());
    let mut columns = [column()?, column()?];
    let [keys, payloads] = &mut columns;
    let places = keys.as_mut_slice().as_chunks_mut().0.iter_mut();
    let places = places.zip(payloads.as_mut_slice().as_chunks_mut().0);
    for ([word, number], (key, payload)) in run.rows().iter().zip(places) {
        // The sort key of integers has its sign bit inverted.
        *key = (word ^ (1 << 63)).to_ne_bytes();
        *payload = values.at(*number as usize).to_ne_bytes();
    }
    Ok(columns)
}

/// Values by row number.
struct Values {
    parts: Vec<Int64Array>,
    /// Number of the first row of each part, and of the row after the last.
    starts: Vec<usize>,
}

impl Values {
    fn from_table(table: &ColumnTable) -> Self {
        let mut starts = vec![0];
        for part in &table.parts {
            starts.push(starts[starts.len() - 1] + part.rows.num_rows());
        }
        let column = |part: &Part| part.rows.column(1).as_primitive().clone();
        Self { parts: table.parts.iter().map(column).collect(), starts }
    }

    fn at(&self, row: usize) -> i64 {
        // Parts are that long, but the last of each worker.
        let mut part = row / PART_ROWS as usize;
        while self.starts[part + 1] <= row {
            part += 1;
        }
        self.parts[part].values()[row - self.starts[part]]
    }
}

/// Rows and checksum of rows that rise.
fn check(rows: &[(i64, i64)]) -> Result<Check> {
    anyhow::ensure!(rows.is_sorted_by_key(|(key, _)| *key), "the rows are not sorted");
    Ok(Check::of_rows(rows.iter().copied()))
}

fn standard(table: &ColumnTable) -> Own<'_> {
    let run = || {
        let mut rows: Vec<(i64, i64)> = table.rows().collect();
        let (seconds, ()) = timed(|| {
            rows.sort_unstable_by_key(|(key, _)| *key);
            Ok(())
        })?;
        Ok(ContestOutcome { seconds, check: check(&rows)?, ..ContestOutcome::default() })
    };
    Own { name: "std".to_owned(), run: Box::new(run) }
}
