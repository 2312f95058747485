//! A DBMS's own knob follows the cores, and is restored in the end.

use std::sync::Arc;

use atoll_elastic::actuate::Record;
use atoll_elastic::adapter::{Adapter, AdapterCalls, Knob, undo_knobs};

use crate::fake::{FakeDbms, Journals};

const POSTGRES: [(&str, Option<&str>); 2] =
    [("max_parallel_workers", Some("8")), ("max_parallel_workers_per_gather", None)];

fn postgres() -> Adapter {
    Adapter::Postgres("host=/nowhere".to_owned())
}

fn knob(adapter: Adapter, dbms: &Arc<FakeDbms>) -> Knob {
    let calls: Arc<dyn AdapterCalls> = dbms.clone();
    Knob::new(adapter, calls)
}

fn values(dbms: &FakeDbms) -> [Option<String>; 2] {
    POSTGRES.map(|(name, _)| dbms.value(name))
}

fn some(values: [&str; 2]) -> [Option<String>; 2] {
    values.map(|value| Some(value.to_owned()))
}

/// Looks until the DBMS has the wanted values, which another thread sets.
fn look_until(
    knob: &mut Knob,
    journal: &mut atoll_elastic::actuate::Journal,
    cores: usize,
    is_so: impl Fn() -> bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    while !is_so() {
        notes.extend(knob.follow(journal, cores).unwrap());
        std::thread::yield_now();
    }
    notes
}

#[test]
fn it_follows_the_cores_and_is_written_down_first() {
    let (journals, dbms) = (Journals::new(), FakeDbms::with(&POSTGRES));
    let (mut journal, mut knob) = (journals.begin(), knob(postgres(), &dbms));
    for (cores, expected) in [(4, ["4", "3"]), (1, ["1", "0"]), (2, ["2", "1"])] {
        let notes = look_until(&mut knob, &mut journal, cores, || values(&dbms) == some(expected));
        assert!(notes.is_empty(), "{notes:?}");
    }
    let records = journals.only().records;
    let [Record::KnobSet { adapter, settings }] = &records[1..] else { panic!("{records:?}") };
    assert_eq!((adapter.as_str(), settings.len()), ("postgres:host=/nowhere", 2));
    assert!(knob.restore(false).is_empty());
    assert_eq!(values(&dbms), [Some("8".to_owned()), None]);
}

#[test]
fn an_unreachable_dbms_is_asked_again_and_nothing_is_set_before() {
    let (journals, dbms) = (Journals::new(), FakeDbms::with(&POSTGRES));
    let (mut journal, mut knob) = (journals.begin(), knob(postgres(), &dbms));
    dbms.set_down(true);
    let mut notes = look_until(&mut knob, &mut journal, 3, || dbms.asked() > 1);
    notes.extend(look_until(&mut knob, &mut journal, 3, || dbms.asked() > 2));
    assert!(notes[0].contains("connection refused; retrying"), "{notes:?}");
    assert_eq!(journals.only().records.len(), 1);
    dbms.set_down(false);
    look_until(&mut knob, &mut journal, 3, || values(&dbms) == some(["3", "2"]));
    // In the end it is down again: the old values are reported, since PostgreSQL keeps the new ones.
    dbms.set_down(true);
    let failed = knob.restore(true);
    assert!(
        failed[0].contains("max_parallel_workers = 8, max_parallel_workers_per_gather not set"),
        "{failed:?}"
    );
}

#[test]
fn a_dbms_that_has_ended_has_forgotten_its_knob() {
    let (journals, dbms) = (Journals::new(), FakeDbms::with(&[("thread_pool_size", Some("16"))]));
    let mut journal = journals.begin();
    let mut knob = knob(Adapter::MariaDb(String::new()), &dbms);
    let is_set = || dbms.value("thread_pool_size").as_deref() == Some("2");
    look_until(&mut knob, &mut journal, 2, is_set);
    dbms.set_down(true);
    assert!(knob.restore(true).is_empty());
}

#[test]
fn undo_restores_it_after_a_kill_and_after_a_start_of_the_machine() {
    for (adapter, is_kept) in [(postgres(), true), (Adapter::Atoll(String::new()), false)] {
        let (journals, dbms) = (Journals::new(), FakeDbms::with(&POSTGRES));
        let (mut journal, mut knob) = (journals.begin(), knob(adapter, &dbms));
        let is_set = || dbms.value("max_parallel_workers").as_deref() == Some("5");
        look_until(&mut knob, &mut journal, 5, is_set);
        // It is killed: nothing is restored.
        drop(knob);
        let found = journals.only();
        dbms.set_down(true);
        let undone = undo_knobs(&*dbms, &found, false);
        assert_eq!((undone.count, undone.failed.len(), undone.is_left), (0, 1, is_kept));
        dbms.set_down(false);
        let undone = undo_knobs(&*dbms, &found, true);
        assert_eq!((undone.count, is_set()), (usize::from(is_kept), !is_kept));
        let undone = undo_knobs(&*dbms, &found, false);
        assert_eq!((undone.count, undone.is_left), (1, false));
        assert_eq!(values(&dbms), [Some("8".to_owned()), None]);
    }
}
