//! Prepared transactions: they keep their changes and locks over restarts, and end once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use atoll_store::database::{
    CatalogChange, Durability, Isolation, PreparedError, Transaction, TransactionError,
    TransactionOptions, Written,
};
use atoll_store::durable::DurableDatabase;
use atoll_store::files::Files;
use atoll_store::simulated::SimulatedFiles;

use crate::durable::{insert, open};
use crate::small_database::{SmallDatabase, definition, name};
use crate::stepped::block_on;

fn begin(small: &SmallDatabase) -> Transaction {
    small.database.begin(TransactionOptions::default())
}

/// Prepares a transaction that inserts a key.
fn prepare(small: &SmallDatabase, gid: &str, id: u64) {
    let mut transaction = begin(small);
    block_on(small.insert(&mut transaction, id, &format!("value {id}"))).unwrap();
    block_on(transaction.prepare(&gid.into(), "admin".into(), 42)).unwrap();
}

fn end(small: &SmallDatabase, gid: &str, commits: bool) -> Result<(), TransactionError> {
    block_on(small.database.ending(gid)?.end(commits)).map(drop)
}

fn names(small: &SmallDatabase) -> Vec<String> {
    small.database.newest().prepared().map(|(name, _)| name.to_string()).collect()
}

fn error_of<T>(result: Result<T, TransactionError>) -> PreparedError {
    match result {
        Err(TransactionError::Prepared(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it succeeds"),
    }
}

/// Polls a future once.
fn step<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Opens the directory after a power cut, with a checkpoint before it or without.
fn restart(
    (opened, small): (DurableDatabase, SmallDatabase),
    files: &mut SimulatedFiles,
    checkpoints: bool,
    seed: u64,
) -> (DurableDatabase, SmallDatabase) {
    if checkpoints {
        opened.checkpoint().unwrap();
    }
    drop((opened, small));
    *files = files.crash(seed);
    open(files)
}

#[test]
fn they_survive_power_cuts_until_they_end() {
    for (seed, checkpoints, commits) in
        [(1, false, true), (2, true, true), (3, false, false), (4, true, false)]
    {
        let mut files = SimulatedFiles::new();
        let (opened, small) = open(&files);
        insert(&small, 1);
        prepare(&small, "transfer", 2);
        assert_eq!(small.committed(2), None, "it shows before it commits");
        let (opened, small) = restart((opened, small), &mut files, checkpoints, seed);
        assert_eq!((names(&small), small.committed(2)), (vec!["transfer".to_owned()], None));
        let newest = small.database.newest();
        let (_, prepared) = newest.prepared().next().unwrap();
        assert_eq!((&*prepared.owner, prepared.prepared_at), ("admin", 42));
        drop(newest);
        let (opened, small) = restart((opened, small), &mut files, checkpoints, seed + 10);
        end(&small, "transfer", commits).unwrap();
        let committed = commits.then(|| "value 2".to_owned());
        assert_eq!(small.committed(2), committed);
        let (_opened, small) = restart((opened, small), &mut files, !checkpoints, seed + 20);
        assert_eq!((names(&small), small.committed(2)), (Vec::new(), committed));
        assert_eq!(small.committed(1), Some("value 1".to_owned()));
        assert_eq!(small.database.locked(), 0);
    }
}

#[test]
fn the_key_of_a_prepared_row_stays_locked_also_after_a_restart() {
    for restarts in [false, true] {
        let mut files = SimulatedFiles::new();
        let mut both = open(&files);
        prepare(&both.1, "transfer", 2);
        if restarts {
            both = restart(both, &mut files, true, 5);
        }
        let small = &both.1;
        for commits in [false, true] {
            let mut other = begin(small);
            let mut waiting = Box::pin(small.insert(&mut other, 2, "other"));
            assert!(step(&mut waiting).is_none(), "the key is not locked");
            end(small, "transfer", commits).unwrap();
            let written = step(&mut waiting).expect("the lock is not released");
            match commits {
                true => assert_eq!(written.unwrap_err().sqlstate(), "23505"),
                false => written.unwrap(),
            }
            drop(waiting);
            drop(other);
            if !commits {
                prepare(small, "transfer", 2);
            }
        }
        assert_eq!(small.committed(2), Some("value 2".to_owned()));
    }
}

#[test]
fn several_of_one_table_are_locked_again_and_end_in_any_order() {
    let mut files = SimulatedFiles::new();
    let both = open(&files);
    (1..4).for_each(|id| prepare(&both.1, &format!("t{id}"), id));
    let (_opened, small) = restart(both, &mut files, false, 9);
    assert_eq!(names(&small), ["t1", "t2", "t3"]);
    end(&small, "t3", true).unwrap();
    end(&small, "t1", false).unwrap();
    let mut other = begin(&small);
    let mut waiting = Box::pin(small.insert(&mut other, 9, "other"));
    assert!(step(&mut waiting).is_none(), "the table is not locked");
    end(&small, "t2", true).unwrap();
    step(&mut waiting).expect("the lock is not released").unwrap();
    drop(waiting);
    block_on(other.commit()).unwrap();
    let found: Vec<u64> = (0..10).filter(|id| small.committed(*id).is_some()).collect();
    assert_eq!(found, [2, 3, 9]);
}

#[test]
fn ids_given_by_a_prepared_transaction_are_not_given_again() {
    let mut files = SimulatedFiles::new();
    let (opened, small) = open(&files);
    prepare(&small, "transfer", 1);
    let id = small.database.new_table_id("public");
    let mut transaction = begin(&small);
    transaction.statement(true).unwrap();
    let create =
        CatalogChange::CreateTable { name: name("u"), id, definition: Arc::new(definition()) };
    assert_eq!(block_on(transaction.define(create)).unwrap(), Written::Done);
    block_on(transaction.prepare(&"create".into(), "admin".into(), 0)).unwrap();
    let (_opened, small) = restart((opened, small), &mut files, false, 3);
    assert!(small.database.new_table_id("public") > id);
    let newest = small.database.newest();
    let next = newest.table(small.table).unwrap().next_row_id();
    end(&small, "transfer", true).unwrap();
    end(&small, "create", true).unwrap();
    let newest = small.database.newest();
    assert!(small.find(&newest, 1).unwrap() < next);
    assert!(newest.table_named(&name("u")).is_some());
}

#[test]
fn the_name_of_a_prepared_table_stays_locked_after_a_restart() {
    let mut files = SimulatedFiles::new();
    let (opened, small) = open(&files);
    let create = |small: &SmallDatabase| CatalogChange::CreateTable {
        name: name("u"),
        id: small.database.new_table_id("public"),
        definition: Arc::new(definition()),
    };
    let mut transaction = begin(&small);
    transaction.statement(true).unwrap();
    assert_eq!(block_on(transaction.define(create(&small))).unwrap(), Written::Done);
    block_on(transaction.prepare(&"create".into(), "admin".into(), 0)).unwrap();
    let (_opened, small) = restart((opened, small), &mut files, true, 3);
    let mut other = begin(&small);
    other.statement(true).unwrap();
    let mut waiting = Box::pin(other.define(create(&small)));
    assert!(step(&mut waiting).is_none(), "the name is not locked");
    end(&small, "create", true).unwrap();
    let refused = step(&mut waiting).expect("the lock is not released").unwrap_err();
    assert_eq!(refused.sqlstate(), "42P07");
}

#[test]
fn statements_that_cannot_be_carried_out_are_refused() {
    let small = SmallDatabase::new();
    prepare(&small, "a", 1);
    assert_eq!(error_of(end(&small, "b", true)), PreparedError::Undefined("b".into()));
    let same = block_on(begin(&small).prepare(&"a".into(), "admin".into(), 0));
    assert_eq!(error_of(same), PreparedError::Duplicate("a".into()));
    let ending = small.database.ending("a").unwrap();
    assert_eq!(error_of(end(&small, "a", true)), PreparedError::Busy("a".into()));
    // A session that goes away leaves it prepared.
    drop(ending);
    let options =
        TransactionOptions { isolation: Isolation::Serializable, ..TransactionOptions::default() };
    let serializable = small.database.begin(options);
    let refused = block_on(serializable.prepare(&"c".into(), "admin".into(), 0));
    assert_eq!(error_of(refused), PreparedError::Serializable);
    end(&small, "a", true).unwrap();
    assert_eq!(small.committed(1), Some("value 1".to_owned()));
    assert_eq!(error_of(end(&small, "a", true)), PreparedError::Undefined("a".into()));
}

#[test]
fn without_waiting_for_the_disk_they_are_on_it_all_the_same() {
    let mut files = SimulatedFiles::new();
    let (opened, small) = open(&files);
    block_on(small.database.set_durability(Durability::Async)).unwrap();
    prepare(&small, "transfer", 1);
    let (opened, small) = restart((opened, small), &mut files, false, 1);
    assert_eq!(names(&small), ["transfer"]);
    block_on(small.database.set_durability(Durability::Async)).unwrap();
    end(&small, "transfer", true).unwrap();
    let (_opened, small) = restart((opened, small), &mut files, false, 2);
    assert_eq!(small.committed(1), Some("value 1".to_owned()));
}

#[test]
fn a_backup_holds_them() {
    let files = SimulatedFiles::new();
    let (opened, small) = open(&files);
    prepare(&small, "transfer", 1);
    let copy = SimulatedFiles::new();
    let to: Arc<dyn Files> = Arc::new(copy.clone());
    opened.backup(&to, &|| false).unwrap();
    end(&small, "transfer", false).unwrap();
    let (_opened, small) = open(&copy.crash(1));
    assert_eq!(names(&small), ["transfer"]);
    end(&small, "transfer", true).unwrap();
    assert_eq!(small.committed(1), Some("value 1".to_owned()));
}
