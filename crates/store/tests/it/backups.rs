//! Copies of a data directory: whole, or no database, whatever call fails while they are made.

use std::cell::Cell;
use std::sync::Arc;

use atoll_store::backup::{BackupError, backup_directory};
use atoll_store::durable::DurableDatabase;
use atoll_store::files::Files;
use atoll_store::open::{DirectoryInfo, OpenOptions, check_directory};
use atoll_store::simulated::{Fault, SimulatedFiles};

use crate::durable::{insert, open};
use crate::small_database::{SmallDatabase, environment};

fn shared(files: &SimulatedFiles) -> Arc<dyn Files> {
    Arc::new(files.clone())
}

/// A database of ten rows, half of which are in its log only.
fn written(files: &SimulatedFiles) -> (DurableDatabase, SmallDatabase) {
    let (opened, small) = open(files);
    (0..5).for_each(|id| insert(&small, id));
    opened.checkpoint().unwrap();
    (5..10).for_each(|id| insert(&small, id));
    (opened, small)
}

/// What a copy is, that was cut off by a power cut: whole, or no database.
fn found(copy: &SimulatedFiles, seed: u64) -> Option<DirectoryInfo> {
    let info = check_directory(&shared(&copy.crash(seed))).ok()?;
    assert!(info.damage.is_empty(), "seed {seed}: {:?}", info.damage);
    Some(info)
}

fn rows(copy: &SimulatedFiles) -> Vec<u64> {
    let (_opened, small) = open(copy);
    let ids = (0..30).filter(|id| small.committed(*id) == Some(format!("value {id}"))).collect();
    // It goes on as a database of its own.
    insert(&small, 99);
    ids
}

#[test]
fn a_copy_holds_what_was_committed_when_it_began() {
    let files = SimulatedFiles::new();
    let (opened, small) = written(&files);
    let copy = SimulatedFiles::new();
    let next = Cell::new(10);
    let report = opened.backup(&shared(&copy), &|| {
        // Others go on to write.
        insert(&small, next.replace(next.get() + 1));
        false
    });
    assert_eq!(report.unwrap().epoch.get(), 11, "ten rows and their table");
    assert!(next.get() > 10);
    assert_eq!(rows(&copy.crash(1)), (0..10).collect::<Vec<_>>());
    let second = SimulatedFiles::new();
    opened.backup(&shared(&second), &|| false).unwrap();
    assert_eq!(rows(&second), (0..next.get()).collect::<Vec<_>>());
}

#[test]
fn a_copy_of_a_closed_directory_holds_its_log_too() {
    let files = SimulatedFiles::new();
    let held = written(&files);
    let used = backup_directory(&shared(&files), &shared(&SimulatedFiles::new())).unwrap_err();
    assert!(used.to_string().contains("in use"), "{used}");
    drop(held);
    let copy = SimulatedFiles::new();
    backup_directory(&shared(&files), &shared(&copy)).unwrap();
    assert_eq!(rows(&copy.crash(3)), (0..10).collect::<Vec<_>>());
    let empty = SimulatedFiles::new();
    assert!(backup_directory(&shared(&empty), &shared(&SimulatedFiles::new())).is_err());
}

#[test]
fn a_copy_that_was_cut_off_anywhere_is_whole_or_no_database() {
    let files = SimulatedFiles::new();
    let (opened, small) = written(&files);
    let whole = SimulatedFiles::new();
    opened.backup(&shared(&whole), &|| false).unwrap();
    let calls = whole.calls();
    for call in 0..calls {
        for fault in [Fault::Device, Fault::NoSpace, Fault::Late] {
            let copy = SimulatedFiles::new();
            copy.fail_at(call, fault);
            let made = opened.backup(&shared(&copy), &|| false);
            let is_whole = found(&copy, call).is_some();
            assert!(is_whole || made.is_err(), "call {call}, {fault:?}");
        }
        let copy = SimulatedFiles::new();
        copy.cut_power_at(call);
        opened.backup(&shared(&copy), &|| false).unwrap_err();
        if found(&copy, call).is_some() {
            assert_eq!(rows(&copy.crash(call)), (0..10).collect::<Vec<_>>(), "call {call}");
        }
    }
    // The database is as it was.
    insert(&small, 10);
    opened.checkpoint().unwrap();
    drop((opened, small));
    let reopened = DurableDatabase::open(shared(&files), environment(), OpenOptions::default());
    assert_eq!(reopened.unwrap().report().rows, 11);
}

#[test]
fn a_cancelled_copy_is_no_database() {
    let files = SimulatedFiles::new();
    let (opened, _small) = written(&files);
    let copy = SimulatedFiles::new();
    let cancelled = opened.backup(&shared(&copy), &|| true).unwrap_err();
    assert!(matches!(cancelled, BackupError::Cancelled), "{cancelled}");
    assert!(check_directory(&shared(&copy)).is_err());
}
