//! What transactions do to each other, case by case.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::sync::Arc;

use atoll_store::RowId;
use atoll_store::database::{
    CatalogChange, Isolation, LockPatience, LockScope, LockWait, LockedRows, SequenceDefinition,
    Transaction, TransactionError, TransactionOptions, Written,
};
use atoll_store::lock::LockMode;
use atoll_store::table::{TableChange, Unique};

use crate::small_database::{Result, SmallDatabase, definition, name};
use crate::stepped::{SteppedTasks, block_on, give_up_after};

fn small() -> SmallDatabase {
    let small = SmallDatabase::new();
    small.set(1, "one");
    small.set(2, "two");
    small
}

fn begin(small: &SmallDatabase) -> Transaction {
    small.database.begin(TransactionOptions::default())
}

fn repeatable(small: &SmallDatabase) -> Transaction {
    let isolation = Isolation::RepeatableRead;
    small.database.begin(TransactionOptions { isolation, ..Default::default() })
}

fn get(small: &SmallDatabase, transaction: &mut Transaction, id: u64) -> Option<String> {
    small.get(&transaction.statement(false).unwrap(), id)
}

fn update(small: &SmallDatabase, transaction: &mut Transaction, id: u64, to: &str) {
    assert!(block_on(small.update(transaction, id, |_| to.to_owned())).unwrap());
}

/// Whether a future has to wait.
fn waits<T>(future: impl Future<Output = T>) -> bool {
    block_on(give_up_after(3, future)).is_none()
}

#[test]
fn a_transaction_sees_its_own_changes_and_others_see_them_when_it_commits() {
    let small = small();
    let (mut writer, mut reader) = (begin(&small), begin(&small));
    update(&small, &mut writer, 1, "uno");
    block_on(small.insert(&mut writer, 3, "tre")).unwrap();
    assert!(block_on(small.delete(&mut writer, 2)).unwrap());
    let seen = |t: &mut Transaction| [1, 2, 3].map(|id| get(&small, t, id));
    let texts = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_owned));
    assert_eq!(seen(&mut writer), texts([Some("uno"), None, Some("tre")]));
    assert_eq!(seen(&mut reader), texts([Some("one"), Some("two"), None]));
    let mut snapshot = repeatable(&small);
    assert_eq!(seen(&mut snapshot), texts([Some("one"), Some("two"), None]));
    let committed = block_on(writer.commit()).unwrap();
    assert_eq!(committed.epoch, small.database.newest().epoch());
    assert_eq!(seen(&mut reader), texts([Some("uno"), None, Some("tre")]));
    assert_eq!(seen(&mut snapshot), texts([Some("one"), Some("two"), None]));
}

#[test]
fn rows_that_were_found_before_are_stale_where_they_were_changed_since() {
    let small = small();
    let found_in = small.database.published();
    let mut other = begin(&small);
    update(&small, &mut other, 1, "uno");
    block_on(other.commit()).unwrap();
    let mut late = begin(&small);
    assert!(late.statement_over(Arc::clone(&found_in)));
    let mut write = |id: u64| {
        let mut change = TableChange::default();
        change.updated.insert(small.find(&found_in, id).unwrap(), small.row(id, "late"));
        block_on(late.write(small.table, change, LockScope::Rows)).unwrap()
    };
    assert_eq!((write(1), write(2)), (Written::Stale, Written::Done));
    assert!(!late.statement_over(found_in), "it has changes of its own");
    block_on(late.commit()).unwrap();
    let values = [1, 2].map(|id| small.committed(id).unwrap());
    assert_eq!(values, ["uno".to_owned(), "late".to_owned()]);
    assert!(!repeatable(&small).statement_over(small.database.published()));
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let small = small();
    let mut transaction = begin(&small);
    update(&small, &mut transaction, 1, "lost");
    assert!(small.database.locked() > 0);
    drop(transaction);
    assert_eq!((small.committed(1).unwrap(), small.database.locked()), ("one".to_owned(), 0));
}

