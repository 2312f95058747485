//! Threads bound one by one: found as they come, left alone where they bind themselves, given back.

use std::sync::Arc;

use atoll_elastic::actuate::{ActuateError, Actuator, AffinityActuator, Record, ThreadCalls, undo};
use atoll_sys::Root;

use crate::fake::{FakeThreads, FakeUnits, Journals, process, set};

fn actuator(threads: &Arc<FakeThreads>) -> Actuator {
    Actuator::Affinity(AffinityActuator::new(threads.clone()))
}

#[test]
fn every_thread_is_bound_and_given_back() {
    let threads = FakeThreads::with(7, &[7, 8, 9], "0-15");
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    let applied = actuator.apply(&mut journal, &[process(7)], &set("0-1")).unwrap();
    assert_eq!((applied.threads, applied.notes.len()), (3, 0));
    assert_eq!([7, 8, 9].map(|tid| threads.cpus(tid)), ["0-1", "0-1", "0-1"]);
    actuator.apply(&mut journal, &[process(7)], &set("0-2")).unwrap();
    assert_eq!(threads.cpus(8), "0-2");
    assert!(actuator.restore().is_empty());
    assert_eq!([7, 8, 9].map(|tid| threads.cpus(tid)), ["0-15", "0-15", "0-15"]);
}

#[test]
fn threads_born_meanwhile_and_later_are_bound_and_given_back_too() {
    let threads = FakeThreads::with(7, &[7, 8], "0-15");
    // 8 creates 20 with the old cpus while 7 is bound already.
    threads.bear(8, 20);
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    actuator.apply(&mut journal, &[process(7)], &set("4")).unwrap();
    assert_eq!(threads.cpus(20), "4");
    // 21 inherits the cpus of its creator; so does a child process.
    threads.add(7, 21, "4");
    threads.add(30, 30, "4");
    let both = [process(7), process(30)];
    actuator.apply(&mut journal, &both, &set("4-5")).unwrap();
    assert_eq!([21, 30].map(|tid| threads.cpus(tid)), ["4-5", "4-5"]);
    // 22 was created after the last look.
    threads.add(7, 22, "4-5");
    assert!(actuator.restore().is_empty());
    assert_eq!([7, 20, 21, 22, 30].map(|tid| threads.cpus(tid)), ["0-15"; 5]);
}

#[test]
fn a_thread_that_binds_itself_is_left_alone_and_reported_once() {
    let threads = FakeThreads::with(7, &[7, 8, 9], "0-15");
    threads.set_cpus(9, "3");
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    let applied = actuator.apply(&mut journal, &[process(7)], &set("0-1")).unwrap();
    assert_eq!(applied.notes, ["thread 9 binds itself to cpus 3: left alone"]);
    // 8 binds itself while it runs.
    threads.set_cpus(8, "12");
    let applied = actuator.apply(&mut journal, &[process(7)], &set("0-2")).unwrap();
    assert_eq!(applied.notes, ["thread 8 binds itself to cpus 12: left alone"]);
    assert!(actuator.apply(&mut journal, &[process(7)], &set("0-3")).unwrap().notes.is_empty());
    assert_eq!([7, 8, 9].map(|tid| threads.cpus(tid)), ["0-3", "12", "3"]);
    actuator.restore();
    assert_eq!([7, 8, 9].map(|tid| threads.cpus(tid)), ["0-15", "12", "3"]);
}

#[test]
fn a_reused_number_is_another_thread() {
    let threads = FakeThreads::with(7, &[7, 8], "0-15");
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    actuator.apply(&mut journal, &[process(7)], &set("0")).unwrap();
    threads.end(8);
    actuator.apply(&mut journal, &[process(7)], &set("0")).unwrap();
    // Another process's now.
    threads.add(99, 8, "0");
    actuator.restore();
    assert_eq!([7, 8].map(|tid| threads.cpus(tid)), ["0-15", "0"]);
}

#[test]
fn a_refused_call_is_an_error_with_advice() {
    let threads = FakeThreads::with(7, &[7, 8], "0-15");
    threads.refuse(8);
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    let error = actuator.apply(&mut journal, &[process(7)], &set("0")).unwrap_err();
    assert!(matches!(error, ActuateError::Refused { tid: 8, .. }), "{error}");
    assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}");
    actuator.restore();
    assert_eq!(threads.cpus(7), "0-15");
}

#[test]
fn cpus_that_are_gone_are_an_error_and_some_that_are_gone_are_not() {
    let threads = FakeThreads::with(7, &[7], "0-15");
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    threads.set_online("0-7");
    actuator.apply(&mut journal, &[process(7)], &set("6-9")).unwrap();
    assert_eq!(threads.cpus(7), "6-7");
    let again = actuator.apply(&mut journal, &[process(7)], &set("6-9")).unwrap();
    assert!(again.notes.is_empty(), "{again:?}");
    let error = actuator.apply(&mut journal, &[process(7)], &set("12")).unwrap_err();
    assert!(matches!(error, ActuateError::CpusGone { .. }), "{error}");
    threads.set_online("0-15");
    actuator.restore();
    assert_eq!(threads.cpus(7), "0-15");
}

#[test]
fn a_process_that_has_ended_causes_no_error() {
    let threads = FakeThreads::with(7, &[7], "0-15");
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    actuator.apply(&mut journal, &[process(7)], &set("0")).unwrap();
    threads.end(7);
    assert_eq!(actuator.apply(&mut journal, &[process(7)], &set("1")).unwrap().threads, 0);
    assert!(actuator.restore().is_empty());
}

#[test]
fn changes_are_in_the_journal_before_they_are_made() {
    let threads = FakeThreads::with(7, &[7, 8], "0-15");
    threads.refuse(7);
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    assert!(actuator.apply(&mut journal, &[process(7)], &set("0")).is_err());
    let written = journals.only().records;
    let thread = |tid: u32| Record::Thread {
        pid: 7,
        tid,
        start: u64::from(tid) * 10,
        cpus: "0-15".to_owned(),
    };
    assert!(written.contains(&thread(7)) && written.contains(&thread(8)), "{written:?}");
    assert!(written.contains(&Record::Given { cpus: "0".to_owned() }));
}

#[test]
fn undo_restores_what_a_killed_run_changed_and_twice_does_no_harm() {
    let threads = FakeThreads::with(7, &[7, 8, 9], "0-15");
    threads.set_cpus(9, "3");
    let journals = Journals::new();
    let (mut actuator, mut journal) = (actuator(&threads), journals.begin());
    actuator.apply(&mut journal, &[process(7)], &set("0-1")).unwrap();
    // Killed: nothing is restored. Meanwhile a thread was created, one bound itself, one number was reused.
    std::mem::forget((actuator, journal));
    threads.add(7, 10, "0-1");
    threads.add(7, 11, "5");
    threads.end(8);
    threads.add(99, 8, "0-1");
    let found = journals.only();
    let units = FakeUnits::default();
    let undone = undo(&Root::live(), &*threads, &units, &found);
    assert_eq!(undone.failed, Vec::<String>::new());
    let cpus = || [7, 9, 10, 11].map(|tid| threads.cpus(tid));
    assert_eq!(cpus(), ["0-15", "3", "0-15", "5"]);
    // The fake starts a thread by its number, so 8 is recognised as what it was; it is bound back.
    threads.bind(7, &set("2")).unwrap();
    undo(&Root::live(), &*threads, &units, &found);
    assert_eq!(cpus(), ["2", "3", "0-15", "5"], "later bindings are not ours");
}
