//! A log that is written and read again.

use std::sync::Arc;

use atoll_store::DatabaseId;
use atoll_store::files::{Files, LiveFiles};
use atoll_store::log::{
    Log, LogError, LogOptions, PAYLOAD_BYTES_MAX, Position, RecoveryStart, truncate_before,
};
use atoll_store::simulated::SimulatedFiles;

use crate::support::{
    FROM_START, OPTIONS, Records, SEGMENT, commit, create, payload, read, recover, reopen, shared,
};

fn segments(files: &SimulatedFiles) -> usize {
    files.list("log").unwrap().len()
}

/// Commits payloads of these sizes.
fn commit_all(log: &mut Log, sizes: &[usize]) -> Records {
    let number = log.end().0;
    let payloads = sizes.iter().zip(number..).map(|(bytes, number)| payload(number, *bytes));
    payloads.map(|payload| (commit(log, &payload).unwrap(), payload)).collect()
}

#[test]
fn records_of_all_sizes_are_read_as_they_were_written() {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    // Larger than a segment, empty, and one that ends where a segment does.
    let mut written = commit_all(&mut log, &[0, 1, 100, 3 * SEGMENT as usize, 0]);
    let rest = (SEGMENT - log.end().0 % SEGMENT) as usize - 28;
    written.extend(commit_all(&mut log, &[rest]));
    assert_eq!(log.end().0 % SEGMENT, 0);
    written.extend(commit_all(&mut log, &[20]));
    drop(log);
    let (mut log, found, report) = reopen(&files, FROM_START).unwrap();
    assert_eq!(found, written);
    assert_eq!(report.bytes_cut, 0);
    written.extend(commit_all(&mut log, &[50, 5000]));
    assert_eq!(read(&files, FROM_START).unwrap(), written);
}

#[test]
fn only_what_was_written_is_read_and_only_what_was_synced_for_sure() {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    let synced = commit(&mut log, b"synced").unwrap();
    log.append(b"written").unwrap();
    log.write().unwrap();
    assert_eq!(log.synced(), synced);
    log.append(b"appended").unwrap();
    assert_eq!(read(&files.restart(), FROM_START).unwrap().len(), 2);
    let counts = (0..50).map(|seed| read(&files.crash(seed), FROM_START).unwrap().len());
    let (least, most) = counts.fold((9, 0), |(low, high), n| (low.min(n), high.max(n)));
    assert_eq!((least, most), (1, 2));
}

#[test]
fn recovery_begins_behind_the_checkpoint_and_old_segments_go() {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    let written = commit_all(&mut log, &[1000; 30]);
    let start = RecoveryStart { from: written[19].0, synced: written[29].0 };
    assert!(log.truncate_before(start.from).unwrap() > 2);
    assert_eq!(log.truncate_before(start.from).unwrap(), 0);
    assert_eq!(read(&files, start).unwrap(), written[20..]);
    // What was removed is missed, not passed over.
    let error = read(&files, FROM_START).unwrap_err();
    assert!(matches!(error, LogError::Corrupt { position: Position(0), .. }), "{error}");
    drop(log);
    let (mut log, ..) = reopen(&files, start).unwrap();
    commit_all(&mut log, &[1000; 10]);
    assert_eq!(read(&files, start).unwrap().len(), 20);
}

#[test]
fn truncation_keeps_the_segment_that_recovery_needs() {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    let end = commit(&mut log, &payload(1, SEGMENT as usize - 28)).unwrap();
    assert_eq!(end, Position(SEGMENT));
    log.truncate_before(end).unwrap();
    let start = RecoveryStart { from: end, synced: end };
    assert!(read(&files, start).unwrap().is_empty());
    let (mut log, ..) = reopen(&files, start).unwrap();
    commit(&mut log, b"next").unwrap();
    assert_eq!(log.truncate_before(log.end()).unwrap(), 1);
    assert_eq!(read(&files, start).unwrap().len(), 1);
    // No position beyond the synced one counts.
    assert_eq!(log.truncate_before(Position(1 << 40)).unwrap(), 0);
    assert_eq!(truncate_before(&SimulatedFiles::new(), end).unwrap(), 0);
}