#[test]
fn a_second_writer_waits_and_then_writes_over_the_newest_row() {
    let small = small();
    let mut first = begin(&small);
    update(&small, &mut first, 1, "first");
    let seen = RefCell::new(Vec::new());
    let mut tasks = SteppedTasks::default();
    tasks.spawn(async {
        let mut second = begin(&small);
        let after = |before: &str| {
            seen.borrow_mut().push(before.to_owned());
            format!("{before} second")
        };
        assert!(small.update(&mut second, 1, after).await.unwrap());
        second.commit().await.unwrap();
    });
    assert_eq!(tasks.run(|_| 0), 1, "the second writer waits");
    block_on(first.commit()).unwrap();
    assert_eq!(tasks.run(|_| 0), 0);
    drop(tasks);
    assert_eq!(*seen.borrow(), ["one", "first"], "the statement ran again on the newest row");
    assert_eq!(small.committed(1).unwrap(), "first second");
}

#[test]
fn a_repeatable_read_refuses_rows_that_were_changed_since() {
    let small = small();
    let (mut updates, mut deletes, mut other) =
        (repeatable(&small), repeatable(&small), repeatable(&small));
    for transaction in [&mut updates, &mut deletes, &mut other] {
        assert_eq!(get(&small, transaction, 1).unwrap(), "one");
    }
    small.set(1, "changed");
    let mut gone = begin(&small);
    block_on(small.delete(&mut gone, 2)).unwrap();
    block_on(gone.commit()).unwrap();
    let error = block_on(small.update(&mut updates, 1, str::to_owned)).unwrap_err();
    assert_eq!(error.sqlstate(), "40001");
    assert_eq!(error.message(), "could not serialize access due to concurrent update");
    let error = block_on(small.delete(&mut deletes, 2)).unwrap_err();
    assert_eq!(error.message(), "could not serialize access due to concurrent delete");
    // Rows that are as it saw them it may change, and it goes on reading what it saw.
    block_on(small.insert(&mut other, 5, "five")).unwrap();
    assert_eq!(get(&small, &mut other, 1).unwrap(), "one");
    assert_eq!(get(&small, &mut other, 5).unwrap(), "five");
    block_on(other.commit()).unwrap();
    assert_eq!(small.committed(1).unwrap(), "changed");
}

#[test]
fn a_key_is_there_once() {
    let small = small();
    let mut twice = begin(&small);
    let error = block_on(small.insert(&mut twice, 1, "again")).unwrap_err();
    assert_eq!(error.sqlstate(), "23505");
    assert_eq!(error.message(), "duplicate key value violates unique constraint \"t_pkey\"");
    assert_eq!(error.detail().unwrap(), "Key (id)=(1) already exists.");
    drop(twice);
    // One that is being inserted is waited for, and then refused or not.
    for commits in [true, false] {
        let mut first = begin(&small);
        block_on(small.insert(&mut first, 7, "first")).unwrap();
        let outcome = Cell::new(None);
        let mut tasks = SteppedTasks::default();
        tasks.spawn(async {
            let mut second = begin(&small);
            let inserted = small.insert(&mut second, 7, "second").await;
            outcome.set(Some(inserted.is_ok()));
        });
        assert_eq!(tasks.run(|_| 0), 1);
        match commits {
            true => drop(block_on(first.commit()).unwrap()),
            false => drop(first),
        }
        assert_eq!(tasks.run(|_| 0), 0);
        drop(tasks);
        assert_eq!(outcome.get(), Some(!commits));
        let mut clean = begin(&small);
        block_on(small.delete(&mut clean, 7)).unwrap();
        block_on(clean.commit()).unwrap();
    }
}

#[test]
fn a_key_whose_row_is_being_deleted_is_waited_for() {
    let small = small();
    for commits in [true, false] {
        let mut deletes = begin(&small);
        assert!(block_on(small.delete(&mut deletes, 1)).unwrap());
        let outcome = RefCell::new(None);
        let mut tasks = SteppedTasks::default();
        tasks.spawn(async {
            let mut inserts = begin(&small);
            let inserted = small.insert(&mut inserts, 1, "new").await;
            *outcome.borrow_mut() = Some(inserted);
        });
        assert_eq!(tasks.run(|_| 0), 1);
        if commits {
            // It inserts the key again itself: it is there once more.
            block_on(small.insert(&mut deletes, 1, "again")).unwrap_or_else(|error| {
                panic!("{error}: {:?}", error.detail());
            });
            block_on(deletes.commit()).unwrap();
        } else {
            drop(deletes);
        }
        assert_eq!(tasks.run(|_| 0), 0);
        drop(tasks);
        let error = outcome.into_inner().unwrap().unwrap_err();
        assert_eq!(error.sqlstate(), "23505");
    }
}

