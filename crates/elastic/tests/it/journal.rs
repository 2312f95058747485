//! The journal: private, complete lines only, and restoring units from it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use atoll_elastic::actuate::{
    ActuateError, Actuator, JournalDirectory, JournalError, Record, UnitActuator, undo,
};
use atoll_sys::Root;

use crate::fake::{FakeThreads, FakeUnits, Journals, set};

#[test]
fn the_directory_and_its_files_are_private_to_their_owner() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("journals");
    let directory = JournalDirectory::open(&path).unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let own = atoll_process::inspect::identify(&Root::live(), std::process::id()).unwrap();
    let journal = directory.begin(&Root::live(), own, "x").unwrap();
    assert_eq!(mode(journal.path()), 0o600);
    let found = directory.list().unwrap();
    assert_eq!((found[0].target(), found[0].writer()), ("x", Some(own)));
    assert!(found[0].is_live(&Root::live()) && !found[0].is_stale(&Root::live()));
    journal.finish().unwrap();
    assert!(directory.list().unwrap().is_empty());
}

#[test]
fn a_directory_that_others_may_use_or_that_is_a_link_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let open = home.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = JournalDirectory::open(&open).unwrap_err();
    assert!(matches!(error, JournalError::Unsafe { .. }), "{error}");
    assert!(error.to_string().contains("mode 755") && error.to_string().contains("--journal"));
    let real = home.path().join("real");
    std::fs::create_dir(&real).unwrap();
    let link = home.path().join("link");
    symlink(&real, &link).unwrap();
    assert!(matches!(JournalDirectory::open(&link), Err(JournalError::Unsafe { .. })));
}

#[test]
fn a_link_in_place_of_a_journal_is_neither_read_nor_written() {
    let journals = Journals::new();
    let path = journals.begin().path().to_owned();
    let other = path.with_file_name("secret");
    std::fs::write(&other, "keep\n").unwrap();
    std::fs::remove_file(&path).unwrap();
    symlink(&other, &path).unwrap();
    assert!(journals.directory.list().is_err());
    // A new one gets another name.
    journals.begin();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "keep\n");
}

#[test]
fn a_truncated_line_is_ignored_and_an_invalid_line_is_named() {
    let journals = Journals::new();
    let mut journal = journals.begin();
    journal.write(&[Record::Given { cpus: "0".to_owned() }]).unwrap();
    let text = std::fs::read_to_string(journal.path()).unwrap();
    for cut in text.find('\n').unwrap() + 1..text.len() {
        std::fs::write(journal.path(), &text[..cut]).unwrap();
        assert_eq!(journals.only().records.len(), 1, "cut at {cut}");
    }
    std::fs::write(journal.path(), text.replace("given", "gone")).unwrap();
    let error = journals.directory.list().unwrap_err().to_string();
    assert!(error.contains(":2: not a record"), "{error}");
    std::fs::write(journal.path(), text.replace("\"version\":1", "\"version\":9")).unwrap();
    assert!(journals.directory.list().unwrap_err().to_string().contains("version 9"));
}

#[test]
fn a_journal_of_an_earlier_start_of_the_machine_is_stale() {
    let journals = Journals::new();
    let journal = journals.begin();
    let text = std::fs::read_to_string(journal.path()).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    std::fs::write(journal.path(), text.replace(boot.trim(), "another")).unwrap();
    assert!(journals.only().is_stale(&Root::live()));
}

#[test]
fn a_units_cpus_are_given_back_by_the_run_and_by_undo() {
    let units = FakeUnits::default();
    units.set("0-3 8");
    let journals = Journals::new();
    let mut journal = journals.begin();
    let unit = || Actuator::Unit(UnitActuator::new(Arc::new(units.clone()), "a.service"));
    let mut actuator = unit();
    actuator.apply(&mut journal, &[], &set("0-1")).unwrap();
    assert_eq!(units.cpus(), "0-1");
    assert!(actuator.restore().is_empty());
    assert_eq!(units.cpus(), "0-3 8");
    let mut actuator = unit();
    actuator.apply(&mut journal, &[], &set("2")).unwrap();
    let threads = FakeThreads::with(1, &[], "0");
    let undone = undo(&Root::live(), &*threads, &units, &journals.only());
    assert!(undone.failed.is_empty());
    assert_eq!(units.cpus(), "0-3 8");
}

#[test]
fn cpus_that_another_program_sets_are_its_own() {
    let units = FakeUnits::default();
    let journals = Journals::new();
    let mut journal = journals.begin();
    let mut actuator = Actuator::Unit(UnitActuator::new(Arc::new(units.clone()), "a.service"));
    actuator.apply(&mut journal, &[], &set("0-1")).unwrap();
    units.set("7");
    let error = actuator.apply(&mut journal, &[], &set("2")).unwrap_err();
    assert!(matches!(error, ActuateError::GroupChanged { .. }), "{error}");
    assert_eq!(units.cpus(), "7");
}
