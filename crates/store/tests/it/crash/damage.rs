//! Damaged files and arbitrary bytes: an error that names the file, the rows that are there, or, salvaged, those that
//! are left; never a panic, never other rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_store::database::{DatabaseChange, DatabaseVersion};
use atoll_store::files::{FileErrorKind, Files};
use atoll_store::open::{OpenError, OpenOptions, Opened, Opening, check_directory, directory_info};
use atoll_store::record::{
    RECORD_FORMAT_VERSION, RecordError, decode_record, encode_record, files_of_record,
};
use atoll_store::simulated::SimulatedFiles;
use atoll_store::table::Chunk;
use atoll_sys::SplitMix64;

use super::changes::{draw, fold};
use super::model::{ModelState, by_scan};
use super::store::{TestStore, environment, options};

/// A directory with two checkpoints and records behind, all states it had, and its changes.
fn directory(
    seed: u64,
) -> (SimulatedFiles, Vec<ModelState>, Vec<(DatabaseVersion, DatabaseChange)>) {
    let files = SimulatedFiles::new();
    let mut store = TestStore::open(&files).unwrap();
    let (mut states, mut changes) = (vec![ModelState::default()], Vec::new());
    let mut random = SplitMix64::new(seed);
    for number in 0..40 {
        let transaction = draw(&store, &states[states.len() - 1], &mut random).unwrap();
        changes.push(((*store.version).clone(), transaction.change.clone()));
        store.submit(&transaction.change).unwrap();
        store.sync().unwrap();
        states.push(transaction.after);
        if number % 7 == 3 {
            fold(&mut store);
        }
        if number == 15 || number == 30 {
            store.checkpoint().unwrap();
        }
    }
    drop(store);
    // Opening removes what no file names; it had to stay as long as `changes` hold its chunks.
    let files = files.restart();
    drop(TestStore::open(&files).unwrap());
    (files.restart(), states, changes)
}

fn all_files(files: &SimulatedFiles) -> Vec<String> {
    let of = |directory: &str| -> Vec<String> {
        let names = files.list(directory).unwrap().into_iter();
        names.map(|name| format!("{directory}/{name}")).collect()
    };
    [vec!["manifest".to_owned()], of("chunks"), of("tables"), of("log")].concat()
}

fn flip(files: &SimulatedFiles, name: &str, random: &mut SplitMix64) {
    let file = files.open(name).unwrap();
    let at = random.below(file.bytes().unwrap());
    let mut byte = [0];
    file.read_at(at, &mut byte).unwrap();
    file.write_at(at, &[byte[0] ^ 1 << random.below(8)]).unwrap();
}

fn salvage(files: &SimulatedFiles) -> Result<Opened, OpenError> {
    let options = OpenOptions { salvage: true, ..options() };
    let opening = Opening::begin(Arc::new(files.clone()), environment().clone(), options)?;
    let chunks = opening.tasks().into_iter().map(|task| task.run()).collect();
    opening.finish(chunks, &atoll_store::workers::OneThread)
}

#[test]
fn a_flipped_bit_is_an_error_that_names_the_file_or_changes_nothing() {
    let (files, states, _) = directory(1);
    let mut random = SplitMix64::new(2);
    for name in all_files(&files) {
        for _ in 0..40 {
            let damaged = files.restart();
            flip(&damaged, &name, &mut random);
            let checked = check_directory(&(Arc::new(damaged.clone()) as Arc<dyn Files>));
            match TestStore::open(&damaged.restart()) {
                // Damage of the last record, or of what is not used, cannot be distinguished from a torn tail.
                Ok(store) => {
                    assert!(name.starts_with("log/"), "{name}: damage was not noticed");
                    let commits = store.version.epoch().get() as usize;
                    assert_eq!(ModelState::from_version(&store.version), states[commits], "{name}");
                }
                Err(error) => {
                    assert!(error.to_string().contains(&name), "{name}: {error}");
                    let is_told = checked.as_ref().map_or(true, |found| !found.damage.is_empty());
                    assert!(is_told, "{name}: the check does not report it");
                }
            }
        }
    }
}

#[test]
fn missing_files_are_reported_by_name() {
    let (files, ..) = directory(1);
    for name in all_files(&files).into_iter().filter(|name| !name.starts_with("log/")) {
        let damaged = files.restart();
        damaged.remove(&name).unwrap();
        let error = TestStore::open(&damaged).map(drop).unwrap_err();
        match &error {
            OpenError::NotADatabase { .. } | OpenError::Empty | OpenError::Log(_) => {
                assert_eq!(name, "manifest", "{error}");
            }
            error => assert!(error.to_string().contains(&name), "{error}"),
        }
    }
}

#[test]
fn salvage_opens_what_is_left_and_lists_what_is_missing() {
    for seed in 1..8 {
        let (files, states, _) = directory(seed);
        let newest = &states[states.len() - 1];
        let whole = salvage(&files).unwrap();
        assert!(whole.report.missing.is_empty() && whole.log.is_none());
        assert_eq!(ModelState::from_version(&whole.version), *newest);
        let mut random = SplitMix64::new(seed);
        for name in all_files(&files) {
            if name == "manifest" {
                continue;
            }
            let damaged = files.restart();
            flip(&damaged, &name, &mut random);
            let names = all_files(&damaged);
            if TestStore::open(&damaged.crash(1)).is_ok() {
                continue;
            }
            let damaged = damaged.restart();
            let opened = salvage(&damaged).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!opened.report.missing.is_empty(), "{name}");
            let text: Vec<String> = opened.report.missing.iter().map(ToString::to_string).collect();
            assert!(text.iter().any(|text| text.contains(&name)), "{name}: {text:?}");
            assert_eq!(all_files(&damaged), names, "salvaging changes nothing");
            // Rows that were there at some moment, each as it was then.
            for (id, table) in opened.version.tables() {
                let table_name = &opened.version.table_name(id).unwrap().name;
                for (key, value) in by_scan(table) {
                    let was = |state: &ModelState| {
                        state.tables.values().any(|table| table.get(&key) == Some(&value))
                    };
                    assert!(states.iter().any(was), "{name}: {table_name} has key {key}");
                }
            }
        }
    }
}