#[test]
fn two_that_wait_for_each_other_are_a_deadlock() {
    let small = small();
    let errors: RefCell<Vec<TransactionError>> = RefCell::default();
    let mut tasks = SteppedTasks::default();
    for rows in [[1, 2], [2, 1]] {
        let (small, errors) = (&small, &errors);
        tasks.spawn(async move {
            let mut transaction = begin(small);
            for row in rows {
                let updated = small.update(&mut transaction, row, |_| "x".into()).await;
                if let Err(error) = updated {
                    errors.borrow_mut().push(error);
                    return;
                }
                crate::stepped::step().await;
            }
            transaction.commit().await.unwrap();
        });
    }
    let turn = Cell::new(0);
    let left = tasks.run(|count| {
        turn.set(turn.get() + 1);
        turn.get() % count
    });
    assert_eq!(left, 0);
    drop(tasks);
    let [error] = &errors.borrow()[..] else { panic!("one of the two is refused: {errors:?}") };
    assert_eq!((error.sqlstate(), error.message().as_str()), ("40P01", "deadlock detected"));
    let detail = error.detail().unwrap();
    assert!(detail.contains("waits for row in relation \"t\"; blocked by transaction"), "{detail}");
    assert_eq!(small.committed(1).unwrap(), "x");
}

#[test]
fn rows_are_locked_for_update_and_share() {
    let small = small();
    let mut holder = begin(&small);
    let version = holder.statement(true).unwrap();
    let rows: Vec<RowId> = [1, 2].map(|id| small.find(&version, id).unwrap()).to_vec();
    let lock = |transaction: &mut Transaction, rows: &[RowId], mode, wait| {
        transaction.statement(true).unwrap();
        block_on(transaction.lock_rows(small.table, rows.to_vec(), mode, wait))
    };
    let locked = lock(&mut holder, &rows[..1], LockMode::Exclusive, LockWait::Wait).unwrap();
    assert_eq!(locked, LockedRows::Locked(rows[..1].to_vec()));
    let mut other = begin(&small);
    let error = lock(&mut other, &rows, LockMode::Shared, LockWait::NoWait).unwrap_err();
    assert_eq!(error.sqlstate(), "55P03");
    assert_eq!(error.message(), "could not obtain lock on row in relation \"t\"");
    let skipped = lock(&mut other, &rows, LockMode::Exclusive, LockWait::SkipLocked).unwrap();
    assert_eq!(skipped, LockedRows::Locked(rows[1..].to_vec()));
    update(&small, &mut holder, 1, "locked first");
    assert!(waits(small.update(&mut other, 1, str::to_owned)));
    block_on(holder.commit()).unwrap();
    // The rows of its statement were changed: it is to run again.
    let stale = block_on(other.lock_rows(
        small.table,
        rows[..1].to_vec(),
        LockMode::Exclusive,
        LockWait::Wait,
    ));
    assert_eq!(stale.unwrap(), LockedRows::Stale);
    let locked = lock(&mut other, &rows[..1], LockMode::Exclusive, LockWait::Wait).unwrap();
    assert_eq!(locked, LockedRows::Locked(rows[..1].to_vec()));
}

#[test]
fn a_wait_for_a_lock_ends_with_its_patience() {
    let small = small();
    let mut holder = begin(&small);
    update(&small, &mut holder, 1, "held");
    let mut other = begin(&small);
    other.set_lock_patience(LockPatience::new(|| Box::pin(std::future::ready(()))));
    let error = block_on(small.update(&mut other, 1, str::to_owned)).unwrap_err();
    assert_eq!(error.sqlstate(), "55P03");
    assert!(error.message().contains("lock timeout"), "{error}");
    // A lock that is free is not waited for, and the request that was given up holds none.
    update(&small, &mut other, 2, "free");
    block_on(holder.commit()).unwrap();
    update(&small, &mut begin(&small), 1, "after");
}