#[test]
fn the_next_segment_is_made_while_the_last_one_fills() {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    assert_eq!(segments(&files), 1);
    commit(&mut log, &[1; 500]).unwrap();
    let space = |files: &SimulatedFiles| {
        let names = files.list("log").unwrap();
        let bytes = |name: &String| files.open(&format!("log/{name}")).unwrap().bytes().unwrap();
        names.iter().map(bytes).sum::<u64>()
    };
    assert!(space(&files) > 8192, "nothing is made ahead");
    commit(&mut log, &[1; 2000]).unwrap();
    assert_eq!((segments(&files), space(&files)), (2, 2 * 8192));
    drop(log);
    // A segment that is ready is used again.
    let (log, ..) = reopen(&files, FROM_START).unwrap();
    drop(log);
    assert_eq!((segments(&files), space(&files)), (2, 2 * 8192));
}

#[test]
fn a_log_is_created_once() {
    let files = SimulatedFiles::new();
    drop(create(&files).unwrap());
    // Empty, as an interrupted creation leaves it; another one draws another id.
    let other = LogOptions { database: DatabaseId([8; 16]), ..OPTIONS };
    drop(Log::create(shared(&files), other).unwrap());
    let mut log = create(&files).unwrap();
    commit(&mut log, b"").unwrap();
    let error = create(&files).unwrap_err();
    assert!(
        error.to_string().starts_with("log/00000000000000000000.log already contains records"),
        "{error}"
    );
    assert_eq!(read(&files, FROM_START).unwrap().len(), 1);
}

#[test]
fn a_log_that_is_not_there_is_not_an_empty_one() {
    let error = recover(&SimulatedFiles::new(), FROM_START).unwrap_err();
    assert!(error.to_string().contains("no segment of the log holds this position"), "{error}");
}

#[test]
fn sizes_that_do_not_work_are_refused() {
    let files = SimulatedFiles::new();
    for segment_bytes in [0, 4096, 8193] {
        let options = LogOptions { segment_bytes, ..OPTIONS };
        let error = Log::create(shared(&files), options).unwrap_err();
        assert_eq!(error, LogError::SegmentSize { bytes: segment_bytes });
    }
    let mut log = create(&files).unwrap();
    let large = vec![0; PAYLOAD_BYTES_MAX + 1];
    let error = log.append(&large).unwrap_err();
    assert_eq!(error, LogError::TooLarge { bytes: PAYLOAD_BYTES_MAX as u64 + 1 });
    commit(&mut log, b"small").unwrap();
}

#[test]
fn segments_of_several_sizes_make_one_log() {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    let mut written = commit_all(&mut log, &[1000; 5]);
    drop(log);
    let larger = LogOptions { segment_bytes: 16384, ..OPTIONS };
    let recovery = Log::recover(shared(&files), larger, FROM_START).unwrap();
    let (mut log, _) = recovery.finish().unwrap();
    written.extend(commit_all(&mut log, &[1000; 40]));
    assert_eq!(read(&files, FROM_START).unwrap(), written);
    let (_, found, _) = reopen(&files, FROM_START).unwrap();
    assert_eq!(found, written);
}

#[test]
fn a_directory_of_this_machine_holds_a_log() {
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(LiveFiles::create(directory.path()).unwrap());
    let options = LogOptions { database: DatabaseId::random().unwrap(), segment_bytes: 1 << 20 };
    let mut log = Log::create(Arc::clone(&files), options).unwrap();
    let payloads: Vec<Vec<u8>> = (0..40).map(|number| payload(number, 60_000)).collect();
    for payload in &payloads {
        commit(&mut log, payload).unwrap();
    }
    let from = Position(log.synced().0 / 2);
    drop(log);
    let mut recovery = Log::recover(Arc::clone(&files), options, FROM_START).unwrap();
    let mut found = Vec::new();
    while let Some(record) = recovery.next_record().unwrap() {
        found.push(record.payload.to_vec());
    }
    assert_eq!(found, payloads);
    let (log, report) = recovery.finish().unwrap();
    assert_eq!((report.records, report.bytes_cut), (40, 0));
    assert_eq!(log.truncate_before(from).unwrap(), 1);
}
