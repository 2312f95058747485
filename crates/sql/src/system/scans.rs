//! `atoll.scans`: statistics of the shared scans of each table.

use super::SystemTable;
use super::column::ColumnSpecs;
use crate::pg_catalog::SystemCatalog;
use crate::shared_scan::ScanReport;

/// One row per table with shared scans, and pool of the sessions.
pub(super) fn scans() -> SystemTable {
    ColumnSpecs::<ScanReport>::new()
        .column("table_name", |scan| scan.table.clone())
        .column("pool", |scan| scan.pool.clone())
        .column("waiting", |scan| scan.waiting)
        .column("cycles", |scan| scan.cycles)
        .column("queries", |scan| scan.queries)
        .column("batch_mean", |scan| scan.batch_mean)
        .column("batch_max", |scan| scan.batch_max)
        .column("cycle_ms", |scan| scan.cycle_ms)
        .column("latency_p50_ms", |scan| scan.latency_ms.map(|(half, _)| half))
        .column("latency_p99_ms", |scan| scan.latency_ms.map(|(_, most)| most))
        .column("rows_read", |scan| scan.scan.rows)
        .column("bytes_read", |scan| scan.scan.bytes)
        .column("candidates", |scan| scan.scan.candidates)
        .column("matches", |scan| scan.scan.matches)
        .column("answered_elsewhere", |scan| scan.elsewhere)
        .column("preparing_ms", |scan| scan.preparing_ms)
        .column("scanning_ms", |scan| milliseconds(scan.scan.times.all))
        .column("numbers_ms", |scan| milliseconds(scan.scan.times.numbers))
        .column("text_ms", |scan| milliseconds(scan.scan.times.text))
        .column("lookups_ms", |scan| milliseconds(scan.scan.times.lookups))
        .column("proving_ms", |scan| milliseconds(scan.scan.times.proving))
        .column("gathering_ms", |scan| milliseconds(scan.scan.times.gathering))
        .table_of("scans", |SystemCatalog { database, .. }| {
            database.shared_scans().reports(&database.store().published())
        })
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
