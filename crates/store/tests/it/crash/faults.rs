//! One life of a directory in which each call fails once, in every way, and the power goes at each call.

use atoll_store::simulated::{Fault, SimulatedFiles};
use atoll_sys::SplitMix64;

use super::changes::{draw, fold};
use super::model::ModelState;
use super::store::{TestStore, is_failed_call};

const FAULTS: [Fault; 3] = [Fault::Device, Fault::NoSpace, Fault::Late];
const COMMITS: u64 = 14;

/// What was done before something failed.
struct Work {
    states: Vec<ModelState>,
    acknowledged: usize,
    is_done: bool,
}

/// Creates a database, commits, folds and makes checkpoints, until the log stops.
fn work(files: &SimulatedFiles) -> Work {
    let mut work = Work { states: vec![ModelState::default()], acknowledged: 0, is_done: false };
    let Ok(mut store) = TestStore::open(files) else { return work };
    let mut random = SplitMix64::new(11);
    for number in 0..COMMITS {
        let drawn = draw(&store, &work.states[work.states.len() - 1], &mut random);
        let Ok(transaction) = drawn else { return work };
        if store.submit(&transaction.change).is_err() {
            return work;
        }
        work.states.push(transaction.after);
        if store.sync().is_err() {
            return work;
        }
        work.acknowledged = work.states.len() - 1;
        if number % 3 == 2 {
            fold(&mut store);
        }
        if number % 5 == 4 && store.checkpoint().is_err() {
            // The next one is another attempt; commits go on meanwhile.
            let _ = store.checkpoint();
        }
    }
    work.is_done = true;
    work
}

/// Whether the directory holds what was acknowledged, after a power cut and after the process was killed.
fn expect_kept(files: &SimulatedFiles, work: &Work, context: &str) {
    for files in [files.crash(1), files.crash(2), files.restart()] {
        let store = TestStore::open(&files).unwrap_or_else(|error| panic!("{context}: {error}"));
        let commits = store.version.epoch().get() as usize;
        assert!((work.acknowledged..work.states.len()).contains(&commits), "{context}: {commits}");
        assert_eq!(ModelState::from_version(&store.version), work.states[commits], "{context}");
    }
}

#[test]
fn every_call_may_fail_once() {
    let files = SimulatedFiles::new();
    let done = work(&files);
    assert!(done.is_done && done.acknowledged == COMMITS as usize);
    expect_kept(&files, &done, "without a fault");
    let calls = files.calls();
    for fault in FAULTS {
        for call in 0..calls {
            let files = SimulatedFiles::new();
            files.fail_at(call, fault);
            let done = work(&files);
            expect_kept(&files, &done, &format!("{fault:?} at call {call} of {calls}"));
        }
    }
}

#[test]
fn the_power_may_go_at_every_call() {
    let files = SimulatedFiles::new();
    work(&files);
    for call in 0..files.calls() {
        let files = SimulatedFiles::new();
        files.cut_power_at(call);
        let done = work(&files);
        expect_kept(&files, &done, &format!("power cut at call {call}"));
    }
}

#[test]
fn the_power_may_go_at_every_call_of_recovery() {
    let files = SimulatedFiles::new();
    let done = work(&files);
    let crashed = files.crash(3);
    TestStore::open(&crashed).unwrap();
    for call in 0..crashed.calls() {
        let again = files.crash(3);
        again.cut_power_at(call);
        match TestStore::open(&again) {
            Ok(_) => {}
            Err(error) => assert!(is_failed_call(&error), "{error}"),
        }
        expect_kept(&again, &done, &format!("power cut at call {call} of recovery"));
    }
}

#[test]
fn a_full_disk_refuses_commits_and_loses_nothing() {
    let mut random = SplitMix64::new(5);
    for space in [9_000, 20_000, 40_000, 80_000] {
        let files = SimulatedFiles::new();
        let mut store = TestStore::open(&files).unwrap();
        files.set_space(Some(space));
        let mut states = vec![ModelState::default()];
        let mut refused = 0;
        for _ in 0..200 {
            let Ok(transaction) = draw(&store, &states[states.len() - 1], &mut random) else {
                refused += 1;
                continue;
            };
            match store.submit(&transaction.change) {
                Ok(_) => states.push(transaction.after),
                Err(_) => refused += 1,
            }
            store.sync().unwrap();
        }
        assert!(refused > 0, "{space} bytes were enough");
        // With space again, all goes on.
        files.set_space(None);
        store.checkpoint().unwrap();
        let transaction = draw(&store, &states[states.len() - 1], &mut random).unwrap();
        store.submit(&transaction.change).unwrap();
        store.sync().unwrap();
        states.push(transaction.after);
        drop(store);
        let store = TestStore::open(&files.crash(1)).unwrap();
        assert_eq!(
            ModelState::from_version(&store.version),
            states[states.len() - 1],
            "{space} bytes"
        );
    }
}