#[test]
fn a_check_of_an_intact_directory_finds_no_damage_and_lists_its_contents() {
    let (files, states, _) = directory(3);
    let shared: Arc<dyn Files> = Arc::new(files.clone());
    let (checked, info) = (check_directory(&shared).unwrap(), directory_info(&shared).unwrap());
    assert!(checked.damage.is_empty() && info.damage.is_empty());
    assert_eq!((checked.records, info.records), (9, 9));
    assert_eq!(info.epoch.get() as usize, states.len() - 1 - 9);
    let state = &states[info.epoch.get() as usize];
    let rows: u64 = info.tables.iter().map(|table| table.rows).sum();
    assert_eq!(rows, state.tables.values().map(|table| table.len() as u64).sum::<u64>());
    let held = files.lock().unwrap();
    let OpenError::File(error) = directory_info(&shared).unwrap_err() else { panic!("no lock") };
    assert!(error.to_string().contains("in use by process"), "{error}");
    drop(held);
}

#[test]
fn a_directory_of_other_files_is_refused_and_left_as_it_is() {
    let files = SimulatedFiles::new();
    files.create("holiday.jpg", 10).unwrap();
    let error = TestStore::open(&files).map(drop).unwrap_err();
    assert!(matches!(&error, OpenError::NotADatabase { file } if file == "holiday.jpg"), "{error}");
    assert_eq!(files.list("").unwrap(), ["holiday.jpg"]);
    let options = OpenOptions { create: false, ..options() };
    let empty = Arc::new(SimulatedFiles::new());
    let error = Opening::begin(empty, environment().clone(), options).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::Empty), "{error}");
}

#[test]
fn a_second_process_is_refused_while_the_first_has_the_directory() {
    let files = SimulatedFiles::new();
    let store = TestStore::open(&files).unwrap();
    let OpenError::File(error) = TestStore::open(&files).map(drop).unwrap_err() else {
        panic!("opened twice")
    };
    assert!(error.to_string().contains("in use by process"), "{error}");
    drop(store);
    TestStore::open(&files).unwrap();
}

/// Chunks of a change by their files.
fn chunk_of(change: &DatabaseChange, wanted: u64) -> Result<Arc<Chunk>, RecordError> {
    let tables = change.durable_tables();
    let chunks = tables.flat_map(|(_, change)| {
        let appended = change.appended.iter().map(|c| (c.file, &c.chunk));
        appended.chain(change.replaced.iter().map(|c| (c.file, &c.chunk)))
    });
    let found = chunks.filter(|(file, _)| file.is_none_or(|file| file.get() == wanted));
    let found = found.map(|(_, chunk)| Arc::clone(chunk)).next();
    found.ok_or(RecordError::NewerFormat(0))
}

#[test]
fn changes_are_read_as_they_were_written() {
    let mut kinds = BTreeSet::new();
    for seed in 1..6 {
        for (_, change) in directory(seed).2 {
            let bytes = encode_record(&change).unwrap();
            let read = decode_record(&bytes, |file| chunk_of(&change, file.get())).unwrap();
            assert_eq!(encode_record(&read).unwrap(), bytes);
            kinds.extend(
                change.steps.iter().map(std::mem::discriminant).map(|kind| format!("{kind:?}")),
            );
        }
    }
    assert_eq!(kinds.len(), 5, "steps of every kind");
}

#[test]
fn changed_and_cut_changes_are_errors_or_do_not_fit_and_never_panic() {
    let mut random = SplitMix64::new(9);
    for seed in 1..6 {
        for (before, change) in directory(seed).2 {
            let bytes = encode_record(&change).unwrap();
            for _ in 0..300 {
                let mut changed = bytes.clone();
                match random.below(4) {
                    0 => changed.truncate(random.below(bytes.len() as u64) as usize),
                    1 => changed.extend([random.next() as u8; 3]),
                    _ => {
                        for _ in 0..=random.below(3) {
                            let at = random.below(bytes.len() as u64) as usize;
                            changed[at] = random.next() as u8;
                        }
                    }
                }
                let _ = files_of_record(&changed);
                let read = decode_record(&changed, |file| chunk_of(&change, file.get()));
                if let Ok(read) = read
                    && let Ok(after) = before.apply(&read, environment())
                {
                    // Rows are checked when they are read.
                    after.tables().for_each(|(_, table)| drop(table.view()));
                }
            }
        }
    }
}

#[test]
fn a_newer_format_is_refused_by_its_version() {
    let (_, _, changes) = directory(1);
    let mut bytes = encode_record(&changes[0].1).unwrap();
    let newer = RECORD_FORMAT_VERSION + 1;
    bytes[0] = u8::try_from(newer).unwrap();
    let error = files_of_record(&bytes).unwrap_err();
    assert!(matches!(error, RecordError::NewerFormat(version) if version == newer), "{error}");
    let files = SimulatedFiles::new();
    let missing = files.open("manifest").unwrap_err();
    assert_eq!(missing.kind, FileErrorKind::NotFound);
}
