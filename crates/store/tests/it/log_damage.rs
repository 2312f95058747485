//! A damaged log gives an error or ends early, as it should, and never a wrong record.

use std::sync::Arc;

use atoll_store::DatabaseId;
use atoll_store::files::{DataFile, Files};
use atoll_store::log::{Log, LogError, LogOptions, Position, RecoveryStart};
use atoll_store::simulated::SimulatedFiles;
use atoll_sys::SplitMix64;

use crate::support::{
    FROM_START, OPTIONS, Records, SEGMENT, commit, create, payload, read, recover, reopen, shared,
};

const FUZZ: u64 = 4000;

/// A log of synced records over three segments, and one more that is ready.
fn small_log() -> (SimulatedFiles, Records) {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    let sizes = [0, 5, 300, 2500, 1800, 8, 700, 3000, 1500, 40];
    let commit = |(number, bytes): (u64, usize)| {
        let payload = payload(number, bytes);
        (commit(&mut log, &payload).unwrap(), payload)
    };
    let records: Records = (0..).zip(sizes).map(commit).collect();
    (files, records)
}

fn segments(files: &SimulatedFiles) -> Vec<(u64, Arc<dyn DataFile>)> {
    let names = files.list("log").unwrap();
    let open = |name: &String| files.open(&format!("log/{name}")).unwrap();
    let first = |name: &String| name.trim_end_matches(".log").parse().unwrap();
    names.iter().map(|name| (first(name), open(name))).collect()
}

fn flip(file: &dyn DataFile, offset: u64, bit: u32) {
    let mut byte = [0];
    file.read_at(offset, &mut byte).unwrap();
    byte[0] ^= 1 << bit;
    file.write_at(offset, &byte).unwrap();
    file.sync_data().unwrap();
}

/// How many records are known to be synced to a reader who knows nothing, when damage is in the frame
/// or header that holds a byte of the log: all but the last batch, whose sync no later frame records.
fn is_known_to_be_synced(records: &Records, position: u64) -> bool {
    position < records[records.len() - 2].0.0
}

#[test]
fn every_flipped_bit_of_a_record_is_noticed() {
    let (files, records) = small_log();
    let end = records[records.len() - 1].0;
    for (first, file) in segments(&files) {
        for position in first..end.0.min(first + SEGMENT) {
            let offset = 4096 + position - first;
            for bit in 0..8 {
                flip(&*file, offset, bit);
                let context = format!("bit {bit} of byte {position}");
                let known = RecoveryStart { from: Position::START, synced: end };
                let error = read(&files, known).expect_err(&context);
                assert!(matches!(error, LogError::Corrupt { .. }), "{context}: {error}");
                match read(&files, FROM_START) {
                    Ok(found) => {
                        assert!(!is_known_to_be_synced(&records, position), "{context}");
                        assert_eq!(found, records[..records.len() - 1], "{context}");
                    }
                    Err(LogError::Corrupt { position: at, .. }) => {
                        assert!(is_known_to_be_synced(&records, position), "{context}");
                        assert!(at.0 <= position, "{context}: reported at {at}");
                    }
                    Err(error) => panic!("{context}: {error}"),
                }
                flip(&*file, offset, bit);
            }
        }
    }
    assert_eq!(read(&files, FROM_START).unwrap(), records);
}

#[test]
fn every_flipped_bit_of_a_segment_header_is_noticed_where_the_segment_is_used() {
    let (files, records) = small_log();
    let end = records[records.len() - 1].0;
    let known = RecoveryStart { from: Position::START, synced: end };
    for (first, file) in segments(&files) {
        // The zeros at the header's end are as good as one of them.
        for offset in (0..64).chain([4095]) {
            for bit in 0..8 {
                flip(&*file, offset, bit);
                let context = format!("bit {bit} of byte {offset} of segment {first}");
                match read(&files, known) {
                    Ok(found) => {
                        assert!(first >= end.0, "{context}");
                        assert_eq!(found, records, "{context}");
                    }
                    Err(error) => {
                        assert!(matches!(error, LogError::Corrupt { .. }), "{context}: {error}");
                        assert!(first < end.0, "{context}: {error}");
                    }
                }
                flip(&*file, offset, bit);
            }
        }
    }
}