#[test]
fn a_rollback_to_a_savepoint_undoes_later_changes_and_keeps_locks() {
    let small = small();
    let mut transaction = begin(&small);
    update(&small, &mut transaction, 1, "a");
    transaction.savepoint("s");
    update(&small, &mut transaction, 1, "b");
    update(&small, &mut transaction, 2, "b");
    transaction.savepoint("inner");
    block_on(small.delete(&mut transaction, 1)).unwrap();
    transaction.rollback_to("inner").unwrap();
    assert_eq!(get(&small, &mut transaction, 1).unwrap(), "b");
    transaction.rollback_to("s").unwrap();
    assert_eq!(get(&small, &mut transaction, 1).unwrap(), "a");
    assert_eq!(get(&small, &mut transaction, 2).unwrap(), "two");
    let error = transaction.rollback_to("inner").unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.message().as_str()),
        ("3B001", "savepoint \"inner\" does not exist")
    );
    // The place is still there, and another one may have its name.
    transaction.savepoint("s");
    update(&small, &mut transaction, 2, "c");
    transaction.release("s").unwrap();
    assert!(waits(small.update(&mut begin(&small), 2, str::to_owned)));
    transaction.release("s").unwrap();
    assert!(transaction.release("s").is_err());
    block_on(transaction.commit()).unwrap();
    assert_eq!([1, 2].map(|id| small.committed(id).unwrap()), ["a", "c"]);
}

#[test]
fn a_mass_change_locks_the_table_and_is_refused_over_other_changes() {
    let small = small();
    let mut mass = begin(&small);
    mass.statement(true).unwrap();
    let mut single = begin(&small);
    update(&small, &mut single, 1, "single");
    let truncate = || TableChange { truncated: true, ..TableChange::default() };
    assert!(waits(mass.write(small.table, truncate(), LockScope::Table)));
    block_on(single.commit()).unwrap();
    let written = block_on(mass.write(small.table, truncate(), LockScope::Table)).unwrap();
    assert_eq!(written, Written::Done);
    assert!(waits(small.insert(&mut begin(&small), 9, "nine")));
    block_on(small.insert(&mut mass, 1, "fresh")).unwrap();
    block_on(mass.commit()).unwrap();
    assert_eq!(small.committed(1).unwrap(), "fresh");
    assert_eq!(small.committed(2), None);
}

#[test]
fn a_read_only_transaction_refuses_changes_and_keeps_its_snapshot() {
    let small = small();
    let options = TransactionOptions {
        isolation: Isolation::RepeatableRead,
        read_only: true,
        ..TransactionOptions::default()
    };
    let mut reader = small.database.begin(options);
    assert_eq!(get(&small, &mut reader, 1).unwrap(), "one");
    small.set(1, "later");
    let error = block_on(small.update(&mut reader, 1, str::to_owned)).unwrap_err();
    assert_eq!(error.sqlstate(), "25006");
    assert_eq!(get(&small, &mut reader, 1).unwrap(), "one");
    let open = small.database.snapshots();
    assert_eq!((open.len(), open[0].transaction), (1, reader.id()));
    assert!(open[0].epoch.unwrap() < small.database.newest().epoch());
    assert!(open[0].held_bytes > 0, "the row as it was");
    block_on(reader.commit()).unwrap();
    assert!(small.database.snapshots().is_empty());
}

fn define(transaction: &mut Transaction, change: CatalogChange) -> Result<Written> {
    transaction.statement(true)?;
    block_on(transaction.define(change))
}

#[test]
fn changes_of_the_catalog_are_part_of_the_transaction() {
    let small = small();
    let mut transaction = begin(&small);
    let created = small.database.new_table_id("public");
    let create = CatalogChange::CreateTable {
        name: name("u"),
        id: created,
        definition: Arc::new(definition()),
    };
    assert_eq!(define(&mut transaction, create.clone()).unwrap(), Written::Done);
    let version = transaction.statement(true).unwrap();
    let first = version.table(created).unwrap().reserve(1);
    let inserted = [(first, small.row(1, "in u"))].into_iter().collect();
    let change = TableChange { inserted, ..TableChange::default() };
    let written = block_on(transaction.write(created, change, LockScope::Rows)).unwrap();
    assert_eq!(written, Written::Done);
    assert!(small.database.published().table_named(&name("u")).is_none());
    let rename = CatalogChange::Rename { from: name("u"), to: name("v") };
    assert_eq!(define(&mut transaction, rename).unwrap(), Written::Done);
    // Another one that wants the name waits.
    let mut other = begin(&small);
    other.statement(true).unwrap();
    assert!(waits(other.define(create.clone())));
    update(&small, &mut transaction, 1, "changed");
    block_on(transaction.commit()).unwrap();
    let published = small.database.published();
    let (id, table) = published.table_named(&name("v")).unwrap();
    assert_eq!((id, table.rows()), (created, 1));
    assert_eq!(&**table.name(), "v");
    let taken = CatalogChange::Rename { from: name("v"), to: name("t") };
    let error = define(&mut other, taken).unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.message().as_str()),
        ("42P07", "relation \"t\" already exists")
    );
    let missing = CatalogChange::Drop { name: name("w") };
    assert_eq!(define(&mut other, missing).unwrap_err().sqlstate(), "42P01");
    let schema = CatalogChange::DropSchema { name: "public".into() };
    assert_eq!(define(&mut other, schema).unwrap_err().sqlstate(), "2BP01");
    // What is dropped is gone for those that wait for it.
    let drop_table = CatalogChange::Drop { name: name("t") };
    assert_eq!(define(&mut other, drop_table).unwrap(), Written::Done);
    let error = RefCell::new(None);
    let mut tasks = SteppedTasks::default();
    tasks.spawn(async {
        let updated = small.update(&mut begin(&small), 1, str::to_owned).await;
        *error.borrow_mut() = updated.err();
    });
    assert_eq!(tasks.run(|_| 0), 1);
    block_on(other.commit()).unwrap();
    assert_eq!(tasks.run(|_| 0), 0);
    drop(tasks);
    assert_eq!(error.into_inner().unwrap().sqlstate(), "42P01");
}

