//! Small logs, and what is read from them.

use std::sync::Arc;

use atoll_store::DatabaseId;
use atoll_store::files::Files;
use atoll_store::log::{
    Log, LogError, LogOptions, Position, Recovery, RecoveryReport, RecoveryStart,
};
use atoll_store::simulated::SimulatedFiles;

/// The smallest segments there are: 4,096 bytes of records each.
pub(crate) const OPTIONS: LogOptions =
    LogOptions { database: DatabaseId([7; 16]), segment_bytes: 8192 };
/// Bytes of records in a segment.
pub(crate) const SEGMENT: u64 = 4096;
/// Recovery of a log without a checkpoint.
pub(crate) const FROM_START: RecoveryStart =
    RecoveryStart { from: Position::START, synced: Position::START };

/// Payloads with their positions.
pub(crate) type Records = Vec<(Position, Vec<u8>)>;

pub(crate) fn create(files: &SimulatedFiles) -> Result<Log, LogError> {
    Log::create(shared(files), OPTIONS)
}

pub(crate) fn shared(files: &SimulatedFiles) -> Arc<dyn Files> {
    Arc::new(files.clone())
}

pub(crate) fn recover(files: &SimulatedFiles, start: RecoveryStart) -> Result<Recovery, LogError> {
    Log::recover(shared(files), OPTIONS, start)
}

/// Reads all records of a log.
pub(crate) fn read(files: &SimulatedFiles, start: RecoveryStart) -> Result<Records, LogError> {
    records(&mut recover(files, start)?)
}

/// Reads all records of a log and opens it for writing.
pub(crate) fn reopen(
    files: &SimulatedFiles,
    start: RecoveryStart,
) -> Result<(Log, Records, RecoveryReport), LogError> {
    let mut recovery = recover(files, start)?;
    let records = records(&mut recovery)?;
    let (log, report) = recovery.finish()?;
    assert_eq!(report.records, records.len() as u64);
    assert_eq!(log.end(), report.end);
    Ok((log, records, report))
}

fn records(recovery: &mut Recovery) -> Result<Records, LogError> {
    let mut records = Vec::new();
    while let Some(record) = recovery.next_record()? {
        records.push((record.position, record.payload.to_vec()));
    }
    Ok(records)
}

/// Appends, writes and syncs one record.
pub(crate) fn commit(log: &mut Log, payload: &[u8]) -> Result<Position, LogError> {
    let position = log.append(payload)?;
    log.write()?;
    log.sync()?;
    Ok(position)
}

/// A payload of this length that differs from others.
pub(crate) fn payload(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|i| (number.wrapping_mul(31).wrapping_add(i * 7) % 251) as u8).collect()
}
