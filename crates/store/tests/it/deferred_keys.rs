//! Unique constraints that are checked when the transaction ends.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use atoll_store::RowId;
use atoll_store::database::{
    LockScope, Transaction, TransactionError, TransactionOptions, Written,
};
use atoll_store::table::TableChange;
use atoll_sys::SplitMix64;

use crate::small_database::SmallDatabase;
use crate::stepped::{block_on, run_all_orders, step};

const KEYS: u64 = 6;

/// Keys by row.
type Rows = BTreeMap<RowId, u64>;

fn has_duplicates(rows: &Rows) -> bool {
    rows.values().collect::<BTreeSet<_>>().len() < rows.len()
}

fn stored(small: &SmallDatabase) -> Rows {
    let version = small.database.newest();
    let table = version.table(small.table).unwrap();
    let keys: Vec<u64> = (0..KEYS).collect();
    let key_of = |row| {
        let key = table.key_of(row, &[0]).unwrap();
        *keys.iter().find(|id| small.key(**id) == key).unwrap()
    };
    table.row_ids().map(|row| (row, key_of(row))).collect()
}

fn write(small: &SmallDatabase, transaction: &mut Transaction, change: TableChange) {
    let written = block_on(transaction.write(small.table, change, LockScope::Rows));
    assert_eq!(written.unwrap(), Written::Done);
}

/// Changes a random row, or adds one.
fn change(
    small: &SmallDatabase,
    transaction: &mut Transaction,
    rows: &mut Rows,
    random: &mut SplitMix64,
) {
    let version = transaction.statement(true).unwrap();
    let key = random.below(KEYS);
    let some = rows.keys().nth(random.below(1 + rows.len() as u64) as usize).copied();
    let mut change = TableChange::default();
    match (some, random.below(3)) {
        (Some(row), 0) => {
            change.deleted = [row.get()].into_iter().collect();
            rows.remove(&row);
        }
        (Some(row), 1) => {
            change.updated = [(row, small.row(key, "updated"))].into_iter().collect();
            rows.insert(row, key);
        }
        _ => {
            let row = version.table(small.table).unwrap().reserve(1);
            change.inserted = [(row, small.row(key, "new"))].into_iter().collect();
            rows.insert(row, key);
        }
    }
    write(small, transaction, change);
}

fn assert_refused(done: Result<(), TransactionError>) {
    let error = done.unwrap_err();
    assert_eq!(error.sqlstate(), "23505");
    assert_eq!(error.message(), "duplicate key value violates unique constraint \"t_pkey\"");
    assert!(error.detail().is_some_and(|detail| detail.ends_with(" already exists.")));
}

#[test]
fn a_transaction_commits_if_no_key_has_several_rows_at_its_end() {
    let (mut committed, mut refused, mut immediate) = (0, 0, 0);
    for seed in 0..60 {
        let (small, mut random) = (SmallDatabase::with_deferred_key(), SplitMix64::new(seed));
        for _ in 0..10 {
            let before = stored(&small);
            let mut transaction = small.database.begin(TransactionOptions::default());
            let mut rows = before.clone();
            for _ in 0..random.below(7) {
                let kept = (random.below(4) == 0).then(|| rows.clone());
                if kept.is_some() {
                    transaction.savepoint("s");
                }
                change(&small, &mut transaction, &mut rows, &mut random);
                if let Some(kept) = kept {
                    transaction.rollback_to("s").unwrap();
                    rows = kept;
                }
            }
            let all = random.below(3) == 0;
            if all {
                let set = block_on(transaction.set_constraints(None, false));
                match has_duplicates(&rows) {
                    true => {
                        assert_refused(set);
                        immediate += 1;
                        continue;
                    }
                    false => set.unwrap(),
                }
            }
            let done = block_on(transaction.commit()).map(drop);
            match has_duplicates(&rows) {
                true => {
                    assert_refused(done);
                    assert_eq!(stored(&small), before, "seed {seed}");
                    refused += 1;
                }
                false => {
                    done.unwrap();
                    assert_eq!(stored(&small), rows, "seed {seed}");
                    committed += 1;
                }
            }
        }
    }
    assert!(committed > 50 && refused > 50 && immediate > 20, "{committed} {refused} {immediate}");
}

#[test]
fn of_two_transactions_with_one_key_one_commits() {
    let last: Rc<RefCell<Option<Rc<SmallDatabase>>>> = Rc::default();
    let check = |small: Option<Rc<SmallDatabase>>| {
        let Some(small) = small else { return };
        assert_eq!(stored(&small).into_values().collect::<Vec<_>>(), [1]);
    };
    run_all_orders(|tasks| {
        check(last.take());
        let small = Rc::new(SmallDatabase::with_deferred_key());
        *last.borrow_mut() = Some(Rc::clone(&small));
        for value in ["one", "two"] {
            let small = Rc::clone(&small);
            tasks.spawn(async move {
                let mut transaction = small.database.begin(TransactionOptions::default());
                transaction.statement(false).unwrap();
                step().await;
                small.insert(&mut transaction, 1, value).await.unwrap();
                step().await;
                if let Err(error) = transaction.commit().await {
                    assert_eq!(error.sqlstate(), "23505");
                }
            });
        }
    });
    check(last.take());
}

#[test]
fn a_table_with_pending_checks_is_not_altered() {
    let small = SmallDatabase::with_deferred_key();
    small.set(1, "one");
    let mut transaction = small.database.begin(TransactionOptions::default());
    block_on(small.insert(&mut transaction, 1, "again")).unwrap();
    let version = transaction.statement(true).unwrap();
    let definition = version.table(small.table).unwrap().definition().clone();
    let alter =
        atoll_store::database::CatalogChange::SetDefinition { table: small.table, definition };
    assert_eq!(block_on(transaction.define(alter)).unwrap_err().sqlstate(), "55006");
}
