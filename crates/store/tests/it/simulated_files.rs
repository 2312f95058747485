//! The simulated directory does what a disk may do, and the same for the same seed.

use std::collections::BTreeSet;

use atoll_store::files::{DataFile, FileErrorKind, Files};
use atoll_store::simulated::{Fault, SimulatedFiles};

const SEEDS: u64 = 200;

fn read(file: &dyn DataFile) -> Vec<u8> {
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn contents(files: &SimulatedFiles, name: &str) -> Vec<u8> {
    read(&*files.open(name).unwrap())
}

#[test]
fn what_was_synced_stays_and_of_the_rest_each_sector_comes_in_any_version() {
    let files = SimulatedFiles::new();
    let file = files.create("a", 2048).unwrap();
    file.write_at(0, &[1; 2048]).unwrap();
    file.sync_data().unwrap();
    file.write_at(512, &[2; 1024]).unwrap();
    file.write_at(512, &[3; 512]).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let bytes = contents(&files.crash(seed), "a");
        assert_eq!(bytes, contents(&files.crash(seed), "a"), "seed {seed}");
        let sectors: Vec<&[u8]> = bytes.chunks(512).collect();
        for sector in &sectors {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "seed {seed}: half a sector");
        }
        assert_eq!((sectors[0][0], sectors[3][0]), (1, 1), "seed {seed}");
        seen.insert((sectors[1][0], sectors[2][0]));
    }
    let all: BTreeSet<(u8, u8)> =
        (1..=3).flat_map(|first| (1..=2).map(move |second| (first, second))).collect();
    assert_eq!(seen, all);
    assert_eq!(contents(&files.restart(), "a")[512], 3);
}

#[test]
fn a_failed_sync_drops_what_it_should_have_written() {
    let files = SimulatedFiles::new();
    let file = files.create("a", 512).unwrap();
    file.write_at(0, &[1; 512]).unwrap();
    files.fail_at(files.calls(), Fault::Device);
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(read(&*file)[0], 1);
    let lost = (0..SEEDS).filter(|seed| contents(&files.crash(*seed), "a")[0] == 0).count();
    assert!(lost > 0 && lost < SEEDS as usize, "{lost} of {SEEDS} lost it");
    file.write_at(0, &[2; 512]).unwrap();
    file.sync_data().unwrap();
    assert!((0..SEEDS).all(|seed| contents(&files.crash(seed), "a")[0] == 2));
}

#[test]
fn names_that_were_not_synced_may_be_lost_and_lengths_too() {
    let files = SimulatedFiles::new();
    files.create("a", 0).unwrap().write_at(0, &[1; 600]).unwrap();
    // The rename happens, the sync of the directory fails.
    files.fail_at(files.calls() + 1, Fault::Device);
    files.rename("a", "b").unwrap_err();
    assert_eq!(files.list("").unwrap(), ["b"]);
    let after = |seed| files.crash(seed).list("").unwrap();
    let names: BTreeSet<Vec<String>> = (0..SEEDS).map(after).collect();
    assert_eq!(names, BTreeSet::from([vec!["a".into()], vec!["b".into()]]));
    let length = |seed| {
        let files = files.crash(seed);
        let name = files.list("").unwrap().remove(0);
        contents(&files, &name).len()
    };
    let lengths: BTreeSet<usize> = (0..SEEDS).map(length).collect();
    assert_eq!(lengths, BTreeSet::from([0, 600]));
}

#[test]
fn calls_fail_once_as_told_and_from_a_power_cut_on_for_good() {
    let files = SimulatedFiles::new();
    let file = files.create("a", 4096).unwrap();
    files.fail_at(files.calls() + 1, Fault::Late);
    file.write_at(0, &[1; 100]).unwrap();
    file.write_at(0, &[2; 100]).unwrap_err();
    let bytes = read(&*file);
    assert_eq!((bytes[49], bytes[50]), (2, 1));
    file.write_at(0, &[3; 100]).unwrap();
    files.cut_power_at(files.calls());
    file.write_at(0, &[4; 100]).unwrap_err();
    file.sync_data().unwrap_err();
    files.create("b", 0).unwrap_err();
    assert_eq!(files.crash(1).list("").unwrap(), ["a"]);
}

#[test]
fn a_full_disk_refuses_growth_and_nothing_else() {
    let files = SimulatedFiles::new();
    let file = files.create("a", 1000).unwrap();
    files.set_space(Some(1500));
    assert_eq!(files.create("b", 600).unwrap_err().kind, FileErrorKind::NoSpace);
    assert_eq!(files.list("").unwrap(), ["a"]);
    file.write_at(0, &[1; 1000]).unwrap();
    assert!(file.write_at(999, &[1; 600]).unwrap_err().is_no_space());
    files.create("b", 500).unwrap();
}

#[test]
fn the_lock_is_held_once_and_ends_with_the_process() {
    let files = SimulatedFiles::new();
    let lock = files.lock().unwrap();
    assert!(matches!(files.lock().unwrap_err().kind, FileErrorKind::Locked(Some(_))));
    files.restart().lock().unwrap();
    drop(lock);
    files.lock().unwrap();
}
