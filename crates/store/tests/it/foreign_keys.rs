//! Children and parents that two transactions change, in every order of their steps: no row is left that refers to
//! none.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use atoll_placement::Strategy;
use atoll_store::TableId;
use atoll_store::database::{
    CatalogChange, Isolation, LockScope, Transaction, TransactionError, TransactionOptions, Written,
};
use atoll_store::table::{
    Deferral, ForeignKey, ReferentialAction, TableChange, TableDefinition, stored_schema,
};

use crate::small_database::{SmallDatabase, name};
use crate::stepped::{block_on, run_all_orders, step};

/// The table `t` with the row 1, and one that refers to it.
struct Family {
    small: SmallDatabase,
    child: TableId,
}

impl Family {
    fn new(on_delete: ReferentialAction, deferral: Deferral) -> Self {
        let small = SmallDatabase::new();
        small.set(1, "one");
        let child = small.database.new_table_id("public");
        let columns = Schema::new(vec![Field::new("t", DataType::Int64, true)]);
        let columns = stored_schema(&Arc::new(columns));
        let key = ForeignKey {
            name: "c_t_fkey".into(),
            columns: vec![0],
            parent: small.table,
            parent_columns: vec![0],
            on_delete,
            on_update: ReferentialAction::NoAction,
            is_full: false,
            deferral,
        };
        let definition = TableDefinition {
            foreign_keys: vec![key],
            ..TableDefinition::new(columns, Strategy::Aligned)
        };
        let mut transaction = small.database.begin(TransactionOptions::default());
        transaction.statement(true).unwrap();
        let definition = Arc::new(definition);
        let create = CatalogChange::CreateTable { name: name("c"), id: child, definition };
        assert_eq!(block_on(transaction.define(create)).unwrap(), Written::Done);
        block_on(transaction.commit()).unwrap();
        Self { small, child }
    }

    /// `INSERT INTO c VALUES (1)`
    async fn insert(&self, transaction: &mut Transaction) -> Result<(), TransactionError> {
        loop {
            let version = transaction.statement(true)?;
            let table = version.table(self.child).unwrap();
            let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![1]))];
            let batch = RecordBatch::try_new(Arc::clone(table.codec().schema()), columns).unwrap();
            let row = table.codec().encode(&batch).unwrap().remove(0);
            let inserted = [(table.reserve(1), row)].into_iter().collect();
            let change = TableChange { inserted, ..TableChange::default() };
            if transaction.write(self.child, change, LockScope::Rows).await? == Written::Done {
                return Ok(());
            }
        }
    }

    /// Whether there is a parent, and how many rows refer to it.
    fn committed(&self) -> (bool, usize) {
        let rows = self.small.database.newest().table(self.child).unwrap().rows();
        (self.small.committed(1).is_some(), rows)
    }
}

fn is_expected(error: &TransactionError) -> bool {
    ["23503", "40001", "40P01"].contains(&error.sqlstate())
}

/// What becomes of a child that is inserted while its parent is deleted, in all orders of the steps.
fn outcomes(
    on_delete: ReferentialAction,
    deferral: Deferral,
    isolation: Isolation,
) -> Vec<(bool, usize)> {
    let last: Rc<RefCell<Option<Rc<Family>>>> = Rc::default();
    let found: Rc<RefCell<Vec<(bool, usize)>>> = Rc::default();
    let note = |family: Option<Rc<Family>>| {
        let Some(family) = family else { return };
        let committed = family.committed();
        assert!(committed.0 || committed.1 == 0, "{on_delete:?} {deferral:?} {isolation:?}");
        found.borrow_mut().push(committed);
    };
    run_all_orders(|tasks| {
        note(last.take());
        let family = Rc::new(Family::new(on_delete, deferral));
        *last.borrow_mut() = Some(Rc::clone(&family));
        for is_child in [true, false] {
            let family = Rc::clone(&family);
            tasks.spawn(async move {
                let options = TransactionOptions { isolation, ..Default::default() };
                let mut transaction = family.small.database.begin(options);
                transaction.statement(false).unwrap();
                step().await;
                let done = match is_child {
                    true => family.insert(&mut transaction).await,
                    false => family.small.delete(&mut transaction, 1).await.map(drop),
                };
                step().await;
                let done = match done {
                    Ok(()) => transaction.commit().await.map(drop),
                    Err(error) => Err(error),
                };
                assert!(done.as_ref().err().is_none_or(is_expected), "{done:?}");
            });
        }
    });
    note(last.take());
    let mut found = found.take();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn no_order_leaves_a_row_that_refers_to_none() {
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        for deferral in [Deferral::Never, Deferral::InitiallyDeferred] {
            let refused = outcomes(ReferentialAction::NoAction, deferral, isolation);
            assert_eq!(refused, [(false, 0), (true, 1)], "{deferral:?} {isolation:?}");
        }
        let restricted = outcomes(ReferentialAction::Restrict, Deferral::Never, isolation);
        assert_eq!(restricted, [(false, 0), (true, 1)], "{isolation:?}");
        let cascaded = outcomes(ReferentialAction::Cascade, Deferral::Never, isolation);
        assert!(cascaded.contains(&(false, 0)), "{isolation:?}: {cascaded:?}");
    }
}

#[test]
fn two_children_do_not_wait_for_each_other() {
    let family = Family::new(ReferentialAction::NoAction, Deferral::Never);
    let begin = || family.small.database.begin(TransactionOptions::default());
    let (mut one, mut two) = (begin(), begin());
    block_on(family.insert(&mut one)).unwrap();
    block_on(family.insert(&mut two)).unwrap();
    let mut beside = begin();
    let updated = family.small.update(&mut beside, 1, |_| "changed".to_owned());
    assert!(block_on(updated).unwrap(), "columns outside the key may change");
    for transaction in [two, beside, one] {
        block_on(transaction.commit()).unwrap();
    }
    assert_eq!(family.committed(), (true, 2));
    let mut late = begin();
    let refused = block_on(family.small.delete(&mut late, 1)).unwrap_err();
    assert_eq!(refused.sqlstate(), "23503");
    assert_eq!(
        refused.message(),
        "update or delete on table \"t\" violates foreign key constraint \"c_t_fkey\" on table \"c\""
    );
    let detail = "Key (id)=(1) is still referenced from table \"c\".";
    assert_eq!(refused.detail().as_deref(), Some(detail));
}

#[test]
fn referenced_tables_are_not_dropped() {
    let family = Family::new(ReferentialAction::NoAction, Deferral::Never);
    let mut transaction = family.small.database.begin(TransactionOptions::default());
    transaction.statement(true).unwrap();
    let drop = |of: &str| CatalogChange::Drop { name: name(of) };
    let refused = block_on(transaction.define(drop("t"))).unwrap_err();
    assert_eq!(refused.sqlstate(), "2BP01");
    assert_eq!(block_on(transaction.define(drop("c"))).unwrap(), Written::Done);
    assert_eq!(block_on(transaction.define(drop("t"))).unwrap(), Written::Done);
    block_on(transaction.commit()).unwrap();
    assert!(family.small.database.newest().children(family.small.table).is_empty());
}
