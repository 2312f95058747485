//! Loading TPC-H.

use std::time::Instant;

use atoll_sql::{Session, tpch};
use atoll_topology::Bytes;

use super::facts::{Load, LoadedTable};
use crate::progress::LoadBar;
use atoll_tools::exit::{CommandError, Exit};

/// Generates the tables into placed memory.
pub(super) async fn load(
    session: &Session,
    scale: f64,
    has_progress: bool,
) -> Result<Load, CommandError> {
    let bar = LoadBar::new(tpch::TABLES.len(), has_progress);
    let mut tables = Vec::new();
    let started = Instant::now();
    let mut done = |loaded: &tpch::LoadedTpchTable| {
        let table = LoadedTable {
            table: loaded.table.to_owned(),
            rows: loaded.rows as u64,
            bytes: loaded.bytes as u64,
        };
        bar.done(format!("{}: {} rows, {}", table.table, table.rows, Bytes(table.bytes)));
        tables.push(table);
    };
    let loaded = tpch::load(session, scale, &mut done).await;
    let seconds = started.elapsed().as_secs_f64();
    loaded.map_err(|error| {
        CommandError::with(Exit::Statement, format!("cannot load TPC-H: {error}"))
    })?;
    let rows = tables.iter().map(|table| table.rows).sum();
    let bytes = tables.iter().map(|table| table.bytes).sum();
    Ok(Load { seconds, rows, bytes, tables })
}
