//! Atoll's generator: TPC-H made in memory by the workers that keep it, and the files written from
//! there, so that every engine loads the same rows.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use atoll_sql::tpch;

use super::atoll::Atoll;
use super::{Engine, EngineKind, Host, WorkerArgs, milliseconds_since, reply};
use crate::memory;
use crate::protocol::Loaded;
use crate::tpch_data;

/// Generates, reports, and writes the files if asked to.
pub(super) fn run(options: &WorkerArgs, host: Host, output: &mut impl Write) -> Result<()> {
    let rss_before_load_bytes = memory::of_this_process("VmRSS")?;
    let started = Instant::now();
    let atoll = Atoll::start(options, host)?;
    let session = atoll.session();
    let mut done = |_: &tpch::LoadedTpchTable| {};
    let load = tpch::load(session, options.scale_factor, &mut done);
    session.runtime().block_on(load).context("TPC-H cannot be generated")?;
    let loaded = Loaded {
        engine: EngineKind::Generator.name().to_owned(),
        version: atoll.version(),
        load_ms: milliseconds_since(started),
        rss_before_load_bytes,
        rss_bytes: memory::of_this_process("VmRSS")?,
        peak_rss_bytes: memory::of_this_process("VmHWM")?,
        placement: atoll.placement()?,
    };
    reply(output, &loaded)?;
    options.data.as_deref().map_or(Ok(()), |directory| write(&atoll, directory))
}

fn write(atoll: &Atoll, directory: &Path) -> Result<()> {
    for (table, file) in tpch_data::files(directory) {
        let key = tpch_data::key(table).context("a table without a key")?;
        let file = file.replace('\'', "''");
        let sql = format!(
            "COPY (SELECT * FROM {table} ORDER BY {key}) TO '{file}' STORED AS PARQUET \
             OPTIONS ('format.max_row_group_size' '{}')",
            tpch_data::ROW_GROUP_ROWS
        );
        atoll.query(&sql).with_context(|| format!("cannot write {table}"))?;
    }
    Ok(())
}
