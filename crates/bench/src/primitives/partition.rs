//! `bench partition`: radix partitioning of rows of key and value, against the limit of memory.

use anyhow::Result;
use atoll_primitives::hash;
use atoll_primitives::partition::{FanOut, Pieces};
use atoll_tools::exit::CommandError;
use atoll_tools::workload::{ColumnTable, Draw, Rig, count, partition, timed};
use clap::Args;
use serde_json::json;

use super::bandwidth::{Bound, Meter};
use super::contest::{self, Contest, ContestOutcome, ContestSettings, Own};
use super::report::Case;
use super::sweep::Sweep;
use crate::check::Check;
use crate::flags::PrimitiveArgs;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench partition                               2^26 rows to 1024 partitions
  atoll bench partition --fan-out 64,256,1024,4096
  atoll bench partition --rows 2^20 --threads 1,2 --json

Rows of 8+8 bytes go to the partition given by the hash of their key, on each worker separately.
'of limit' is the share of the speed at which the same workers copy memory in the same run.";

/// Arguments.
#[derive(Args, Debug)]
pub(crate) struct PartitionArgs {
    /// Rows of key and value
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2^26", value_parser = count)]
    rows: Vec<u64>,
    /// Partitions, a power of two each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1024", value_parser = fan_out)]
    fan_out: Vec<FanOut>,
    #[command(flatten)]
    shared: PrimitiveArgs,
}

fn fan_out(text: &str) -> Result<FanOut, String> {
    let most = 1_u64 << FanOut::BITS_MAX;
    match count(text)? {
        number if number.is_power_of_two() && number <= most => Ok(FanOut::of_bits(number.ilog2())),
        _ => Err(format!("expected a power of two up to {most}")),
    }
}

/// Runs it.
pub(crate) fn run(args: &PartitionArgs) -> Result<(), CommandError> {
    let mut sweep = Sweep::start("partition", &args.shared, &[])?;
    for threads in sweep.threads.clone() {
        let rig = sweep.rig(threads)?;
        let meter = Meter::new(&rig)?;
        for rows in &args.rows {
            let table = data(&rig, *rows, sweep.settings.seed)?;
            for fan_out in &args.fan_out {
                let case = case(&meter, &sweep.settings, &table, *fan_out)?;
                sweep.add(case);
            }
        }
    }
    sweep.end()
}

fn data(rig: &Rig, rows: u64, seed: u64) -> Result<ColumnTable> {
    ColumnTable::make(rig, rows, move |row| {
        let mut draw = Draw::for_row(seed, 0, row);
        (draw.value(), draw.value())
    })
}

fn case(
    meter: &Meter<'_>,
    settings: &ContestSettings,
    table: &ColumnTable,
    fan_out: FanOut,
) -> Result<Option<Case>> {
    let rig = meter.rig;
    let expected = Check::of_rows(table.rows());
    let run = || {
        let (seconds, pieces) = timed(|| partition(rig, table, fan_out))?;
        let check = pieces.iter().map(check_pieces).collect::<Result<Vec<_>>>()?;
        let check = check.into_iter().fold(Check::default(), Check::and);
        Ok(ContestOutcome { seconds, check, ..ContestOutcome::default() })
    };
    let title = format!("{} rows to {} partitions", table.len, fan_out.partitions());
    let ours = vec![Own { name: "scatter".to_owned(), run: Box::new(run) }];
    let contest = Contest { title, query: None, expected, ours, here: Vec::new() };
    let measured = contest::run(meter, settings, contest)?;
    let labels = json!({
        "rows": table.len, "fan_out": fan_out.partitions(), "threads": rig.threads,
    });
    Ok(Case::from_runs(labels, (Bound::Copy, table.bytes()), &measured))
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