#[test]
fn a_constraint_is_added_over_rows_that_the_same_transaction_made_fit() {
    let small = small();
    small.set(2, "one");
    let mut definition = definition();
    let unique = Unique { name: "t_value_key".into(), columns: vec![1], ..Unique::default() };
    definition.uniques.push(unique);
    let change =
        CatalogChange::SetDefinition { table: small.table, definition: Arc::new(definition) };
    let mut refused = begin(&small);
    let error = define(&mut refused, change.clone()).unwrap_err();
    assert_eq!(error.sqlstate(), "23505", "{error}");
    drop(refused);
    let mut transaction = begin(&small);
    update(&small, &mut transaction, 2, "two");
    assert_eq!(define(&mut transaction, change).unwrap(), Written::Done);
    let error = block_on(small.update(&mut transaction, 2, |_| "one".into())).unwrap_err();
    assert_eq!(error.detail().unwrap(), "Key (value)=(one) already exists.");
    block_on(transaction.commit()).unwrap();
    let error = block_on(small.insert(&mut begin(&small), 3, "two")).unwrap_err();
    assert_eq!(error.sqlstate(), "23505");
}

#[test]
fn values_of_sequences_come_once() {
    let small = small();
    let database = &small.database;
    let id = database.new_sequence_id("public");
    let definition = Arc::new(SequenceDefinition { max: 40, ..SequenceDefinition::default() });
    let mut creates = begin(&small);
    let create = CatalogChange::CreateSequence { name: name("s"), id, definition };
    assert_eq!(define(&mut creates, create).unwrap(), Written::Done);
    let next = |transaction: &mut Transaction| block_on(transaction.next_value(id));
    assert_eq!([(); 2].map(|()| next(&mut creates).unwrap()), [1, 2]);
    block_on(creates.commit()).unwrap();
    let (mut one, mut two) = (begin(&small), begin(&small));
    assert_eq!(next(&mut one).unwrap(), 3);
    assert_eq!(next(&mut two).unwrap(), 4);
    drop(one);
    assert_eq!(next(&mut two).unwrap(), 5, "values are not taken back");
    let last = database.newest().sequence(id).unwrap().last.unwrap();
    assert!(last >= 5 + 29, "values are logged ahead: {last}");
    (6..=40).for_each(|value| assert_eq!(next(&mut two).unwrap(), value));
    let error = next(&mut two).unwrap_err();
    assert_eq!(error.sqlstate(), "2200H");
    assert_eq!(error.message(), "nextval: reached maximum value of sequence \"s\" (40)");
    let falls = Arc::new(SequenceDefinition {
        increment: -3,
        min: -7,
        max: 2,
        start: 0,
        cycle: true,
        ..SequenceDefinition::default()
    });
    let alter = CatalogChange::SetSequence { sequence: id, definition: falls, last: None };
    assert_eq!(define(&mut two, alter).unwrap(), Written::Done);
    assert_eq!(next(&mut two).unwrap(), 0);
    block_on(two.commit()).unwrap();
    let mut cycles = begin(&small);
    let values = [(); 8].map(|()| next(&mut cycles).unwrap());
    assert_eq!(values, [-3, -6, 2, -1, -4, -7, 2, -1]);
}