#[test]
fn bits_behind_the_end_are_cut_and_reported() {
    let (files, records) = small_log();
    let end = records[records.len() - 1].0;
    let (first, file) = segments(&files).into_iter().rfind(|(first, _)| *first <= end.0).unwrap();
    let last = segments(&files).pop().unwrap();
    for (first, file, position) in
        [(first, &file, end.0), (first, &file, first + SEGMENT - 1), (last.0, &last.1, last.0 + 70)]
    {
        let files = files.restart();
        let file = files.open(file.name()).unwrap();
        flip(&*file, 4096 + position - first, 3);
        let (mut log, found, report) = reopen(&files, FROM_START).unwrap();
        assert_eq!(found, records);
        assert_eq!((report.end, report.bytes_cut), (end, position + 1 - end.0));
        commit(&mut log, b"next").unwrap();
        drop(log);
        let (_, found, report) = reopen(&files, FROM_START).unwrap();
        assert_eq!((found.len(), report.bytes_cut), (records.len() + 1, 0));
    }
}

#[test]
fn a_missing_or_shortened_segment_is_noticed() {
    let (files, records) = small_log();
    let end = records[records.len() - 1].0;
    for (first, file) in segments(&files).into_iter().filter(|(first, _)| *first < end.0) {
        let without = files.restart();
        without.remove(file.name()).unwrap();
        let error = read(&without, FROM_START).unwrap_err();
        let LogError::Corrupt { file: named, .. } = &error else { panic!("{error}") };
        assert_eq!(named, file.name(), "{error}");
        for bytes in [0, 100, 4096, 4100, 8191] {
            let short = files.restart();
            short.open(file.name()).unwrap().truncate(bytes).unwrap();
            let known = RecoveryStart { from: Position::START, synced: end };
            match read(&short, known) {
                // What was cut off was behind the end.
                Ok(found) => assert!(found == records && first + bytes >= end.0, "{bytes}"),
                Err(error) => assert!(matches!(error, LogError::Corrupt { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn a_shortened_segment_is_made_whole_where_nothing_is_missing() {
    let (files, records) = small_log();
    let end = records[records.len() - 1].0;
    let (first, file) = segments(&files).into_iter().rfind(|(first, _)| *first <= end.0).unwrap();
    file.truncate(4096 + end.0 - first + 1).unwrap();
    let (mut log, found, _) = reopen(&files, FROM_START).unwrap();
    assert_eq!((found, file.bytes().unwrap()), (records, 8192));
    commit(&mut log, &payload(1, 6000)).unwrap();
    assert_eq!(read(&files, FROM_START).unwrap().len(), 11);
}

#[test]
fn segments_of_another_database_and_of_a_later_version_are_refused() {
    let (files, _) = small_log();
    let other = LogOptions { database: DatabaseId([8; 16]), ..OPTIONS };
    let error = Log::recover(shared(&files), other, FROM_START).unwrap_err();
    assert!(matches!(error, LogError::Foreign { .. }), "{error}");
    let (_, file) = segments(&files).remove(1);
    let mut header = [0; 4096];
    file.read_at(0, &mut header).unwrap();
    header[8] = 9;
    header[12..16].fill(0);
    let checksum = crc32fast::hash(&header);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    file.write_at(0, &header).unwrap();
    let error = recover(&files, FROM_START).unwrap_err();
    let expected = LogError::NewerFormat { file: file.name().to_owned(), version: 9 };
    assert_eq!(error, expected);
}

#[test]
fn a_segment_copied_over_another_is_noticed() {
    let (files, records) = small_log();
    let found = segments(&files);
    for (from, to) in [(0, 1), (1, 0), (2, 1)] {
        let files = files.restart();
        let mut bytes = vec![0; 8192];
        found[from].1.read_at(0, &mut bytes).unwrap();
        let file = files.open(found[to].1.name()).unwrap();
        file.write_at(0, &bytes).unwrap();
        let error = read(&files, FROM_START).unwrap_err();
        assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
        // Records that found their way there without the header are of another position.
        file.write_at(0, &header_of(&found[to].1)).unwrap();
        match read(&files, FROM_START) {
            Ok(read) => assert!(read.len() < records.len() && records.starts_with(&read)),
            Err(error) => assert!(matches!(error, LogError::Corrupt { .. }), "{error}"),
        }
    }
}

fn header_of(file: &Arc<dyn DataFile>) -> Vec<u8> {
    let mut header = vec![0; 4096];
    file.read_at(0, &mut header).unwrap();
    header
}

#[test]
fn a_checkpoint_that_points_elsewhere_is_refused() {
    let (files, records) = small_log();
    let middle = records[5].0.0;
    for from in [middle - 8, middle + 1, middle + 8, 1 << 20] {
        let start = RecoveryStart { from: Position(from), synced: Position(from) };
        let error = read(&files, start).unwrap_err();
        assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
    }
}

/// What a user stores may look like a record.
#[test]
fn a_frame_inside_of_a_payload_is_not_a_record() {
    let files = SimulatedFiles::new();
    let mut log = create(&files).unwrap();
    for number in 0..4 {
        commit(&mut log, &payload(number, 200)).unwrap();
    }
    let mut bytes = vec![0; 1000];
    segments(&files)[0].1.read_at(4096, &mut bytes).unwrap();
    commit(&mut log, &bytes).unwrap();
    log.append(&bytes).unwrap();
    log.write().unwrap();
    for seed in 0..300 {
        let found = read(&files.crash(seed), FROM_START).unwrap();
        assert!(found.len() == 5 || found.len() == 6, "seed {seed}");
        assert!(found[4..].iter().all(|(_, payload)| *payload == bytes), "seed {seed}");
    }
}

/// Damage of any kind: a beginning of the records, or an error; no panic, and no error that blames
/// anything but the files.
#[test]
fn random_damage_never_gives_a_wrong_record() {
    let (pristine, records) = small_log();
    for seed in 0..FUZZ {
        let files = pristine.restart();
        let mut random = SplitMix64::new(seed);
        for _ in 0..=random.below(3) {
            damage(&files, &mut random);
        }
        let synced = records[random.below(10) as usize].0;
        let start = RecoveryStart { from: Position::START, synced };
        match reopen(&files, start) {
            Ok((mut log, found, report)) => {
                assert!(records.starts_with(&found), "seed {seed}");
                assert!(report.end >= synced, "seed {seed}");
                let count = found.len();
                commit(&mut log, b"next").unwrap();
                assert_eq!(read(&files, start).unwrap().len(), count + 1, "seed {seed}");
            }
            Err(LogError::Corrupt { .. } | LogError::NewerFormat { .. }) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
}

fn damage(files: &SimulatedFiles, random: &mut SplitMix64) {
    let segments = segments(files);
    if segments.is_empty() {
        return;
    }
    let (_, file) = &segments[random.below(segments.len() as u64) as usize];
    let length = file.bytes().unwrap();
    let at = random.below(length + 1);
    let bytes = random.below((length - at).min(2000) + 1) as usize;
    match random.below(8) {
        0 => files.remove(file.name()).unwrap(),
        1 => file.truncate(at).unwrap(),
        2 => file.write_at(at, &vec![0; bytes]).unwrap(),
        3 => {
            let noise: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
            file.write_at(at, &noise).unwrap();
        }
        4 => {
            let mut moved = vec![0; bytes];
            file.read_at(at, &mut moved).unwrap();
            file.write_at(random.below(length), &moved).unwrap();
        }
        5 => {
            let noise: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            file.write_at(0, &noise).unwrap();
        }
        _ if length > 0 => flip(&**file, random.below(length), random.below(8) as u32),
        _ => {}
    }
}
