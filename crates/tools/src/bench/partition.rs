//! `bench partition`: radix partitioning of rows of key and value, beside what memory allows.

use std::sync::Arc;

use anyhow::Result;
use atoll_primitives::partition::{FanOut, Partitioner, Pieces};
use atoll_primitives::{PrimitiveError, hash};
use serde_json::{Map, Value, json};

use super::rivals::args::{Shared, count};
use super::rivals::bandwidth::Bound;
use super::rivals::check::Check;
use super::rivals::columns::{Table, values};
use super::rivals::draw::Draw;
use super::rivals::paired::{self, Contest, Outcome, Own, Settings, timed};
use super::rivals::report::{Case, Report};
use super::rivals::rig::Rig;
use super::rivals::sweep::{Sweep, workers_parts};
use crate::exit::Ends;

/// What `--help` shows.
pub(super) const EXAMPLES: &str = "\
Examples:
  atoll bench partition                               2^26 rows to 1024 partitions
  atoll bench partition --fan-out 64,256,1024,4096
  atoll bench partition --rows 2^20 --threads 1,2 --json

Rows of 8+8 bytes go to the partition that the hash of their key tells, on every worker for itself.
'of limit' is the share of the speed at which the same workers copy memory in the same run.";

/// Arguments.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Rows of key and value
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2^26", value_parser = count)]
    rows: Vec<u64>,
    /// Partitions, a power of two each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1024", value_parser = fan_out)]
    fan_out: Vec<FanOut>,
    #[command(flatten)]
    shared: Shared,
}

fn fan_out(text: &str) -> Result<FanOut, String> {
    let most = 1_u64 << FanOut::BITS_MAX;
    match count(text)? {
        number if number.is_power_of_two() && number <= most => Ok(FanOut::of_bits(number.ilog2())),
        _ => Err(format!("a power of two up to {most}")),
    }
}

/// Runs it.
pub(super) fn run(args: &Args) -> Result<(), Ends> {
    let form = args.shared.form()?;
    let settings = args.shared.settings()?;
    let mut sweep = Sweep::start("partition", &args.shared)?;
    for threads in sweep.threads.clone() {
        let rig = sweep.rig(threads)?;
        for rows in &args.rows {
            let table = data(&rig, *rows, args.shared.seed)?;
            for fan_out in &args.fan_out {
                let case = case(&rig, &settings, &table, *fan_out)?;
                sweep.add(case);
            }
        }
    }
    let report: Report = sweep.end();
    args.shared.write(form, &report)
}

fn data(rig: &Rig, rows: u64, seed: u64) -> Result<Table> {
    Table::make(rig, rows, move |row| {
        let mut draw = Draw::of(seed, 0, row);
        (draw.value(), draw.value())
    })
}

fn case(rig: &Rig, settings: &Settings, table: &Table, fan_out: FanOut) -> Result<Option<Case>> {
    let expected = Check::of_rows(table.rows());
    let partition = || {
        let (seconds, pieces) = timed(|| partition(rig, table, fan_out))?;
        let check = pieces.iter().map(check_pieces).collect::<Result<Vec<_>>>()?;
        let check = check.into_iter().fold(Check::default(), Check::and);
        Ok(Outcome { seconds, check, ..Outcome::default() })
    };
    let title = format!("{} rows to {} partitions", table.len, fan_out.partitions());
    let ours = vec![Own { name: "scatter".to_owned(), run: Box::new(partition) }];
    let contest = Contest { title, query: None, expected, ours, here: Vec::new() };
    let measured = paired::run(rig, settings, contest)?;
    let labels: Map<String, Value> = [
        ("rows".to_owned(), json!(table.len)),
        ("fan_out".to_owned(), json!(fan_out.partitions())),
        ("threads".to_owned(), json!(rig.threads)),
    ]
    .into_iter()
    .collect();
    Ok(Case::of(labels, (Bound::Copy, table.bytes()), &measured))
}

/// Each worker partitions the rows that it made.
///
/// # Errors
/// When memory is out.
pub(crate) fn partition(rig: &Rig, table: &Table, fan_out: FanOut) -> Result<Vec<Pieces<2>>> {
    let shares = Arc::new(workers_parts(rig, table));
    let context = rig.context.clone();
    let step = rig.context.on_workers("partition", move |worker, task| {
        let share = &shares[worker.index()];
        let rows = share.iter().map(|part| part.rows.num_rows()).sum();
        let mut partitioner = Partitioner::<2>::new(&context, Some(task.node()), fan_out, rows)?;
        for part in share {
            let (keys, payloads) = (values(&part.rows, 0), values(&part.rows, 1));
            let block = context.tuning().block_rows.max(1);
            for (keys, payloads) in keys.chunks(block).zip(payloads.chunks(block)) {
                task.check().map_err(PrimitiveError::from)?;
                partitioner.extend(keys.len(), |row| {
                    let key = keys[row] as u64;
                    (fan_out.digit(hash::word(key)), [key, payloads[row] as u64])
                })?;
            }
        }
        partitioner.finish()
    });
    Ok(rig.wait(step)?.0)
}

/// Rows and checksum of pieces that have no row of another.
fn check_pieces(pieces: &Pieces<2>) -> Result<Check> {
    let fan_out = pieces.fan_out();
    let mut all = Check::default();
    for piece in 0..fan_out.partitions() {
        for block in pieces.blocks(piece) {
            let strays = block.iter().filter(|[key, _]| fan_out.digit(hash::word(*key)) != piece);
            anyhow::ensure!(strays.count() == 0, "a row is in a partition that is not its own");
            all = all
                .and(Check::of_rows(block.iter().map(|[key, value]| (*key as i64, *value as i64))));
        }
    }
    Ok(all)
}
