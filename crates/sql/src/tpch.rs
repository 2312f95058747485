//! TPC-H as a built-in data set, and its 22 queries.

use std::sync::Arc;

use atoll_runtime::WorkerId;
use atoll_store::table::Chunk;
use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::common::{Result, exec_err};
use futures::future::BoxFuture;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

use crate::Session;
use atoll_sql_common::error::table_error;
use atoll_sql_common::task::BoundTask;

/// The text of query `number`, 1 to 22, with the parameters of TPC-H's validation run.
pub const QUERIES: [&str; 22] = [
    include_str!("../tpch/queries/q01.sql"),
    include_str!("../tpch/queries/q02.sql"),
    include_str!("../tpch/queries/q03.sql"),
    include_str!("../tpch/queries/q04.sql"),
    include_str!("../tpch/queries/q05.sql"),
    include_str!("../tpch/queries/q06.sql"),
    include_str!("../tpch/queries/q07.sql"),
    include_str!("../tpch/queries/q08.sql"),
    include_str!("../tpch/queries/q09.sql"),
    include_str!("../tpch/queries/q10.sql"),
    include_str!("../tpch/queries/q11.sql"),
    include_str!("../tpch/queries/q12.sql"),
    include_str!("../tpch/queries/q13.sql"),
    include_str!("../tpch/queries/q14.sql"),
    include_str!("../tpch/queries/q15.sql"),
    include_str!("../tpch/queries/q16.sql"),
    include_str!("../tpch/queries/q17.sql"),
    include_str!("../tpch/queries/q18.sql"),
    include_str!("../tpch/queries/q19.sql"),
    include_str!("../tpch/queries/q20.sql"),
    include_str!("../tpch/queries/q21.sql"),
    include_str!("../tpch/queries/q22.sql"),
];

/// Rows of a generated batch.
const BATCH_ROWS: usize = 8192;

/// The largest scale factor.
pub const SCALE_MAX: f64 = 100_000.0;

/// Rows below which a table is generated in one part: the generator's start costs more.
const PARALLEL_SCALE: f64 = 0.005;

/// The tables, smallest first.
pub const TABLES: [&str; 8] =
    ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// A loaded table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedTpchTable {
    /// Its name.
    pub table: &'static str,
    /// Its rows.
    pub rows: usize,
    /// Memory it takes in bytes, copies included.
    pub bytes: usize,
}

/// The rows of one part of a table.
type GeneratedPart = Box<dyn RecordBatchReader + Send>;

fn part(table: &str, scale: f64, part: i32, parts: i32) -> Result<GeneratedPart> {
    Ok(match table {
        "region" => Box::new(RegionArrow::new(RegionGenerator::new(scale, part, parts))),
        "nation" => Box::new(NationArrow::new(NationGenerator::new(scale, part, parts))),
        "supplier" => reader(
            SupplierArrow::new(SupplierGenerator::new(scale, part, parts))
                .with_batch_size(BATCH_ROWS),
        ),
        "customer" => reader(
            CustomerArrow::new(CustomerGenerator::new(scale, part, parts))
                .with_batch_size(BATCH_ROWS),
        ),
        "part" => reader(
            PartArrow::new(PartGenerator::new(scale, part, parts)).with_batch_size(BATCH_ROWS),
        ),
        "partsupp" => reader(
            PartSuppArrow::new(PartSuppGenerator::new(scale, part, parts))
                .with_batch_size(BATCH_ROWS),
        ),
        "orders" => reader(
            OrderArrow::new(OrderGenerator::new(scale, part, parts)).with_batch_size(BATCH_ROWS),
        ),
        "lineitem" => reader(
            LineItemArrow::new(LineItemGenerator::new(scale, part, parts))
                .with_batch_size(BATCH_ROWS),
        ),
        other => return exec_err!("unknown TPC-H table '{other}'"),
    })
}

fn reader(part: impl RecordBatchReader + Send + 'static) -> GeneratedPart {
    Box::new(part)
}

/// Generates the eight tables at a scale factor (1 is about a gigabyte of text) and adds them to the session under
/// their names, replacing any that exist. Each worker generates and keeps its share of each table, in the order of the
/// keys. `done` is called with every table that is loaded.
///
/// # Errors
/// For a scale factor that is not above 0, and if memory runs out; tables loaded before stay.
pub fn load<'a>(
    session: &'a Session,
    scale: f64,
    done: &'a mut (dyn FnMut(&LoadedTpchTable) + Send),
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        if !(scale > 0.0 && scale <= SCALE_MAX) {
            return exec_err!(
                "invalid TPC-H scale factor {scale}; expected a number above 0 and up to {SCALE_MAX}"
            );
        }
        for table in TABLES {
            done(&load_table(session, table, scale).await?);
        }
        Ok(())
    })
}

async fn load_table(session: &Session, table: &'static str, scale: f64) -> Result<LoadedTpchTable> {
    let runtime = session.runtime();
    let small = matches!(table, "region" | "nation") || scale < PARALLEL_SCALE;
    let parts = if small { 1 } else { runtime.worker_count() };
    let schema = part(table, scale, 1, 1)?.schema();
    let new = session.new_table(table, schema).await?;
    let mut tasks = Vec::with_capacity(parts);
    for number in 0..parts {
        let worker = WorkerId(number as u32);
        let node = runtime.node_of(worker);
        let mut writer = new.table.writer(node, number);
        tasks.push(BoundTask::new(runtime.spawn_on(worker, async move {
            for batch in part(table, scale, number as i32 + 1, parts as i32)? {
                let batch: RecordBatch = batch?;
                writer.write(&batch).map_err(table_error)?;
                // Lets others run during long generations, and ends here when the load is dropped.
                tokio::task::yield_now().await;
            }
            writer.finish().map_err(table_error)
        })));
    }
    let mut chunks = Vec::new();
    for task in tasks {
        let loaded = task.join(&format!("generating {table}")).await?;
        chunks.extend(loaded.into_iter().map(Arc::new));
    }
    let rows = chunks.iter().map(|chunk| chunk.rows).sum();
    let copies = chunks.iter().flat_map(|chunk: &Arc<Chunk>| &chunk.copies);
    let bytes = copies.map(|copy| copy.memory.len()).sum();
    new.fill(session, chunks).await?;
    Ok(LoadedTpchTable { table, rows, bytes })
}
